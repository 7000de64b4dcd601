"""Servers that are wrong in one way: the real application with one behaviour changed, and the single changes."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Document = dict[str, Any]
Change = Callable[["Answered"], None]
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
        return json.loads(self.body)

    @document.setter
    def document(self, document: object) -> None:
        self.body = json.dumps(document, ensure_ascii=False).encode()

    def be(self, status: int, document: object, media_type: bytes = b"application/json") -> None:
        self.status = status
        self.document = document
        self.set_header(b"content-type", media_type)

    def set_header(self, name: bytes, value: bytes | None) -> None:
        self.headers = [(found, value) for found, value in self.headers if found != name]
        if value is not None:
            self.headers.append((name, value))


class Changed:
    """An application around another one: `before` may change each request, `after` each answer."""

    def __init__(
        self, app: ASGIApp, before: Callable[[Asked], object] = lambda _: None, after: Change = lambda _: None
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
        self._before(asked)
        answered = await self._answered(scope, asked)
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


# A rule, how a server breaks it, and what makes that server of the right application.
Breakage = tuple[str, str, Wrap]
ANY: Final = ""


def where(is_meant: Callable[[Answered], bool], change: Change) -> Wrap:
    """A server that changes those answers."""

    def after(answered: Answered) -> None:
        if is_meant(answered):
            change(answered)

    return lambda app: Changed(app, after=after)


def answering(path: str, change: Change, status: int | None = 200) -> Wrap:
    """A server that changes its answers on a path, or on ANY: those of one status, or of any (None)."""
    return where(lambda answered: path in {ANY, answered.asked.path} and status in {None, answered.status}, change)


def asking(name: str, value: object, change: Change) -> Change:
    """A change of those answers whose request has an argument with this value, or with any (ANY)."""

    def changed(answered: Answered) -> None:
        given = answered.asked.arguments
        if name in given and value in (ANY, given[name]):
            change(answered)

    return changed


def unheard(name: bytes) -> Wrap:
    """A server that does not look at a header."""

    def before(asked: Asked) -> None:
        asked.headers = [(found, value) for found, value in asked.headers if found != name]

    return asked_otherwise(before)


def asked_otherwise(change: Callable[[Asked], None]) -> Wrap:
    """A server that takes each request for another one."""
    return lambda app: Changed(app, before=change)


def rewriting(path: str, change: Callable[[Document], None], status: int = 200) -> Wrap:
    """A server that changes the JSON objects of its answers on a path, in place."""
    return answering(path, in_place(change), status)


def in_place(change: Callable[[Document], None]) -> Change:
    def changed(answered: Answered) -> None:
        document = answered.document
        change(document)
        answered.document = document

    return changed


def hearing(path: str, change: Callable[[Document], Mapping[str, Any]]) -> Wrap:
    def before(asked: Asked) -> None:
        if asked.path == path:
            asked.arguments = change(asked.arguments)

    return asked_otherwise(before)


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def put(path: str, value: Any) -> Callable[[Document], None]:  # noqa: ANN401 - any JSON value
    """A document has this value at a path such as `results.0.name`, if it is that deep; `*` stands for each one."""
    *parents, name = path.split(".")

    def change(document: Document) -> None:
        for found in _at(document, parents):
            found[name] = value

    return change


def turn(path: str, change: Callable[[Any], object]) -> Callable[[Document], None]:
    *parents, name = path.split(".")

    def changed(document: Document) -> None:
        for found in _at(document, parents):
            if name in found:
                found[name] = change(found[name])

    return changed


def drop(path: str) -> Callable[[Document], None]:
    *parents, name = path.split(".")

    def change(document: Document) -> None:
        for found in _at(document, parents):
            found.pop(name, None)

    return change


def header(name: bytes, value: bytes | None) -> Change:
    return lambda answered: answered.set_header(name, value)


def more(number: int) -> int:
    return number + 1


def backwards(values: list[Any]) -> list[Any]:
    return values[::-1]


def status(code: int) -> Change:
    def change(answered: Answered) -> None:
        answered.status = code

    return change


def body(content: bytes) -> Change:
    def change(answered: Answered) -> None:
        answered.body = content

    return change


def spelling(change: Callable[[bytes], bytes]) -> Change:
    def changed(answered: Answered) -> None:
        answered.body = change(answered.body)

    return changed


def objects(found: object) -> Iterator[Document]:
    """All objects in a JSON value."""
    if isinstance(found, dict):
        yield found
    if isinstance(found, dict | list):
        for one in list(found.values()) if isinstance(found, dict) else found:
            yield from objects(one)


def argument(name: str, kind: type, change: Callable[[Any], Any]) -> Callable[[Document], Document]:
    def changed(arguments: Document) -> Document:
        given = arguments.get(name)
        return {**arguments, name: change(given)} if isinstance(given, kind) else arguments

    return changed


def without(name: str) -> Callable[[Document], Document]:
    return lambda arguments: {other: value for other, value in arguments.items() if other != name}


def default(name: str, value: Any) -> Callable[[Document], Document]:  # noqa: ANN401 - any JSON value
    return lambda arguments: {name: value, **arguments}


def _at(found: Any, steps: list[str]) -> Iterator[Any]:  # noqa: ANN401 - any JSON value
    match steps:
        case [] if found is not None:
            yield found
        case ["*", *others]:
            for one in found.values() if isinstance(found, dict) else found:
                yield from _at(one, others)
        case [step, *others] if isinstance(found, list):
            yield from _at(found[int(step)], others)
        case [step, *others] if step in found:
            yield from _at(found[step], others)
