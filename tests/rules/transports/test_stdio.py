"""MCP over stdin and stdout: bad lines are answered, calls wait for an index, and stdout holds nothing else."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from index_mappings.generations import Stamp
from service.calls.live_data import OPENING_S
from service.mcp_server.messages import TEXTS
from service.settings.service import Settings
from service.stdio import run_stdio
from service.tools.registry import REGISTRY
from shop_directory.search.embedded.indices import LocalTypeaheads
from shop_directory.search.failures import BackendUnavailable
from tests.support import forked
from tests.support.real.sources import REPOSITORY
from tests.support.wire import ABOUT, INITIALIZE, StdioLines, stdio_lines

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead


def _session(index_directory: Path, lines: list[bytes]) -> tuple[list[Any], str]:
    with stdio_lines({"SHOP_DIRECTORY_DATA_DIR": str(index_directory)}) as process:
        answers = [json.loads(process.ask(line)) for line in lines]
    return answers, process.log


@pytest.mark.rule("I4", "E6", "E1.transport", "E2", "E5.request_id")
def test_a_bad_line_is_answered_and_the_session_goes_on(index_directory: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_shop", "arguments": {}}}
    begun, kinds = b'{"jsonrpc":"2.0","id":"x"', "only requests and notifications are accepted."
    wrong = [
        (b"{", None, -32700, "The message is not valid JSON."),
        (b'"\xff"', None, -32700, "The message is not UTF-8."),
        (b"[]", None, -32600, "Batches are not served: send one message a request."),
        (begun + b"}", "x", -32600, f"The message must have a method, a string: {kinds}"),
        (begun + b',"method":"m","result":{}}', "x", -32600, f"The message must have no result and no error: {kinds}"),
        (begun + b',"params":"%s"}' % (b"x" * 200_000), None, -32600, "A message may hold at most 65,536 bytes."),
    ]
    lines = [json.dumps(INITIALIZE).encode(), *(line for line, *_ in wrong), json.dumps(call).encode()]
    answers, log = _session(index_directory, lines)
    assert answers[0]["result"]["serverInfo"]["name"] == "shop-directory"
    assert answers[1:-1] == [
        {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}
        for _, message_id, code, message in wrong
    ]
    result = answers[-1]["result"]
    assert (result["isError"], json.loads(result["content"][0]["text"])["code"]) == (True, "invalid_input")
    (line,) = [json.loads(line) for line in log.splitlines() if result["_meta"]["x-request-id"] in line]
    assert (line["channel"], line["route"], line["outcome"]) == ("stdio", "get_shop", "invalid_input")


@pytest.mark.rule("I4", "E1.transport")
def test_the_first_request_settles_the_era_and_the_other_ones_messages_are_refused(index_directory: Path) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ABOUT}}
    answers, _ = _session(index_directory, [json.dumps(message).encode() for message in (listing, INITIALIZE)])
    assert [tool["name"] for tool in answers[0]["result"]["tools"]] == [tool.name for tool in REGISTRY]
    assert answers[1]["error"]["code"] == -32022


def _written_together(index_directory: Path, lines: list[bytes], **settings: str) -> list[Any]:
    """Write all lines and close stdin before anything is read; returns what was answered until the process ended."""
    done = forked.run(
        [sys.executable, "-m", "service", "mcp"],
        input=b"\n".join(lines),  # the last one has no line break
        env={**os.environ, "SHOP_DIRECTORY_DATA_DIR": str(index_directory), "PYTHONPATH": str(REPOSITORY)} | settings,
        timeout=30,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _call(message_id: int | str, query: str) -> bytes:
    params = {"name": "find_shop", "arguments": {"query": query}}
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}).encode()


@pytest.mark.rule("I4", "E6")
def test_what_was_asked_before_the_end_of_the_input_is_answered(index_directory: Path) -> None:
    ids: list[int | str] = [*range(10, 30), "a", "12"]
    answers = _written_together(
        index_directory,
        [json.dumps(INITIALIZE).encode(), *(_call(message_id, "book") for message_id in ids), b"garbage"],
    )
    found = {answer["id"]: answer for answer in answers}
    assert len(answers) == len(found) == len(ids) + 2
    assert found[None]["error"] == {"code": -32700, "message": "The message is not valid JSON."}
    assert {found[message_id]["result"]["isError"] for message_id in ids} == {False}


@pytest.mark.rule("I4")
def test_a_cancelled_request_does_not_hold_up_the_end(index_directory: Path) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 10}}
    lines = [json.dumps(INITIALIZE).encode(), _call(10, "book"), json.dumps(cancel).encode(), _call(11, "book")]
    # An answer that never comes would be waited for longer than the process may take.
    answers = _written_together(index_directory, lines, SHOP_DIRECTORY_REQUEST_TIMEOUT="60")
    assert {answer["id"] for answer in answers} - {10} == {1, 11}


@pytest.mark.rule("E1.transport", "E5")
def test_an_error_of_the_library_is_in_our_words_before_a_session_too(index_directory: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    (answer,) = _written_together(index_directory, [json.dumps(listing).encode()])
    assert answer == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": TEXTS[-32602]}}


GATE: Final = "TEST_GATE"
BOUND: Final = "TEST_BOUND"
TIMEOUT_S: Final = 1.5
DAMAGED: Final = "damaged"
LISTING: Final = b'{"jsonrpc":"2.0","id":8,"method":"tools/list"}'


def _call_early(tool: str, **arguments: str) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).encode()


def _asked(process: StdioLines, *lines: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(process.ask(*lines))
    return message


@pytest.mark.rule("E3", "I4")
@pytest.mark.parametrize(("written", "code"), [("", None), (DAMAGED, "backend_unavailable")])
def test_a_call_waits_until_the_index_is_open_or_has_failed_and_other_messages_do_not(
    index_directory: Path, tmp_path: Path, written: str, code: str | None
) -> None:
    gate = tmp_path / "gate"
    variables = {
        "SHOP_DIRECTORY_DATA_DIR": str(index_directory),
        "SHOP_DIRECTORY_REQUEST_TIMEOUT": str(TIMEOUT_S),
        GATE: str(gate),
        BOUND: "600",
    }
    with stdio_lines(variables, __name__) as process:
        assert _asked(process, json.dumps(INITIALIZE).encode())["result"]["serverInfo"]["name"] == "shop-directory"
        assert _asked(process, _call_early("find_shop", query="harbour"), LISTING)["id"] == 8
        time.sleep(TIMEOUT_S + 0.2)  # longer than the call's own deadline
        gate.write_text(written, encoding="utf-8")
        answer = _asked(process)
    assert answer["id"] == 9
    document = json.loads(answer["result"]["content"][0]["text"])
    assert (document.get("code"), document.get("total_count")) == (code, None if code else 1)


@pytest.mark.rule("E3", "I4")
def test_a_call_waits_ten_seconds_at_most_and_is_then_answered_as_well_as_it_can_be(
    index_directory: Path, tmp_path: Path
) -> None:
    variables = {
        "SHOP_DIRECTORY_DATA_DIR": str(index_directory),
        "SHOP_DIRECTORY_REQUEST_TIMEOUT": "10",
        GATE: str(tmp_path / "gate"),
        BOUND: "0.1",
    }
    with stdio_lines(variables, __name__) as process:
        _asked(process, json.dumps(INITIALIZE).encode())
        searched = _asked(process, _call_early("find_shop", query="harbour"))["result"]
        looked_up = _asked(process, _call_early("get_shop", shop_domain="shop_books"))["result"]
    assert OPENING_S == 10.0
    assert (searched["isError"], json.loads(searched["content"][0]["text"])["code"]) == (True, "backend_unavailable")
    assert (looked_up["isError"], looked_up["structuredContent"]["id"]) == (False, "shop_books")


async def _open_late(self: LocalTypeaheads, stamp: Stamp) -> "Typeahead":
    gate = Path(os.environ[GATE])
    while not gate.is_file():
        await asyncio.sleep(0.01)
    if gate.read_text(encoding="utf-8") == DAMAGED:
        raise BackendUnavailable("the index is damaged")
    return await asyncio.to_thread(self._open, stamp)


def main() -> None:
    """Serve on stdio until stdin ends; the typeahead opens once the file of the variable exists."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.mcp_server.stdio.OPENING_S", float(os.environ[BOUND]))
        patched.setattr(LocalTypeaheads, "open", _open_late)
        asyncio.run(run_stdio(Settings.load()))


if __name__ == "__main__":
    main()
