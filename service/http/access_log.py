"""Around the whole application: every request over HTTP ends in one line and one count, early refusals too.

Outermost, so that what it tells is what the caller got.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.responses import requests_in_flight_of
from service.runtime.call_log import NO_ROUTE, call_ended
from service.runtime.caller import Channel
from service.runtime.metrics import Metrics
from service.runtime.request_context import RequestContext
from service.runtime.tracing import UNTRACED, Transport, of_headers

MCP_PATH: Final = "/mcp"
SUGGEST_PATH: Final = "/suggest"

_TOOLS: Final = "/tool/"
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})

_OTHER_PATHS: Final = {
    SUGGEST_PATH: "suggest",
    MCP_PATH: "mcp",
    "/health": "health",
    "/ready": "ready",
    "/version": "version",
    "/openapi.json": "openapi",
    "/api/ops/state": "ops_state",
    "/metrics": "metrics",
    "/metrics/resources": "metrics_resources",
}


def route_words(tools: Iterable[str]) -> dict[str, str]:
    """The word for each path, as the log and the measures name it."""
    return {**{f"/tool/{tool}": tool for tool in tools}, **_OTHER_PATHS}


class ObservedCalls:
    """Wraps the front door."""

    def __init__(self, app: ASGIApp, routes: Mapping[str, str], metrics: Metrics, traces: Transport = UNTRACED) -> None:
        """Wrap an application.

        Args:
            app: what answers; it writes into the scope what it knows of the request.
            routes: the word for each path; any other path has none, so that no caller invents one.
            metrics: count the calls.
            traces: begin a span for each call of a tool and of /suggest; /mcp knows more of its own and does so itself.
        """
        self._app = app
        self._routes = routes
        self._metrics = metrics
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and tell of it once it is over."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, path = requests_in_flight_of(scope), scope["path"]
        if path == SUGGEST_PATH or path.startswith(_TOOLS):
            self._trace(request, scope)
        status: int | None = None

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            channel = Channel.MCP if path == MCP_PATH else Channel.REST
            route = self._routes.get(path, NO_ROUTE)
            call_ended(self._metrics, request, channel=channel.value, route=route, status=status)

    def _trace(self, request: RequestContext, scope: Scope) -> None:
        path, method = scope["path"], scope["method"]
        # No caller invents the names of spans.
        if path not in self._routes or method not in _METHODS:
            path, method = "unknown", "HTTP"
        attributes = {"http.request.method": method, "http.route": path}
        self._traces.begin(request, f"{method} {path}", partial(of_headers, scope["headers"]), attributes)
