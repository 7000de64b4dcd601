"""The layers around the endpoints: what all HTTP responses share, one log line and one count for each, and bounds.

Every response gets the request id, no-store, CORS and security headers, and an exception becomes a problem document,
which has the request id and nothing of the exception (E5). The line and the count have the status that the client
received, early refusals included.

Answers of a kilobyte or more are compressed for callers who accept gzip, by Starlette's responder: HEAD is answered as
GET, equal answers stay equal bytes, and constant answers are compressed once. Answers hold no secrets and browsers
attach no credentials by themselves, so the length of a compressed answer discloses nothing (BREACH). /suggest is not
compressed, so that its fast path need not do it either.

A worker works on a bounded number of requests at the same time; further ones are refused early and cheaply. Otherwise
all requests would wait for each other, until each had waited longer than its deadline. The body is received before the
request takes a slot, in bounded memory, so a slow sender occupies no slot. The deadline starts when the body is
complete, because the client decides how fast it sends.
"""

import asyncio
import gzip
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InternalError, OriginNotAllowedError, OverloadedError, ServiceError
from service.http.messages import (
    BODY,
    NO_STORE,
    Answer,
    Headers,
    header,
    problem_answer,
    read_body,
    request_context_of,
    security_headers,
    with_defaults,
)
from service.runtime.caller import Channel
from service.runtime.request_context import LEFT, RequestContext, bind_request, new_request_context, new_request_id
from service.runtime.telemetry import NO_METRICS, NO_ROUTE, Metrics, log_call
from service.runtime.tracing import CallTracer, header_texts

SUGGEST_PATH: Final = "/suggest"
MCP_PATH: Final = "/mcp"
MCP_ROUTE: Final = "mcp"
VARY: Final = (b"vary", b"Accept-Encoding")
MIN_BYTES: Final = 1_024

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
_GZIP: Final = (b"content-encoding", b"gzip")
# A higher level makes a page of 50 shops 2% smaller and takes 20% more time.
_LEVEL: Final = 5
# Events are sent without delay.
_STREAMED: Final = ("text/event-stream",)
_REFUSED: Final = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})
# Requests that wait for stores do no work, but all of them continue together when the stores answer.
_WAITING_PER_SLOT: Final = 4
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
        """Wrap an application.

        `direct_routes` are endpoints by path that are called without the application, whose routing would cost more
        than everything else around them. `labels` are the routes in the log and the metrics by path; other paths have
        none, so that no caller can create labels. `traces` starts a span for each call of a tool and of /suggest; /mcp
        starts its own with more attributes. `cors_origins` may read answers other than those of /suggest, which all
        may read (C3). Once `draining` is set, each answer is the last one of its connection. Without `hsts_seconds` no
        Strict-Transport-Security is sent.
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
            send_compressed = self._compressing(scope, sent)
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

    def _compressing(self, scope: Scope, send: Send) -> Send:
        """A send that compresses the answer if the caller accepts that."""
        if scope["path"] == SUGGEST_PATH or not accepts_gzip(scope["headers"]):
            # No Vary is needed: cacheable answers that have a compressed variant set it themselves.
            return send
        if scope["method"] == "HEAD":
            return lambda message: send(_head_of_get(message))
        # It calls no application: only its way of sending is used.
        responder = GZipResponder(self._app, MIN_BYTES, _LEVEL, exclude_content_types=_STREAMED)
        responder.send = send
        return responder.send_with_compression

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
    return gzip.compress(body, mtime=0)


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


class Gate:
    """The slots for requests in flight; all are free at first."""

    def __init__(self, slots: int, metrics: Metrics = NO_METRICS) -> None:
        self._slots = slots
        self._metrics = metrics
        self.in_flight = 0
        self._suspended = 0
        self._in_tick = 0

    def admits_in_tick(self) -> bool:
        """Count a request that is answered within this event-loop tick; whether it may cause work.

        The requests of one tick have waited together, although they are answered one by one. So together with those in
        flight, they are bounded by the number of slots.
        """
        if not self._in_tick:
            asyncio.get_running_loop().call_soon(self._end_tick)
        self._in_tick += 1
        return self.in_flight + self._in_tick <= self._slots

    def _end_tick(self) -> None:
        self._in_tick = 0

    def check(self) -> None:
        """Raise OverloadedError if no slot is free, without taking one."""
        if self.in_flight >= self._slots:
            raise OverloadedError

    def enter(self) -> None:
        """Take a slot, until `leave`; raises OverloadedError if none is free."""
        self.check()
        self.in_flight += 1
        self._metrics.in_flight(1)

    def leave(self) -> None:
        """Return a slot."""
        self.in_flight -= 1
        self._metrics.in_flight(-1)

    def suspend(self) -> bool:
        """Return a slot for a while, until `resume`; False where too many have done so already."""
        if self._suspended >= _WAITING_PER_SLOT * self._slots:
            return False
        self._suspended += 1
        self.leave()
        return True

    def resume(self) -> None:
        """Take a slot again after `suspend`, even if none is free: a request in flight is not refused."""
        self._suspended -= 1
        self.in_flight += 1
        self._metrics.in_flight(1)


class GateSlot:
    """The slot of one request."""

    __slots__ = ("_gate", "_held", "_left")

    def __init__(self, gate: Gate) -> None:
        gate.enter()
        self._gate = gate
        self._held = True
        self._left = False

    def leave(self) -> None:
        """Return the slot for good; idempotent."""
        self._left = True
        if self._held:
            self._held = False
            self._gate.leave()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Within, other requests may use the slot, as this one only waits."""
        if not self._held or not self._gate.suspend():
            yield
            return
        self._held = False
        try:
            yield
        finally:
            self._gate.resume()
            self._held = True
            if self._left:
                self.leave()


class BoundedEndpoint:
    """Bounds around an endpoint, which is its `app`: concurrency, a deadline, and cancellation on disconnect."""

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        timeout: float,
        refused: Callable[[ServiceError], Answer] = problem_answer,
        *,
        interrupted: bool = True,
    ) -> None:
        """Wrap an endpoint.

        `refused` makes the answer to a request beyond the bound of the gate. An endpoint that is not `interrupted` when
        its caller disconnects must stop its own work by `RequestContext.on_disconnect`.
        """
        self.app = app
        self._gate = gate
        self._timeout = timeout
        self._refused = refused
        self._interrupted = interrupted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it as one too many."""
        request = request_context_of(scope)
        try:
            self._gate.check()
            if scope["method"] == "POST":
                scope[BODY] = await read_body(scope["headers"], receive)
            slot = GateSlot(self._gate)
        except OverloadedError as error:
            request.outcome = error.code
            await self._refused(error).send(send)
            return
        # The work is done then: a client that reads slowly must not occupy the slot.
        request.on_answer = slot.leave
        try:
            request.suspended = slot.suspended
            request.deadline = time.monotonic() + self._timeout
            if self._interrupted and (task := asyncio.current_task()) is not None:
                request.on_disconnect.append(task.cancel)
            await self.app(scope, receive, send)
        finally:
            slot.leave()
