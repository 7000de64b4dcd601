"""The composition root over HTTP: it makes the application from the parts that the settings name."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import MAX_BODY_BYTES, RouteNotFoundError
from service.http.gate import BoundedEndpoint, Gate
from service.http.messages import bearer_token, constant_endpoint, json_answer, problem_answer
from service.http.middleware import MCP_PATH, MCP_ROUTE, SUGGEST_PATH, HttpMiddleware, route_labels, suggest_headers
from service.identity import SERVICE, VERSION
from service.mcp_server.deferred import DeferredMcp, LoadedMcp
from service.mcp_server.json_rpc import refused_early
from service.mcp_server.oauth import OAUTH_PATH, ProtectedResource
from service.observability.prometheus import PrometheusMetrics
from service.parts import Parts, running
from service.rest.openapi.document import openapi_document, openapi_endpoint
from service.rest.operations import operations_routes
from service.rest.probes import Health, ready_endpoint, version_endpoint
from service.rest.tool_endpoint import tool_endpoint
from service.runtime.tracing import CallTracer, open_traces
from service.settings.service import Settings
from service.suggest.endpoint import SuggestFastPath, suggest_endpoint
from service.tools.registry import REGISTRY
from service.web.languages import LANGUAGES, languages
from service.web.pages import (
    PAGE_PATH,
    PageFile,
    docs_files,
    file_endpoint,
    page_files,
    page_script,
    site_files,
)
from service.web.site import Site
from service.web.sitemap import SITEMAP_PATH, Sitemap
from service.web.views import PageEndpoint, Views
from shop_directory.runtime.metrics import Metrics, safe_metrics
from shop_directory.search.protocol import SearchBackend

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor


def create_app(
    settings: Settings,
    *,
    search: SearchBackend | None = None,
    metrics: Metrics | None = None,
    spans: "SpanProcessor | None" = None,
) -> FastAPI:
    """Make the HTTP application.

    The server starts draining through its `state.draining`. `state.open_index()` ends when the index is open, or can't
    be opened. `state.open_mcp()` loads the MCP SDK, for which the first MCP request waits otherwise.

    The parameters override the settings: a backend, which the application closes, metrics, and an exporter of spans.
    """
    sites = {tag: Site(settings, language) for tag, language in languages().items()}
    site = sites[LANGUAGES[0]]
    shared = (*map(page_script, languages().values()), *page_files(site), *site_files(site), *docs_files(settings))
    files = {file.path: file for file in shared}
    prometheus = PrometheusMetrics()
    metrics = safe_metrics(prometheus if metrics is None else metrics)
    traces = open_traces(SERVICE, VERSION, spans, sent=settings.traces == "otlp")
    parts = Parts(settings, search, metrics)
    draining, gate = asyncio.Event(), Gate(settings.max_concurrency, metrics)
    issuer = settings.issuer
    resource = None if issuer is None else ProtectedResource(settings.oauth_url, issuer)
    mcp = DeferredMcp(partial(_load_mcp, parts, traces, resource))
    gated = partial(BoundedEndpoint, gate=gate, timeout=settings.request_timeout)
    calls = {**_mcp_endpoints(mcp, resource, gated), **_calls(parts, gated), **_pages(sites, parts, gated)}

    app = _empty_app(mcp, parts, traces)
    app.openapi_schema = openapi_document(REGISTRY, needs_ops_key=settings.ops_key is not None)
    app.router.routes = [
        *(Route(path, endpoint=endpoint) for path, endpoint in calls.items()),
        *_ungated(parts, draining, resource),
        Route("/openapi.json", endpoint=openapi_endpoint(app.openapi_schema)),
        *operations_routes(
            settings, parts.search, parts.reports, parts.insights, parts.admission, parts.trusted, prometheus
        ),
        *(Route(path, endpoint=file_endpoint(files[path])) for path in files.keys() - calls.keys()),
    ]
    app.router.default = _not_found
    # In place of the framework's stack, whose layers would do nothing for these endpoints.
    app.middleware_stack = HttpMiddleware(
        app.router,
        direct_routes=calls,
        labels=_labels(site, files.values(), resource),
        metrics=metrics,
        traces=traces,
        cors_origins=settings.cors_origins,
        draining=draining,
        hsts_seconds=settings.hsts_seconds,
    )
    app.state.draining = draining
    app.state.open_index = parts.open_index
    app.state.open_mcp = mcp.open
    # The fast path begins no spans.
    app.state.suggest_fast_path = _fast_path(parts, gate, draining, metrics) if traces is None else None
    return app


def _load_mcp(parts: Parts, traces: CallTracer | None, resource: ProtectedResource | None) -> LoadedMcp:
    """Import the SDK, and make the endpoints of the one MCP server: with API tokens, and with those of an issuer."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from service.mcp_server.endpoint import McpEndpoint, call_over_http
    from service.mcp_server.server import build_server

    settings = parts.settings
    server = build_server(
        parts.dispatcher,
        parts.responder,
        VERSION,
        call_over_http,
        public_url=settings.public_url,
        usable_tools_only=settings.mcp_anonymous_tools == "usable",
    )
    sessions = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
    )
    endpoint = partial(
        McpEndpoint,
        sessions,
        trusted=parts.trusted,
        allowed_hosts=settings.mcp_hosts,
        allowed_origins=settings.mcp_allowed_origins,
        traces=traces,
    )
    if resource is None or parts.oauth_dispatcher is None:
        return LoadedMcp(sessions, {MCP_PATH: endpoint(parts.dispatcher)})
    endpoints = {
        MCP_PATH: endpoint(parts.dispatcher, explain=resource.mention),
        OAUTH_PATH: endpoint(parts.oauth_dispatcher, token_of=bearer_token, explain=resource.challenge),
    }
    return LoadedMcp(sessions, endpoints)


