"""Tools that are wrong in one way, and over every transport alike: what REST does, `tools/call` over MCP does as well.

`answering`, `rewriting` and `hearing` are those of `breaking`, for tools.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.types import ASGIApp

from tests.people.check import breaking
from tests.people.check.breaking import Answered, Asked, Changed, Document, in_place

_MCP: Final = "/mcp"
_TOOL: Final = "/tool/"


def answering(path: str, change: Callable[[Answered], None], status: int | None = 200) -> Callable[[ASGIApp], ASGIApp]:
    """A server that changes a tool's answers of one status, or of any (None)."""

    def after(answered: Answered) -> None:
        if status in {None, answered.status} and answered.asked.path == path:
            change(answered)

    return lambda app: Changed(app, after=_at_all_transports(after))


def rewriting(path: str, change: Callable[[Document], None], status: int = 200) -> Callable[[ASGIApp], ASGIApp]:
    """A server that changes the JSON objects of a tool's answers, in place."""
    return answering(path, in_place(change), status)


def hearing(path: str, change: Callable[[Document], Mapping[str, Any]]) -> Callable[[ASGIApp], ASGIApp]:
    """A server whose tool takes other arguments than it was given."""
    by_rest = breaking.hearing(path, change)

    def before(asked: Asked) -> None:
        message = asked.arguments
        if _tool_of(asked) == path and "arguments" in message["params"]:
            asked.arguments = {
                **message,
                "params": {**message["params"], "arguments": dict(change(message["params"]["arguments"]))},
            }

    return lambda app: by_rest(Changed(app, before=before))


def _tool_of(asked: Asked) -> str | None:
    """The tool's path of a call over MCP."""
    match asked.path, asked.arguments:
        case "/mcp", {"method": "tools/call", "params": {"name": str(name)}}:
            return _TOOL + name
    return None


def _at_all_transports(change: Callable[[Answered], None]) -> Callable[[Answered], None]:
    """Change an answer of REST as it is, and one of MCP as if it had come over REST."""

    def after(answered: Answered) -> None:
        tool = _tool_of(answered.asked)
        if tool is None:
            change(answered)
            return
        message = json.loads(answered.body)
        match message:
            case {"result": {"content": [{"text": str(text)}]}}:
                arguments = answered.asked.arguments["params"].get("arguments", {})
                asked = Asked("POST", tool, b"", [], json.dumps(arguments).encode())
                as_rest = Answered(asked, _status(message["result"], text), [], text.encode())
                change(as_rest)
                if as_rest.body != text.encode():
                    answered.document = {**message, "result": _result(message["result"], as_rest)}

    return after


def _status(result: Document, text: str) -> int:
    return int(json.loads(text)["status"]) if result.get("isError") else 200


def _result(result: Document, as_rest: Answered) -> Document:
    remaining = {
        name: value for name, value in result.items() if name not in {"content", "structuredContent", "isError"}
    }
    content = [{"type": "text", "text": as_rest.body.decode()}]
    if as_rest.status == 200:
        return {**remaining, "content": content, "structuredContent": as_rest.document, "isError": False}
    return {**remaining, "content": content, "isError": True}
