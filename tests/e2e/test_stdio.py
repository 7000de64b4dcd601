"""MCP over stdin and stdout by hand: bad lines are answered, the session goes on, and stdout holds nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from service.tools.registry import REGISTRY

REPOSITORY: Final = Path(__file__).parents[2]
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def _session(index_directory: Path, lines: list[bytes]) -> tuple[list[Any], str]:
    environment = {**os.environ, "SHOP_DIRECTORY_DATA_DIR": str(index_directory), "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, "-m", "service", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for line in lines:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        rest, log = process.communicate(timeout=20)
        assert (rest, process.returncode) == (b"", 0)
    return answers, log.decode()


@pytest.mark.rule("I4", "E6", "E1.transport", "E2", "E5.request_id")
def test_a_bad_line_is_answered_and_the_session_goes_on(index_directory: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_shop", "arguments": {}}}
    wrong = [
        (b"{", None, -32700, "The message is not valid JSON."),
        (b'{"a":1,"a":2}', None, -32700, "The message has the same key twice in one object."),
        (
            b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"a":NaN}}',
            None,
            -32700,
            "The message holds NaN or Infinity, which JSON does not have.",
        ),
        (b'"\xff"', None, -32700, "The message is not UTF-8."),
        (b"[]", None, -32600, "Batches are not served: send one message a request."),
        (
            b'{"jsonrpc":"2.0","id":"x"}',
            "x",
            -32600,
            "The message must have a method, a string: only requests and notifications are taken.",
        ),
        (
            b'{"jsonrpc":"2.0","id":3,"method":"ping","params":"' + b"x" * 200_000 + b'"}',
            None,
            -32600,
            "A message may hold at most 65,536 bytes.",
        ),
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
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    answers, _ = _session(index_directory, [json.dumps(message).encode() for message in (listing, INITIALIZE)])
    assert [tool["name"] for tool in answers[0]["result"]["tools"]] == [tool.name for tool in REGISTRY]
    assert answers[1]["error"]["code"] == -32022
