"""Over stdio a call waits for the index that is being opened; as a program, the service whose index opens late."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from index_mappings.generations import Stamp
from service.app import run_stdio
from service.mcp_server.stdio import OPENING_S
from service.search.embedded.typeahead import LocalTypeaheads
from service.search.failures import BackendUnavailable
from service.settings.service import Settings
from tests.support.stdio_lines import INITIALIZE, StdioLines, stdio_lines

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

GATE: Final = "TEST_GATE"
BOUND: Final = "TEST_BOUND"
TIMEOUT_S: Final = 1.5
DAMAGED: Final = "damaged"
LISTING: Final = b'{"jsonrpc":"2.0","id":8,"method":"tools/list"}'


def _call(tool: str, **arguments: str) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).encode()


def _asked(process: StdioLines, *lines: bytes) -> dict[str, Any]:
    """The next message after these lines were sent."""
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
        assert _asked(process, _call("find_shop", query="harbour"), LISTING)["id"] == 8
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
        searched = _asked(process, _call("find_shop", query="harbour"))["result"]
        looked_up = _asked(process, _call("get_shop", shop_domain="shop_books"))["result"]
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
