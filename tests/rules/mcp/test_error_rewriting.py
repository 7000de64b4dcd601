"""Only an error that the service itself raised leaves it as it is; every other one is the SDK's, and rewritten (E5)."""

import json
from typing import Any, Final

import pytest
from starlette.types import Message

from service.errors import InvalidInputError
from service.mcp_server.endpoint import ErrorRewriter
from service.mcp_server.messages import TEXTS, UNKNOWN_TOOL, Call, failed_method
from service.runtime.caller import Caller, Channel

OWN: Final = {"code": -32602, "message": UNKNOWN_TOOL}
REFUSAL: Final = json.loads(failed_method(InvalidInputError()).body())["error"]
OF_THE_SDK: Final = {"code": -32602, "message": "Unknown tool: a", "data": {"uri": "a", "detail": "b"}}
REWRITTEN: Final = {"code": -32602, "message": TEXTS[-32602]}


@pytest.mark.rule("E5", "E1.transport")
@pytest.mark.parametrize(
    ("error", "status", "sent_error"),
    [
        (OWN, 400, OWN),
        (REFUSAL, 500, REFUSAL),
        (OF_THE_SDK, 400, REWRITTEN),
        (OF_THE_SDK, 500, REWRITTEN),
        (OF_THE_SDK, 200, OF_THE_SDK),
    ],
)
async def test_an_error_is_rewritten_unless_it_is_ours(
    error: dict[str, Any], status: int, sent_error: dict[str, Any]
) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    call = Call(Caller(Channel.MCP, "r1"), quota=((b"ratelimit", b"1"),))
    rewriter = ErrorRewriter(call, send)
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
    await rewriter({"type": "http.response.start", "status": status, "headers": [(b"x-library", b"1")]})
    await rewriter({"type": "http.response.body", "body": raw[:9], "more_body": True})
    await rewriter({"type": "http.response.body", "body": raw[9:]})
    start, *bodies = sent
    headers = dict(start["headers"])
    document = json.loads(b"".join(part["body"] for part in bodies))
    assert (start["status"], document) == (status, {"jsonrpc": "2.0", "id": 1, "error": sent_error})
    assert (headers[b"ratelimit"], b"x-library" in headers) == (b"1", status == 200)