def _mcp_endpoints(
    mcp: DeferredMcp, resource: ProtectedResource | None, gated: Callable[..., BoundedEndpoint]
) -> dict[str, ASGIApp]:
    """The endpoints by path, with and without a slash at its end: a redirect would break strict clients."""
    paths = (MCP_PATH,) if resource is None else (MCP_PATH, OAUTH_PATH)
    # Not interrupted, as the SDK's own tasks would outlive the request; a called tool stops at its deadline.
    return {
        spelled: gated(mcp.endpoint(path), refused=refused_early, interrupted=False)
        for path in paths
        for spelled in (path, f"{path}/")
    }


def _calls(parts: Parts, gated: Callable[..., BoundedEndpoint]) -> dict[str, ASGIApp]:
    """The tools and /suggest by path; with MCP they share the bound on concurrent requests."""
    tools = {f"/tool/{tool.name}": tool_endpoint(tool.name, parts.dispatcher, parts.trusted) for tool in REGISTRY}
    endpoints = {**tools, SUGGEST_PATH: suggest_endpoint(parts.responder, parts.trusted)}
    return {path: gated(endpoint) for path, endpoint in endpoints.items()}


def _labels(site: Site, files: Iterable[PageFile], resource: ProtectedResource | None) -> dict[str, str]:
    """What metrics and logs call each path."""
    labels = route_labels(tool.name for tool in REGISTRY) | {file.path: file.label for file in files}
    labels[PAGE_PATH] = "page"
    if site.sitemap:
        labels[SITEMAP_PATH] = "sitemap"
    if resource is not None:
        labels |= {OAUTH_PATH: MCP_ROUTE, f"{OAUTH_PATH}/": MCP_ROUTE, resource.metadata_path: "oauth_metadata"}
    return labels


def _pages(sites: Mapping[str, Site], parts: Parts, gated: Callable[..., BoundedEndpoint]) -> dict[str, ASGIApp]:
    """The views of the page and the sitemap by path, over the same calls as the tools."""
    views = {tag: Views(site, parts.dispatcher, parts.responder, parts.trusted) for tag, site in sites.items()}
    starts = {tag: gated(each.start, refused=each.start_refused) for tag, each in views.items()}
    bounded = {tag: gated(each.endpoint, refused=each.refused) for tag, each in views.items()}
    pages: dict[str, ASGIApp] = {PAGE_PATH: PageEndpoint(starts, bounded)}
    site = sites[LANGUAGES[0]]
    if site.sitemap:
        pages[SITEMAP_PATH] = gated(Sitemap(site, parts.live, parts.admission, parts.trusted).endpoint)
    return pages


def _fast_path(parts: Parts, gate: Gate, draining: asyncio.Event, metrics: Metrics) -> SuggestFastPath:
    return SuggestFastPath(
        responder=parts.responder,
        trusted=parts.trusted,
        gate=gate,
        draining=draining,
        metrics=metrics,
        common=suggest_headers(parts.settings.hsts_seconds),
        timeout=parts.settings.request_timeout,
    )


def _ungated(parts: Parts, draining: asyncio.Event, resource: ProtectedResource | None) -> list[Route]:
    """The probes and the metadata of OAuth, which are answered also under overload."""
    metadata = [] if resource is None else [Route(resource.metadata_path, endpoint=resource.metadata_endpoint())]
    return [
        *metadata,
        Route("/health", endpoint=constant_endpoint(json_answer(Health(status="ok").model_dump()))),
        Route("/ready", endpoint=ready_endpoint(parts.search, parts.live, parts.limiter, parts.reports, draining)),
        Route("/version", endpoint=version_endpoint(parts.settings)),
    ]


def _empty_app(mcp: DeferredMcp, parts: Parts, traces: CallTracer | None) -> FastAPI:
    """The framework without routes; its lifespan opens and closes the parts."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            await parts.warm_up()
            async with running(parts.live.log_missing_index()), running(parts.count_queries()), mcp.lifespan():
                yield
        finally:
            await parts.close()
            if traces is not None:
                await asyncio.to_thread(traces.close)

    return FastAPI(
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # The framework's spans would duplicate ours.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )


async def _not_found(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await problem_answer(RouteNotFoundError()).send(send)
