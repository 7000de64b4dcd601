"""The layer around all endpoints: what all HTTP responses share, and one log line and one count for each.

An exception becomes a problem document, which has the request id and nothing of the exception (E5). The line and the
count have the status that the client received, early refusals included. /suggest is not compressed, so that its fast
path need not do it either.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InternalError, OriginNotAllowedError
from service.http.compression import compressing
from service.http.messages import (
    NO_STORE,
    Answer,
    Headers,
    header,
    problem_answer,
    request_context_of,
    security_headers,
    with_defaults,
)
from service.runtime.caller import Channel
from service.runtime.telemetry import NO_ROUTE, log_call
from service.runtime.tracing import CallTracer, header_texts
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import (
    LEFT,
    RequestContext,
    bind_request,
    new_request_context,
    new_request_id,
)

SUGGEST_PATH: Final = "/suggest"
MCP_PATH: Final = "/mcp"
MCP_ROUTE: Final = "mcp"

_TOOLS: Final = "/tool/"
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
_OTHER_PATHS: Final = {
    SUGGEST_PATH: "suggest",
    MCP_PATH: MCP_ROUTE,
    f"{MCP_PATH}/": MCP_ROUTE,
    "/health": "health",
    "/ready": "ready",
    "/version": "version",
    "/openapi.json": "openapi",
    "/api/ops/state": "ops_state",
    "/metrics": "metrics",
    "/metrics/resources": "metrics_resources",
}
_ALLOW_ORIGIN: Final = b"access-control-allow-origin"
_EXPOSED: Final = b"x-request-id, x-generation, x-data-as-of, retry-after, ratelimit, ratelimit-policy, etag"
_EXPOSE: Final = b"access-control-expose-headers"
_ALLOWED_HEADERS: Final = (
    b"content-type, accept, if-none-match, x-api-token, authorization, mcp-protocol-version, mcp-method, mcp-name, "
    b"mcp-session-id"
)
_ANY_ORIGIN: Final[Headers] = ((_ALLOW_ORIGIN, b"*"), (_EXPOSE, _EXPOSED))
# Only pages of named origins may use what needs a token of an authorization server.
_EXPOSED_TO_NAMED: Final = (_EXPOSE, _EXPOSED + b", www-authenticate")
_PREFLIGHT_SECONDS: Final = b"600"
_VARY_ORIGIN: Final = (b"vary", b"origin")
_LOG: Final = logging.getLogger(__name__)


def route_labels(tools: Iterable[str]) -> dict[str, str]:
    """The label of each path in the log and the metrics."""
    return {**{f"{_TOOLS}{tool}": tool for tool in tools}, **_OTHER_PATHS}


class _Sent:
    """Sends an answer, and notes its status when it leaves: compression may hold it back, and fail."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


