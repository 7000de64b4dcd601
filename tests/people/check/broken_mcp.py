"""Servers whose MCP endpoint is wrong in one way."""

import json
from collections.abc import Callable
from typing import Any, Final

from tests.people.check.breaking import (
    Answered,
    Breakage,
    Change,
    Document,
    Wrap,
    answering,
    drop,
    in_place,
    more,
    put,
    turn,
    unheard,
    where,
)

MCP: Final = "/mcp"
TOKEN: Final = b"x-api-token"


def saying(
    change: Change, *, method: str | None = None, tool: str | None = None, having: str = "", status: int | None = 200
) -> Wrap:
    """A server that changes its answers over MCP: of a status, to a method, a tool's calls, messages with a text."""

    def is_meant(answered: Answered) -> bool:
        message = answered.asked.arguments
        params = message.get("params") or {}
        asked = method in {None, message.get("method")} and tool in {None, params.get("name")}
        is_answer = answered.asked.path == MCP and status in {None, answered.status}
        return asked and is_answer and having.encode() in answered.asked.body

    return where(is_meant, change)


def in_text(change: Callable[[Document], None]) -> Change:
    """Change the JSON that the text of a result holds, and not the structured content."""

    def changed(document: Document) -> None:
        text = document["result"]["content"][0]
        content = json.loads(text["text"])
        change(content)
        text["text"] = json.dumps(content)

    return in_place(changed)


def _refused(change: Change) -> Wrap:
    return saying(change, having='"arguments":{}', tool="find_shop")


def without_token(change: Change) -> Change:
    def changed(answered: Answered) -> None:
        if all(name != TOKEN for name, _ in answered.asked.headers):
            change(answered)

    return changed


def closed(answered: Answered) -> None:
    error = {"code": -32001, "message": "A token is needed.", "data": {"code": "token_required"}}
    answered.be(401, {"jsonrpc": "2.0", "id": 1, "error": error})


def _structured(document: Document) -> None:
    document["result"]["structuredContent"] = json.loads(document["result"]["content"][0]["text"])


def _as_error(answered: Answered) -> None:
    error = {"code": -32602, "message": "query is required"}
    answered.be(200, {"jsonrpc": "2.0", "id": 1, "error": error})


def _as_result(answered: Answered) -> None:
    result: dict[str, Any] = {"isError": True, "content": [{"type": "text", "text": "no such tool"}]}
    answered.be(200, {"jsonrpc": "2.0", "id": 1, "result": result})


def _as_page(answered: Answered) -> None:
    answered.status = 200
    answered.body = b""
    answered.set_header(b"content-type", b"text/event-stream")


BREAKAGES: Final[tuple[Breakage, ...]] = (
    (
        "I3",
        "settles another version",
        saying(in_place(put("result.protocolVersion", "2024-11-05")), method="initialize"),
    ),
    (
        "I3",
        "lists tools without a description",
        saying(in_place(drop("result.tools.*.description")), method="tools/list"),
    ),
    (
        "I3",
        "lists a tool without its input",
        saying(in_place(put("result.tools.0.inputSchema", {})), method="tools/list"),
    ),
    ("I3", "says nothing in a result", saying(in_place(put("result.content", [])), tool="list_categories")),
    ("I5", "lists a tool less", saying(in_place(turn("result.tools", lambda tools: tools[:-1])), method="tools/list")),
    (
        "I5",
        "counts otherwise than REST",
        saying(in_text(turn("total_count", more)), tool="find_shop", having='"limit":3'),
    ),
    ("I5", "counts coupons otherwise", saying(in_text(turn("total_count", more)), tool="list_coupons", having="shop_")),
    ("I5", "leaves out structured content", saying(in_place(drop("result.structuredContent")), tool="get_trust")),
    ("I67", "asks for a token on initialize", saying(without_token(closed), method="initialize")),
    ("I67", "asks for a token to read", saying(without_token(closed), tool="list_categories")),
    ("E2", "sends structured errors", _refused(in_place(_structured))),
    ("E2", "calls no error one", _refused(in_place(put("result.isError", value=False)))),
    ("E2", "has words for a problem", _refused(in_place(put("result.content.0.text", "query is required")))),
    ("E2", "fails by the protocol", _refused(_as_error)),
    ("E2.protocol", "takes an unknown tool's call", saying(_as_result, tool="no_such_tool", status=None)),
    (
        "E2.protocol",
        "hides tools",
        saying(without_token(in_place(turn("result.tools", lambda tools: tools[:5]))), method="tools/list"),
    ),
    ("E2.protocol", "has a fault of its own", answering(MCP, lambda answered: answered.be(500, {}), 400)),
    ("E1.transport", "serves any origin", unheard(b"origin")),
    (
        "E1.transport",
        "refuses in REST's shape",
        answering(MCP, lambda answered: answered.be(406, {"code": "refused"}, b"application/problem+json"), 406),
    ),
    ("E1.transport", "holds a stream open", answering(MCP, _as_page, 405)),
)
