"""Only an error that the service itself raised leaves it as it is; every other one is the SDK's, and rewritten (E5)."""

import json
from typing import Any, Final

import pytest
from starlette.types import Message

from service.mcp_server.endpoint import ErrorRewriter
from service.mcp_server.handling import OWN_ERROR_KEY, QUOTA_HEADERS_KEY
from service.mcp_server.messages import TEXTS, UNKNOWN_TOOL

ERROR: Final = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": UNKNOWN_TOOL, "data": {"uri": "a"}}}
REWRITTEN: Final = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": TEXTS[-32602]}}


@pytest.mark.rule("E5", "E1.transport")
@pytest.mark.parametrize(
    ("scope", "status", "error"),
    [
        ({OWN_ERROR_KEY: True}, 400, ERROR),
        ({}, 400, REWRITTEN),
        ({OWN_ERROR_KEY: False}, 500, REWRITTEN),
        ({}, 200, ERROR),
    ],
)
async def test_an_error_is_rewritten_unless_it_is_ours(
    scope: dict[str, Any], status: int, error: dict[str, Any]
) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    rewriter = ErrorRewriter({**scope, QUOTA_HEADERS_KEY: ((b"ratelimit", b"1"),)}, send)
    raw = json.dumps(ERROR).encode()
    await rewriter({"type": "http.response.start", "status": status, "headers": [(b"x-library", b"1")]})
    await rewriter({"type": "http.response.body", "body": raw[:9], "more_body": True})
    await rewriter({"type": "http.response.body", "body": raw[9:]})
    start, *bodies = sent
    headers = dict(start["headers"])
    assert (start["status"], json.loads(b"".join(part["body"] for part in bodies))) == (status, error)
    assert (headers[b"ratelimit"], b"x-library" in headers) == (b"1", status == 200)