class HttpMiddleware:
    """Middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        direct_routes: Mapping[str, ASGIApp] = MappingProxyType({}),
        labels: Mapping[str, str] = MappingProxyType({}),
        metrics: Metrics = NO_METRICS,
        traces: CallTracer | None = None,
        cors_origins: Iterable[str] = (),
        draining: asyncio.Event | None = None,
        hsts_seconds: int = 0,
    ) -> None:
        """`direct_routes` are endpoints by path that are called without the application, whose routing would cost more.

        `labels` are the routes in the log and the metrics by path; other paths have none, so that no caller can create
        labels. `traces` starts a span for each call of a tool and of /suggest; /mcp starts its own. `cors_origins` may
        read answers other than those of /suggest, which all may read (C3). Once `draining` is set, each answer is the
        last one of its connection. Without `hsts_seconds` no Strict-Transport-Security is sent.
        """
        self._app = app
        self._direct_routes = direct_routes
        self._labels = labels
        self._metrics = metrics
        self._traces = traces
        self._origins = frozenset(cors_origins)
        # Answers are not cached unless the endpoint allows it (C1).
        self._private = (*security_headers(hsts_seconds), NO_STORE)
        self._public = (*security_headers(hsts_seconds, any_origin=True), NO_STORE)
        self._draining = draining or asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and log it afterwards."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        sent = _Sent(send)
        request: RequestContext | None = None
        own: Headers = ()
        cors: Headers = ()
        defaults = self._public if path == SUGGEST_PATH else self._private

        async def send_completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": with_defaults((*message["headers"], *own, *cors), defaults)}
                if request is not None and request.on_answer is not None:
                    request.on_answer()
            await send_compressed(message)

        try:
            request = request_context_of(scope)
            if self._traces is not None:
                self._trace(self._traces, request, scope)
            own, cors = self._own_headers(request), self._cors(scope)
            send_compressed = sent if path == SUGGEST_PATH else compressing(self._app, scope, sent)
            with bind_request(request):
                if _is_preflight(scope):
                    await _preflight_answer(path, allowed=_ALLOW_ORIGIN in dict(cors)).send(send_completed)
                else:
                    await self._direct_routes.get(path, self._app)(scope, receive, send_completed)
        except asyncio.CancelledError:
            if request is None or not request.disconnected:
                raise
            # There is no client to send a response to.
            request.outcome = LEFT
        except Exception:
            request = request or new_request_context(new_request_id())
            _LOG.exception("request=%s path failed", request.request_id)
            if sent.status is not None:
                # The client has received part of an answer: only a broken connection shows that it is incomplete.
                raise
            # Without the steps above, which may have failed.
            fault = problem_answer(InternalError(), (*self._own_headers(request), *cors, *defaults))
            request.outcome = fault.outcome
            await fault.send(sent)
        finally:
            if request is not None:
                route = self._labels.get(path, NO_ROUTE)
                channel = Channel.MCP if route == MCP_ROUTE else Channel.REST
                log_call(self._metrics, request, channel=channel.value, route=route, status=sent.status)

    def _own_headers(self, request: RequestContext) -> Headers:
        own: Headers = ((b"x-request-id", request.request_id.encode()),)
        return (*own, (b"connection", b"close")) if self._draining.is_set() else own

    def _cors(self, scope: Scope) -> Headers:
        if scope["path"] == SUGGEST_PATH:
            return _ANY_ORIGIN
        if not self._origins:
            return ()
        origin = header(scope["headers"], b"origin")
        if origin not in self._origins:
            # The answer depends on the origin: a cache must not serve it to another one.
            return (_VARY_ORIGIN,)
        # Credentials are never allowed: the service uses no cookies, and a page sends a token explicitly.
        return (_ALLOW_ORIGIN, origin.encode("latin-1")), _EXPOSED_TO_NAMED, _VARY_ORIGIN

    def _trace(self, traces: CallTracer, request: RequestContext, scope: Scope) -> None:
        path, method = scope["path"], scope["method"]
        if path != SUGGEST_PATH and not path.startswith(_TOOLS):
            return
        # No caller can create names of spans.
        if path not in self._labels or method not in _METHODS:
            path, method = "unknown", "HTTP"
        attributes = {"http.request.method": method, "http.route": path}
        traces.begin(request, f"{method} {path}", header_texts(scope["headers"]), attributes)


def suggest_headers(hsts_seconds: int) -> Headers:
    """The headers that all answers of /suggest have besides those of the endpoint."""
    return (*_ANY_ORIGIN, *security_headers(hsts_seconds, any_origin=True))


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and all(
        header(scope["headers"], name) is not None for name in (b"origin", b"access-control-request-method")
    )


def _preflight_answer(path: str, *, allowed: bool) -> Answer:
    if not allowed:
        return problem_answer(OriginNotAllowedError())
    headers = (
        (b"access-control-allow-methods", b"GET, HEAD" if path == SUGGEST_PATH else b"GET, HEAD, POST"),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    )
    return Answer(204, b"", None, headers)
