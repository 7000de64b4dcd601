"""A request to /mcp answered by the fast path and by the SDK, also of a tool that returns its input."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import Field
from starlette.types import Message, Scope

from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.dispatch import Dispatcher
from service.calls.live_data import LiveData
from service.errors import FieldError, InvalidInputError
from service.http.messages import BODY, request_context_of
from service.http.middleware import HttpMiddleware
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaClass, QuotaPolicy
from service.mcp_server.endpoint import McpEndpoint, PlainCall, call_over_http
from service.mcp_server.server import build_server
from service.reports.sqlite import SqliteReports
from service.runtime.caller import Proxies
from service.suggest.responder import SuggestResponder
from service.tools.request import Text, ToolRequest
from service.tools.tool import TokenRule, Tool, ToolContext, ToolResponse
from tests.support.wire import ABOUT
from tests.support.worlds import reference_world

MODERN: Final = "2026-07-28"
OLDER: Final = "2025-11-25"
_LEFT: Final = re.compile(rb";[rt]=\d+")

Lines = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """An answer without its request id, its length and the remainder of a quota; headers are sorted.

    The message is the parsed body, None without one; the text is that of the content, None in an error.
    """

    status: int
    headers: Lines
    message: Any
    text: bytes | None


class BothWays:
    """Two endpoints over one dispatcher; the one leaves every message to the SDK."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.short, self.sdk = _endpoint(dispatcher), _endpoint(dispatcher)
        read = self.short._read_plain
        self.taken = 0

        def counted(headers: list[tuple[bytes, bytes]], message: dict[str, Any]) -> PlainCall | None:
            plain = read(headers, message)
            self.taken += plain is not None
            return plain

        # Only which way a message goes is the test's; what happens on either is the service's own.
        self.short._read_plain = counted  # type: ignore[assignment]
        self.sdk._read_plain = _nothing_is_plain  # type: ignore[assignment]

    async def ask(self, headers: Lines, body: bytes) -> tuple[Sent, Sent]:
        return await _asked(self.short, headers, body), await _asked(self.sdk, headers, body)


def _nothing_is_plain(headers: list[tuple[bytes, bytes]], message: dict[str, Any]) -> PlainCall | None:
    del headers, message
    return None


def _endpoint(dispatcher: Dispatcher) -> McpEndpoint:
    trusted = Proxies(())
    # No test of plain calls completes anything: it is a responder over the same parts, as the service makes it.
    responder = SuggestResponder(dispatcher._live, dispatcher._admission, 0)
    server = build_server(dispatcher, responder, "1", call_over_http)
    sessions = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    return McpEndpoint(sessions, dispatcher, trusted, ["test"], ["http://test"])


async def _asked(endpoint: McpEndpoint, headers: Lines, body: bytes) -> Sent:
    scope = _scope(headers)
    start, *bodies = await _sent(endpoint, scope, body)
    own = request_context_of(scope).request_id.encode()
    raw_body = b"".join(part["body"] for part in bodies)
    assert int(dict(start["headers"]).get(b"content-length", 0)) == len(raw_body)
    lines = (
        (name, _LEFT.sub(b";-", value.replace(own, b"-")))
        for name, value in start["headers"]
        if name != b"content-length"
    )
    message = json.loads(raw_body.replace(own, b"-")) if raw_body else None
    content = (message or {}).get("result", {}).get("content")
    return Sent(start["status"], tuple(sorted(lines)), message, content[0]["text"].encode() if content else None)


async def _sent(endpoint: McpEndpoint, scope: Scope, body: bytes) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    # The gate has received the body.
    scope[BODY] = body
    await HttpMiddleware(endpoint)(scope, receive, send)
    return sent


def _scope(headers: Lines) -> Scope:
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": list(headers), "client": ("1.2.3.4", 5)}


def plain_headers(version: str | None, tool: str) -> Lines:
    """The headers of a plain call of a tool; None for a request that names no version."""
    lines = [(b"host", b"test"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
    if version is not None:
        lines.append((b"mcp-protocol-version", version.encode()))
    if version == MODERN:
        lines += [(b"mcp-method", b"tools/call"), (b"mcp-name", tool.encode())]
    return tuple(lines)


def plain_message(version: str | None, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": dict(arguments)} | ({"_meta": ABOUT} if version == MODERN else {})
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def raw(message: object) -> bytes:
    """A message's bytes."""
    return json.dumps(message).encode()


MANY: Final = QuotaClass(reads=10**9, suggest=10**9, reports=0)
VERSIONS: Final = (MODERN, OLDER, "2025-06-18", "2025-03-26", "2024-11-05", None)


class EchoRequest(ToolRequest):
    said: Annotated[Text, Field(description="Hexadecimal of UTF-8, so that any character may come.")]
    fails: Annotated[Text | None, Field(description="`refused` or `unforeseen`.")] = None


class Echo(ToolResponse):
    text: Annotated[str, Field(description="The text.")]
    words: Annotated[tuple[str, ...] | None, Field(description="Its words.")]
    length: Annotated[int, Field(description="Of the text.")]
    empty: Annotated[bool, Field(description="Whether there is none.")]


async def _echo(request: EchoRequest, _: ToolContext) -> Echo:
    text = bytes.fromhex(request.said).decode()
    if request.fails == "refused":
        raise InvalidInputError(text, [FieldError("said", text)])
    return Echo(text=text, words=tuple(text.split()) or None, length=len(text), empty=not text)


ECHO: Final = Tool(
    name="echo",
    title="Echo",
    description="Says it again.",
    request=EchoRequest,
    response=Echo,
    token=TokenRule.OPTIONAL,
    run=_echo,
    examples=(),
)


@dataclass(frozen=True, slots=True)
class Asked:
    headers: Lines
    body: bytes


def dispatcher(folder: Path, *tools: Tool[Any], quota: QuotaClass = MANY, timeout: float = 5.0) -> Dispatcher:
    """Some tools over the four-shop world; a call may take so many seconds."""
    verifier = TokenVerifier(SqliteTokenStore(folder / "tokens"))
    admission = Admission(verifier, MemoryLimiter(), QuotaPolicy(quota))
    live = LiveData(reference_world(folder), timeout)
    return Dispatcher(tools, live, admission, SqliteReports(folder / "reports"), timeout=timeout)


def answered(over: Dispatcher, *asked: Asked) -> tuple[list[tuple[Sent, Sent]], int]:
    """What the fast path and the SDK answer to each, and how many the fast path took."""

    async def all_of_them() -> tuple[list[tuple[Sent, Sent]], int]:
        ways = BothWays(over)
        async with ways.short._sessions.run(), ways.sdk._sessions.run():
            return [await ways.ask(one.headers, one.body) for one in asked], ways.taken

    return asyncio.run(all_of_them())


def plain(version: str | None, tool: str, arguments: Mapping[str, Any], **members: Any) -> Asked:  # noqa: ANN401 - JSON
    """A plain call; `members` replace some of the message's."""
    return Asked(plain_headers(version, tool), raw(plain_message(version, tool, arguments) | members))


def changed(asked: Asked, *lines: tuple[bytes, bytes], without: bytes = b"") -> Asked:
    others = tuple(line for line in asked.headers if line[0] != without)
    return Asked((*others, *lines), asked.body)
