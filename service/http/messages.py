"""HTTP messages: requests are read strictly, and responses are values, which ASGI endpoints send (E1, E6, I5).

Errors are RFC 9457 problem documents. All responses have security headers, the server's own refusals included; a header
that an endpoint sets itself takes precedence. `x-frame-options` is missing because all browsers of the last ten years
support `frame-ancestors`. `strict-transport-security` is sent only where the operator states that clients use TLS,
because a browser that has seen it never uses plain HTTP again.
"""

from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from index_mappings.generations import Stamp
from service.errors import (
    MAX_BODY_BYTES,
    BodyTooLargeError,
    InvalidInputError,
    MethodNotAllowedError,
    ServiceError,
    UnsupportedMediaTypeError,
)
from service.runtime.caller import Caller, Channel, Proxies, origin_of
from service.runtime.request_context import RequestContext, current, new_request_context, new_request_id

Headers = tuple[tuple[bytes, bytes], ...]
TokenReader = Callable[[Iterable[tuple[bytes, bytes]]], str | None]

JSON: Final = b"application/json"
PROBLEM_JSON: Final = b"application/problem+json"
TOKEN_HEADER: Final = b"x-api-token"
OPS_KEY_HEADER: Final = b"x-ops-key"
READING: Final = ("GET", "HEAD")
NO_STORE: Final = (b"cache-control", b"no-store")
# The key of a request's context in its scope.
REQUEST_CONTEXT: Final = "shop_directory.request_context"
# The key of a request's body in its scope, or of the error for a body that can't be read.
BODY: Final = "shop_directory.body"
CONTENT_SECURITY_POLICY: Final = b"content-security-policy"
RESOURCE_POLICY: Final = b"cross-origin-resource-policy"

# An answer is data: it loads nothing, runs nothing and is shown in no frame. A page sets a policy of its own.
_PLAIN: Final = (b"", b"identity")
_ALWAYS: Final[Headers] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (CONTENT_SECURITY_POLICY, b"default-src 'none'; frame-ancestors 'none'"),
)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The value of the first header with a lower-case name; None without one."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def entity_tags(if_none_match: str | None) -> frozenset[str]:
    """The entity tags in a value of If-None-Match, without weakness marks, which do not matter for GET."""
    if if_none_match is None:
        return frozenset()
    return frozenset(tag.strip().removeprefix("W/") for tag in if_none_match.split(","))


def is_json(content_type: str | None) -> bool:
    """Whether a Content-Type is application/json, with any parameters."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


async def read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> bytes | ServiceError:
    """Read a request body of at most 64 KiB, whatever its declared length.

    The result is an error if the body is encoded, or longer, of which no more is read than shows it, or if the client
    disconnected before its end. It is not raised, as the checks before that of the body come first (R5). A byte order
    mark before the text is dropped (E6).
    """
    if any(name == b"content-encoding" and value.strip().lower() not in _PLAIN for name, value in headers):
        return UnsupportedMediaTypeError(
            "The body has a content-encoding. Send it as it is, without compression and without that header."
        )
    declared = header(headers, b"content-length")
    if declared is not None and declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES:
        return BodyTooLargeError()
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return InvalidInputError("The body ended early.")
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return BodyTooLargeError()
        if not message.get("more_body", False):
            return bytes(body.removeprefix(BOM_UTF8))


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, without a media type if it has no body.

    `headers` are all but content-type and content-length. The outcome is the code of a problem, for the log and the
    metrics; None derives it from the status.
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


def constant_endpoint(answer: Answer) -> Endpoint:
    """The endpoint of an answer that is always the same."""

    async def constant(_: Request) -> Answer:
        return answer

    return Endpoint(READING, constant)


def request_context_of(scope: Scope) -> RequestContext:
    """The context of a request, which is created on first use."""
    request: RequestContext | None = scope.get(REQUEST_CONTEXT)
    if request is None:
        request = scope[REQUEST_CONTEXT] = new_request_context(new_request_id())
    return request


def api_token(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The API token of a request."""
    return header(headers, TOKEN_HEADER) or None


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The OAuth access token of a request; None also if it has several headers that may hold one."""
    values = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() or None if scheme.lower() == "bearer" else None


def http_caller(scope: Scope, channel: Channel, trusted: Proxies, token_of: TokenReader = api_token) -> Caller:
    """The caller of a request: its token, and the address and country that trusted proxies report (Q3)."""
    peer = scope.get("client")
    origin = origin_of(peer[0] if peer else None, scope["headers"], trusted)
    token = token_of(scope["headers"])
    return Caller(channel, request_context_of(scope).request_id, token, origin.address, origin.country)


def json_answer(document: dict[str, Any], headers: Headers = ()) -> Answer:
    """A JSON document with status 200."""
    return Answer(200, orjson.dumps(document), JSON, headers)


def problem_answer(error: ServiceError, headers: Headers = (), body: bytes | None = None) -> Answer:
    """The problem document of an error; `body` is the encoded document where the caller has it already."""
    headers = (*headers, *error.headers)
    if error.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % error.retry_after))
    return Answer(
        error.status, orjson.dumps(error.problem()) if body is None else body, PROBLEM_JSON, headers, error.code
    )


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


def security_headers(hsts_seconds: int = 0, *, any_origin: bool = False) -> Headers:
    """The security headers of an answer, with Strict-Transport-Security unless `hsts_seconds` is 0.

    Pages of any origin may load an answer with `any_origin`, as they may load /suggest (C3).
    """
    resource = (RESOURCE_POLICY, b"cross-origin" if any_origin else b"same-origin")
    transport = ((b"strict-transport-security", b"max-age=%d" % hsts_seconds),) if hsts_seconds else ()
    return (*_ALWAYS, resource, *transport)


def with_defaults(own: Iterable[tuple[bytes, bytes]], defaults: Headers) -> list[tuple[bytes, bytes]]:
    """An answer's own headers, and the defaults whose names are not among them."""
    headers = list(own)
    names = {name.lower() for name, _ in headers}
    headers += [default for default in defaults if default[0] not in names]
    return headers
