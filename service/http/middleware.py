"""Middleware around the whole application: the access log, compression, and what all HTTP responses share.

The access log is the outermost one: one log line and one count for each request, early refusals included, with the
status that the client received. The innermost one adds the request id, no-store, CORS and security headers, and turns
exceptions into problem documents, which have the request id and nothing of the exception (E5).

Answers of a kilobyte or more are compressed for callers who accept gzip, by Starlette's responder: HEAD is answered as
GET, equal answers stay equal bytes, and constant answers are compressed once. Answers hold no secrets and browsers
attach no credentials by themselves, so the length of a compressed answer discloses nothing (BREACH).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final
from zlib import DEFLATED, MAX_WBITS, compressobj

import orjson
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipResponder
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InternalError
from service.http.messages import (
    NO_STORE,
    PROBLEM_JSON,
    Answer,
    Headers,
    header,
    problem_answer,
    request_context_of,
    security_headers,
    with_defaults,
)
from service.runtime.caller import Channel
from service.runtime.request_context import LEFT, RequestContext, bind_request, new_request_id
from service.runtime.telemetry import NO_ROUTE, Metrics, log_call
from service.runtime.tracing import CallTracer, header_texts

SUGGEST_PATH: Final = "/suggest"

_EXPOSED: Final = b"x-request-id, x-generation, x-data-as-of, retry-after, ratelimit, ratelimit-policy, etag"
_ALLOWED_HEADERS: Final = (
    b"content-type, accept, if-none-match, x-api-token, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)
_ANY_ORIGIN: Final[Headers] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", _EXPOSED),
)
_PREFLIGHT_SECONDS: Final = b"600"
_VARY: Final = (b"vary", b"origin")
_NO_ROUTES: Final[Mapping[str, ASGIApp]] = MappingProxyType({})
_LOG: Final = logging.getLogger(__name__)


class HttpMiddleware:
    """Middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        cors_origins: Iterable[str] = (),
        draining: asyncio.Event | None = None,
        hsts_seconds: int = 0,
        direct_routes: Mapping[str, ASGIApp] = _NO_ROUTES,
    ) -> None:
        """Wrap an application.

        Args:
            app: the application.
            cors_origins: origins that may read answers other than those of /suggest, which all may read (C3).
            draining: set when the process is stopping; each answer is then the last one of its connection.
            hsts_seconds: max-age of Strict-Transport-Security; 0 omits the header.
            direct_routes: endpoints by path that are called without the application, whose routing would cost more
                than everything else around them.
        """
        self._app = app
        self._direct_routes = direct_routes
        self._origins = frozenset(cors_origins)
        # Answers are not cached unless the endpoint allows it (C1).
        self._private = (*security_headers(hsts_seconds), NO_STORE)
        self._public = (*security_headers(hsts_seconds, any_origin=True), NO_STORE)
        self._draining = draining or asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = request_context_of(scope)
        request_id = request.request_id
        common: Headers = ((b"x-request-id", request_id.encode()),)
        if self._draining.is_set():
            common += ((b"connection", b"close"),)
        cors = self._cors(scope)
        defaults = self._public if scope["path"] == SUGGEST_PATH else self._private
        started = False

        async def send_with_common(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": with_defaults((*message["headers"], *common, *cors), defaults)}
            await send(message)

        if _allows(cors) and _is_preflight(scope):
            await _preflight(scope).send(send_with_common)
            return
        try:
            with bind_request(request):
                await self._direct_routes.get(scope["path"], self._app)(scope, receive, send_with_common)
        except asyncio.CancelledError:
            if not request.disconnected:
                raise
            # There is no client to send a response to.
            request.outcome = LEFT
        except Exception:
            _LOG.exception("request=%s path failed", request_id)
            if started:
                # The client has received part of an answer: only a broken connection shows that it is incomplete.
                raise
            await problem_answer(InternalError()).send(send_with_common)

    def _cors(self, scope: Scope) -> Headers:
        if scope["path"] == SUGGEST_PATH:
            return _ANY_ORIGIN
        if not self._origins:
            return ()
        origin = header(scope["headers"], b"origin")
        if origin not in self._origins:
            # The answer depends on the origin: a cache must not serve it to another one.
            return (_VARY,)
        # Credentials are never allowed: the service uses no cookies, and a page sends a token explicitly.
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED),
            _VARY,
        )


def uncaught_exception_handler(hsts_seconds: int) -> Callable[[Request, Exception], Coroutine[Any, Any, Response]]:
    """The framework's handler of exceptions of the middleware itself: an internal error as a problem document."""
    headers = [*security_headers(hsts_seconds), NO_STORE, (b"content-type", PROBLEM_JSON)]

    async def handle(_: Request, fault: Exception) -> Response:
        request_id = new_request_id()
        _LOG.error("request=%s the middleware failed", request_id, exc_info=fault)
        error = InternalError()
        response = Response(orjson.dumps(error.problem()), error.status)
        response.raw_headers += [*headers, (b"x-request-id", request_id.encode())]
        return response

    return handle


def suggest_headers(hsts_seconds: int) -> Headers:
    """The headers that all answers of /suggest have besides those of the endpoint."""
    return (*_ANY_ORIGIN, *security_headers(hsts_seconds, any_origin=True))


