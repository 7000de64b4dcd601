"""Servers that are wrong in one way: the real application with one behaviour changed, on its way in or out."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Document = dict[str, Any]
Wrap = Callable[[ASGIApp], ASGIApp]


@dataclass(slots=True)
class Asked:
    """A request that may be changed before the application sees it; header names in lower case."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def arguments(self) -> Document:
        """The JSON object of the body; an empty one where there is none."""
        try:
            found = json.loads(self.body or b"{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @arguments.setter
    def arguments(self, arguments: Mapping[str, Any]) -> None:
        self.body = json.dumps(arguments).encode()


@dataclass(slots=True)
class Answered:
    """An answer that may be changed before the client sees it; header names in lower case."""

    asked: Asked
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON value
        """The body as JSON."""
        return json.loads(self.body)

    @document.setter
    def document(self, document: object) -> None:
        self.body = json.dumps(document, ensure_ascii=False).encode()

    def be(self, status: int, document: object, media_type: bytes = b"application/json") -> None:
        """Be another answer altogether."""
        self.status = status
        self.document = document
        self.set_header(b"content-type", media_type)

    def set_header(self, name: bytes, value: bytes | None) -> None:
        """Replace a header, or take it away."""
        self.headers = [(found, value) for found, value in self.headers if found != name]
        if value is not None:
            self.headers.append((name, value))


class Changed:
    """An application around another one: `before` may change each request, `after` each answer."""

    def __init__(
        self,
        app: ASGIApp,
        before: Callable[[Asked], None] | None = None,
        after: Callable[[Answered], None] | None = None,
    ) -> None:
        self._app = app
        self._before = before
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is not HTTP goes through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Asked(
            scope["method"], scope["path"], scope["query_string"], list(scope["headers"]), await _body(receive)
        )
        if self._before is not None:
            self._before(asked)
        answered = await self._answered(scope, asked)
        if self._after is not None:
            self._after(answered)
        if answered.body or any(name == b"content-length" for name, _ in answered.headers):
            answered.set_header(b"content-length", str(len(answered.body)).encode())
        await send({"type": "http.response.start", "status": answered.status, "headers": answered.headers})
        await send({"type": "http.response.body", "body": answered.body})

    async def _answered(self, scope: Scope, asked: Asked) -> Answered:
        headers = [(name, value) for name, value in asked.headers if name != b"content-length"]
        headers.append((b"content-length", str(len(asked.body)).encode()))
        inner = {
            **scope,
            "method": asked.method,
            "path": asked.path,
            "raw_path": asked.path.encode(),
            "query_string": asked.query,
            "headers": headers,
        }
        answered = Answered(asked, 500, [], b"")
        messages: list[Message] = [{"type": "http.request", "body": asked.body, "more_body": False}]

        async def receive() -> Message:
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered.status = message["status"]
                answered.headers = [(name.lower(), value) for name, value in message["headers"]]
            elif message["type"] == "http.response.body":
                answered.body += message.get("body", b"")

        await self._app(inner, receive, send)
        return answered


@dataclass(frozen=True, slots=True)
class Breakage:
    """A server that is wrong in one way.

    Attributes:
        rule: the rule that it breaks.
        how: what it does, in a few words.
        wrap: makes it from the right application.
        also: rules that say the same thing in other words, and so are broken too.
    """

    rule: str
    how: str
    wrap: Wrap
    also: tuple[str, ...] = ()

    @property
    def broken(self) -> frozenset[str]:
        """All rules that it breaks."""
        return frozenset({self.rule, *self.also})


ANY: Final = ""
_TOOL: Final = "/tool/"


def answering(path: str, change: Callable[[Answered], None], status: int | None = 200) -> Wrap:
    """A server that changes its answers on a path, or on ANY: those of one status, or of any (None).

    A tool is changed over every transport alike: what REST does, `tools/call` over MCP does as well.
    """

    def after(answered: Answered) -> None:
        if path in {ANY, answered.asked.path} and status in {None, answered.status}:
            change(answered)

    return lambda app: Changed(app, after=_at_all_transports(after) if path.startswith(_TOOL) else after)


def rewriting(path: str, change: Callable[[Document], None], status: int = 200) -> Wrap:
    """A server that changes the JSON objects of its answers on a path, in place."""
    return answering(path, in_place(change), status)


def in_place(change: Callable[[Document], None]) -> Callable[[Answered], None]:
    """An answer whose JSON object is changed."""

    def changed(answered: Answered) -> None:
        document = answered.document
        change(document)
        answered.document = document

    return changed


def hearing(path: str, change: Callable[[Document], Mapping[str, Any]]) -> Wrap:
    """A server whose tool takes other arguments than it was given, over every transport."""

    def before(asked: Asked) -> None:
        if asked.path == path and asked.method == "POST":
            given = _plain_object(asked.body)
            # What is hostile stays as it came.
            if given is not None and (changed := dict(change(given))) != given:
                asked.arguments = changed
        message = asked.arguments
        if _tool_of(asked) == path and "arguments" in message["params"]:
            params = {**message["params"], "arguments": dict(change(message["params"]["arguments"]))}
            asked.arguments = {**message, "params": params}

    return lambda app: Changed(app, before=before)


def _plain_object(body: bytes) -> Document | None:
    """The JSON object of a body, if it is one without a name twice and without what JSON has no number for."""

    def each_once(pairs: list[tuple[str, Any]]) -> Document:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def no_number(_: str) -> None:
        raise ValueError

    try:
        found = json.loads(body, object_pairs_hook=each_once, parse_constant=no_number)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


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
