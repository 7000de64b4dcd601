"""The composition root: the only place that knows which parts there are, and the owner of all their lives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from service.addresses import proxies
from service.admission import Admission
from service.auth.opening import open_tokens
from service.auth.protocol import TokenStore
from service.auth.verifier import TokenVerifier
from service.caller import Channel
from service.dispatch import Dispatcher, Surroundings
from service.errors import MAX_BODY_BYTES, RouteNotFoundError
from service.limits.fallback import FallbackLimiter
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaPolicy
from service.limits.protocol import Limiter
from service.limits.redis import RedisLimiter
from service.live import LiveData
from service.mcp_server.endpoint import McpEndpoint, call_over_http
from service.mcp_server.server import build_server
from service.mcp_server.stdio import call_over_stdio, serve_stdio
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import ReportQueue
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
    parts = open_parts(settings, search)
    believed = proxies(settings.trusted_proxies, settings.forwarding_header, settings.country_header)
    dispatcher = parts.dispatcher
    sessions = StreamableHTTPSessionManager(
        app=build_server(dispatcher, VERSION, call_over_http(believed)),
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
            await parts.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    document = openapi_document(REGISTRY)
    app.openapi_schema = document
    mcp = McpEndpoint(sessions, dispatcher, believed, settings.mcp_allowed_hosts, settings.mcp_allowed_origins)
    routes: list[BaseRoute] = [
        Route(f"/tool/{tool.name}", endpoint=tool_endpoint(dispatcher, tool.name, believed)) for tool in REGISTRY
    ]
    routes += [
        Route(SUGGEST_PATH, endpoint=suggest_endpoint(parts.live, parts.admission, believed)),
        Route("/mcp", endpoint=mcp),
        Route("/health", endpoint=health_endpoint()),
        Route("/ready", endpoint=ready_endpoint(parts.live, parts.reports)),
        Route("/version", endpoint=version_endpoint(settings.commit, settings.built_at)),
        Route("/openapi.json", endpoint=openapi_endpoint(document)),
    ]
    app.router.routes = routes
    app.router.default = _nothing_here
    app.add_middleware(FrontDoor, cors_origins=settings.cors_origins)
    return app


async def run_stdio(settings: Settings, *, search: SearchBackend | None = None) -> None:
    """Serve MCP on stdin and stdout until stdin ends."""
    parts = open_parts(settings, search)
    token = settings.api_token.get_secret_value().strip() if settings.api_token else None
    try:
        await serve_stdio(build_server(parts.dispatcher, VERSION, call_over_stdio(token or None)))
    finally:
        await parts.close()


@dataclass(frozen=True, slots=True)
class Parts:
    """What both kinds of application are made of."""

    search: SearchBackend
    live: LiveData
    tokens: TokenStore
    verifier: TokenVerifier
    limiter: Limiter
    reports: ReportQueue
    admission: Admission
    dispatcher: Dispatcher

    async def close(self) -> None:
        """In this order: nobody asks what is closed."""
        await self.verifier.close()
        await self.limiter.close()
        await self.tokens.close()
        await self.reports.close()
        await self.search.close()


def open_parts(settings: Settings, search: SearchBackend | None = None) -> Parts:
    """Open everything that the settings name; nothing is asked of it yet."""
    backend = open_search(settings) if search is None else search
    live = LiveData(backend, settings.request_timeout)
    url = settings.redis_url.get_secret_value()
    tokens = open_tokens(settings.token_store, settings.token_file, url, settings.redis_prefix)
    verifier = TokenVerifier(tokens)
    limiter = open_limiter(settings, url)
    reports = open_queue(
        QueueSettings(
            kind=settings.reports,
            path=settings.reports_file,
            url=url,
            prefix=settings.redis_prefix,
            window_seconds=settings.report_window,
        )
    )
    admission = Admission(verifier, limiter, QuotaPolicy(settings.quota_anonymous, settings.quota_classes))
    most = {Channel.REST: settings.most_coupons_rest, Channel.MCP: settings.most_coupons_mcp}
    most[Channel.STDIO] = settings.most_coupons_mcp
    surroundings = Surroundings(reports, {door: count for door, count in most.items() if count is not None})
    dispatcher = Dispatcher(REGISTRY, live, admission, surroundings)
    return Parts(backend, live, tokens, verifier, limiter, reports, admission, dispatcher)


def open_limiter(settings: Settings, url: str) -> Limiter:
    """The limiter that the settings name; one over Redis has a local one behind it (Q4)."""
    local = MemoryLimiter()
    if settings.limiter == "memory":
        return local
    return FallbackLimiter(RedisLimiter(url, settings.redis_prefix), local, _counted_locally)


def _counted_locally() -> None:
    """What a metric will count; the fallback itself logs when it begins and ends."""


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