def _allows(cors: Headers) -> bool:
    return any(name == b"access-control-allow-origin" for name, _ in cors)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and header(scope["headers"], b"access-control-request-method") is not None


def _preflight(scope: Scope) -> Answer:
    methods = b"GET, HEAD" if scope["path"] == SUGGEST_PATH else b"GET, HEAD, POST"
    headers = (
        (b"access-control-allow-methods", methods),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    )
    return Answer(204, b"", None, headers)


_MCP_PATH: Final = "/mcp"
_TOOLS: Final = "/tool/"
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})

_OTHER_PATHS: Final = {
    SUGGEST_PATH: "suggest",
    _MCP_PATH: "mcp",
    "/health": "health",
    "/ready": "ready",
    "/version": "version",
    "/openapi.json": "openapi",
    "/api/ops/state": "ops_state",
    "/metrics": "metrics",
    "/metrics/resources": "metrics_resources",
}


def route_labels(tools: Iterable[str]) -> dict[str, str]:
    """The label of each path in the log and the metrics."""
    return {**{f"{_TOOLS}{tool}": tool for tool in tools}, **_OTHER_PATHS}


class AccessLog:
    """Middleware that logs, counts and traces requests."""

    def __init__(
        self, app: ASGIApp, routes: Mapping[str, str], metrics: Metrics, traces: CallTracer | None = None
    ) -> None:
        """Wrap an application, which stores what it learns of a request in the request's context.

        Paths without a label in `routes` have none in the log, so that no caller can create labels. `traces` starts a
        span for each call of a tool and of /suggest; /mcp starts its own with more attributes.
        """
        self._app = app
        self._routes = routes
        self._metrics = metrics
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and log it afterwards."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, path = request_context_of(scope), scope["path"]
        if self._traces is not None and (path == SUGGEST_PATH or path.startswith(_TOOLS)):
            self._trace(self._traces, request, scope)
        status: int | None = None

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            channel = Channel.MCP if path == _MCP_PATH else Channel.REST
            route = self._routes.get(path, NO_ROUTE)
            log_call(self._metrics, request, channel=channel.value, route=route, status=status)

    def _trace(self, traces: CallTracer, request: RequestContext, scope: Scope) -> None:
        path, method = scope["path"], scope["method"]
        # No caller can create names of spans.
        if path not in self._routes or method not in _METHODS:
            path, method = "unknown", "HTTP"
        attributes = {"http.request.method": method, "http.route": path}
        traces.begin(request, f"{method} {path}", partial(header_texts, scope["headers"]), attributes)


VARY: Final = (b"vary", b"Accept-Encoding")
MIN_BYTES: Final = 1_024

_GZIP: Final = (b"content-encoding", b"gzip")
# A higher level makes a page of 50 shops 2% smaller and takes 20% more time.
_LEVEL: Final = 5
_LEVEL_OF_CONSTANTS: Final = 9
_GZIP_FORMAT: Final = 16 + MAX_WBITS
# Events are sent without delay.
_STREAMED: Final = ("text/event-stream",)
_REFUSED: Final = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})


class Compression:
    """Middleware that compresses answers."""

    def __init__(self, app: ASGIApp, untouched: Iterable[str] = ()) -> None:
        """Wrap an application; answers of `untouched` paths are never compressed."""
        self._app = app
        self._untouched = frozenset(untouched)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in self._untouched or not accepts_gzip(scope["headers"]):
            # No Vary is needed: cacheable answers that have a compressed variant set it themselves.
            await self._app(scope, receive, send)
        elif scope["method"] == "HEAD":

            async def send_head(message: Message) -> None:
                await send(_head_of_get(message))

            await self._app(scope, receive, send_head)
        else:
            await GZipResponder(self._app, MIN_BYTES, _LEVEL, exclude_content_types=_STREAMED)(scope, receive, send)


def accepts_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request's Accept-Encoding allows gzip."""
    for part in (header(headers, b"accept-encoding") or "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in _REFUSED
    return False


def compressed(answer: Answer) -> Answer | None:
    """A constant answer, compressed; None where it is too short."""
    if len(answer.body) < MIN_BYTES:
        return None
    return replace(answer, body=_gzip(answer.body), headers=(*answer.headers, _GZIP, VARY))


@lru_cache(maxsize=64)
def _gzip(body: bytes) -> bytes:
    compressor = compressobj(_LEVEL_OF_CONSTANTS, DEFLATED, _GZIP_FORMAT)
    return compressor.compress(body) + compressor.flush()


def _head_of_get(message: Message) -> Message:
    """The head of an answer to HEAD as it would be for GET, without content-length where GET is compressed."""
    if message["type"] != "http.response.start":
        return message
    headers = MutableHeaders(raw=list(message["headers"]))
    length = headers.get("content-length", "")
    if "content-encoding" not in headers and length.isdecimal() and int(length) >= MIN_BYTES:
        headers.add_vary_header("Accept-Encoding")
        headers["content-encoding"] = "gzip"
        del headers["content-length"]
    return {**message, "headers": headers.raw}
