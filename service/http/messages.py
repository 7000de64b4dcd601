"""HTTP responses as values, and the ASGI endpoints that send them. Errors are RFC 9457 problem documents (E1)."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from index_mappings.generations import Stamp
from service.errors import MethodNotAllowedError, ServiceError
from service.runtime.addresses import Proxies, origin_of
from service.runtime.caller import Caller, Channel, new_request_id
from service.runtime.request_context import RequestContext, current, new_request_context
from service.runtime.wire import JSON, encode, header

Headers = tuple[tuple[bytes, bytes], ...]

PROBLEM_JSON: Final = b"application/problem+json"
TOKEN_HEADER: Final = b"x-api-token"
NO_STORE: Final = (b"cache-control", b"no-store")
# The key of a request's context in its scope.
REQUEST_CONTEXT: Final = "shop_directory.request_context"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response.

    Attributes:
        status: the HTTP status.
        body: the bytes.
        media_type: of the body; None without one.
        headers: all but content-type and content-length.
        outcome: the code of a problem, for the log and the metrics; None derives it from the status.
    """

    status: int
    body: bytes
    media_type: bytes | None = JSON
    headers: Headers = ()
    outcome: str | None = None

    @property
    def content_headers(self) -> Headers:
        """The headers of the body."""
        if self.media_type is None:
            return ()
        return (b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body))

    async def send(self, send: Send, *, head_only: bool = False) -> None:
        """Send the response over ASGI, and set the outcome of the current request."""
        if self.outcome is not None and (request := current()) is not None:
            request.outcome = self.outcome
        headers = [*self.headers, *self.content_headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head_only else self.body})

    def to_wire(self, headers: Headers) -> bytes:
        """The whole response as bytes, with more headers, for connections that are written to directly."""
        lines = header_lines((*headers, *self.headers, *self.content_headers))
        return b"%b%b\r\n%b" % (status_line(self.status), lines, self.body)


class Endpoint:
    """The ASGI endpoint of one path: checks the method, and sends an answer."""

    def __init__(self, methods: tuple[str, ...], answer: Callable[[Request], Awaitable[Answer]]) -> None:
        self._methods = methods
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] not in self._methods:
            await method_not_allowed(self._methods).send(send)
            return
        answer = await self._answer(Request(scope, receive))
        await answer.send(send, head_only=scope["method"] == "HEAD")


def request_context_of(scope: Scope) -> RequestContext:
    """The context of a request, which is created on first use."""
    request: RequestContext | None = scope.get(REQUEST_CONTEXT)
    if request is None:
        request = scope[REQUEST_CONTEXT] = new_request_context(new_request_id())
    return request


def http_caller(scope: Scope, channel: Channel, trusted: Proxies) -> Caller:
    """The caller of a request: its token, and the address and country that trusted proxies report (Q3).

    Args:
        scope: the ASGI scope.
        channel: the transport of the call.
        trusted: the configured proxies.
    """
    peer = scope.get("client")
    origin = origin_of(peer[0] if peer else None, scope["headers"], trusted)
    token = header(scope["headers"], TOKEN_HEADER)
    return Caller(channel, request_context_of(scope).request_id, token or None, origin.address, origin.country)


def json_answer(document: dict[str, Any], headers: Headers = ()) -> Answer:
    """A JSON document with status 200."""
    return Answer(200, encode(document), JSON, headers)


def problem_answer(error: ServiceError, headers: Headers = (), body: bytes | None = None) -> Answer:
    """The problem document of an error; `body` is the encoded document where the caller has it already."""
    headers = (*headers, *error.headers)
    if error.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % error.retry_after))
    return Answer(error.status, encode(error.problem()) if body is None else body, PROBLEM_JSON, headers, error.code)


def method_not_allowed(methods: tuple[str, ...]) -> Answer:
    """405 with the allowed methods."""
    return problem_answer(MethodNotAllowedError(), ((b"allow", ", ".join(methods).encode()),))


def stamp_headers(stamp: Stamp | None) -> Headers:
    """The headers that name the generation and the time of an answer's data; none without a stamp (C2)."""
    if stamp is None:
        return ()
    return (b"x-generation", stamp.generation.encode()), (b"x-data-as-of", stamp.built_at.encode())


def status_line(status: int) -> bytes:
    """The first line of a response's head."""
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


def header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Headers as lines of a head."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
