"""Middleware around the whole application: one log line and one count for each HTTP request, early refusals included.

It is the outermost one, so it logs the status that the client received.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.middleware import SUGGEST_PATH
from service.http.responses import request_context_of
from service.runtime.call_log import NO_ROUTE, log_call
from service.runtime.caller import Channel
from service.runtime.metrics import Metrics
from service.runtime.request_context import RequestContext
from service.runtime.tracing import UNTRACED, CallTracer, header_texts

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
        self, app: ASGIApp, routes: Mapping[str, str], metrics: Metrics, traces: CallTracer = UNTRACED
    ) -> None:
        """Wrap an application.

        Args:
            app: the application; it stores what it learns of a request in the request's context.
            routes: the label of each path; other paths have none, so that no caller can create labels.
            metrics: count the calls.
            traces: start a span for each call of a tool and of /suggest; /mcp starts its own with more attributes.
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
        if path == SUGGEST_PATH or path.startswith(_TOOLS):
            self._trace(request, scope)
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

    def _trace(self, request: RequestContext, scope: Scope) -> None:
        path, method = scope["path"], scope["method"]
        # No caller can create names of spans.
        if path not in self._routes or method not in _METHODS:
            path, method = "unknown", "HTTP"
        attributes = {"http.request.method": method, "http.route": path}
        self._traces.begin(request, f"{method} {path}", partial(header_texts, scope["headers"]), attributes)
