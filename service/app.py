"""The composition root: the only place that knows which parts there are, and the owner of all their lives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from service.dispatch import Dispatcher
from service.errors import MAX_BODY_BYTES, RouteNotFoundError
from service.live import LiveData
from service.mcp_server.endpoint import McpEndpoint
from service.mcp_server.endpoint import caller_of as http_caller_of
from service.mcp_server.server import build_server
from service.mcp_server.stdio import caller_of as stdio_caller_of
from service.mcp_server.stdio import serve_stdio
from service.rest.answers import problem_answer
from service.rest.door import SUGGEST_PATH, FrontDoor
from service.rest.openapi import VERSION, openapi_document, openapi_endpoint
from service.rest.probes import health_endpoint, ready_endpoint, version_endpoint
from service.rest.suggest_endpoint import suggest_endpoint
from service.rest.tool_endpoint import tool_endpoint
from service.search.embedded import EmbeddedBackend
from service.search.opensearch import OpenSearchBackend
from service.search.protocol import SearchBackend
from service.settings import Settings
from service.tools.registry import REGISTRY

# One search of several in a request must leave the others some time.
_ENGINE_TIMEOUT: Final = 1.5


def create_app(settings: Settings, *, search: SearchBackend | None = None) -> FastAPI:
    """Make the HTTP application.

    Args:
        settings: all of them.
        search: a backend instead of the one that the settings name; the application closes it.
    """
    backend = open_search(settings) if search is None else search
    live = LiveData(backend, settings.request_timeout)
    dispatcher = Dispatcher(REGISTRY, live)
    sessions = StreamableHTTPSessionManager(
        app=build_server(dispatcher, VERSION, http_caller_of),
        json_response=True,
        stateless=True,
        max_request_body_size=MAX_BODY_BYTES,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with sessions.run():
                yield
        finally:
            await backend.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    document = openapi_document(REGISTRY)
    app.openapi_schema = document
    routes: list[BaseRoute] = [
        Route(f"/tool/{tool.name}", endpoint=tool_endpoint(dispatcher, tool.name)) for tool in REGISTRY
    ]
    routes += [
        Route(SUGGEST_PATH, endpoint=suggest_endpoint(live)),
        Route("/mcp", endpoint=McpEndpoint(sessions, settings.mcp_allowed_hosts, settings.mcp_allowed_origins)),
        Route("/health", endpoint=health_endpoint()),
        Route("/ready", endpoint=ready_endpoint(live)),
        Route("/version", endpoint=version_endpoint(settings.commit, settings.built_at)),
        Route("/openapi.json", endpoint=openapi_endpoint(document)),
    ]
    app.router.routes = routes
    app.router.default = _nothing_here
    app.add_middleware(FrontDoor, cors_origins=settings.cors_origins)
    return app


async def run_stdio(settings: Settings, *, search: SearchBackend | None = None) -> None:
    """Serve MCP on stdin and stdout until stdin ends."""
    backend = open_search(settings) if search is None else search
    dispatcher = Dispatcher(REGISTRY, LiveData(backend, settings.request_timeout))
    try:
        await serve_stdio(build_server(dispatcher, VERSION, stdio_caller_of))
    finally:
        await backend.close()


def open_search(settings: Settings) -> SearchBackend:
    """The backend that the settings name; nothing is asked of it yet."""
    if settings.engine == "embedded":
        return EmbeddedBackend(settings.data_dir, settings.category_cap)
    return OpenSearchBackend(
        settings.opensearch_urls,
        settings.index_prefix,
        settings.category_cap,
        min(_ENGINE_TIMEOUT, settings.request_timeout),
    )


async def _nothing_here(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await problem_answer(RouteNotFoundError()).send(send)
