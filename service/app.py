"""The composition root: it makes the applications over HTTP and over stdio from the parts that the settings name."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from fastapi import FastAPI
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from opentelemetry.sdk.trace import SpanProcessor
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import MAX_BODY_BYTES, RouteNotFoundError
from service.http.messages import bearer_token, constant_endpoint, json_answer, problem_answer
from service.http.middleware import (
    MCP_ROUTE,
    SUGGEST_PATH,
    BoundedEndpoint,
    Gate,
    HttpMiddleware,
    route_labels,
    suggest_headers,
)
from service.mcp_server.endpoint import McpEndpoint, call_over_http, refused_early
from service.mcp_server.messages import CallFactory
from service.mcp_server.oauth import OAUTH_PATH, ProtectedResource
from service.mcp_server.server import build_server
from service.mcp_server.stdio import OPENING_S, call_over_stdio, serve_stdio, wait_for_index
from service.observability.prometheus import PrometheusMetrics
from service.parts import Parts
from service.rest.openapi.document import VERSION, openapi_document, openapi_endpoint
from service.rest.operations import operations_routes
from service.rest.probes import SERVICE, Health, ready_endpoint, version_endpoint
from service.rest.tool_endpoint import tool_endpoint
from service.runtime.telemetry import Metrics, safe_metrics
from service.runtime.tracing import CallTracer, open_traces
from service.search.failures import BackendUnavailable
from service.search.protocol import SearchBackend
from service.settings.service import Settings
from service.suggest.endpoint import SuggestFastPath, suggest_endpoint
from service.tools.registry import REGISTRY
from service.web.pages import (
    PAGE_PATH,
    SITEMAP_PATH,
    PageFile,
    docs_files,
    file_endpoint,
    page_files,
    site_files,
)
from service.web.site import Site
from service.web.sitemap import Sitemap
from service.web.views import PageEndpoint, Views

# How long after its deadline the answer to a request over stdio may be written.
_LATE_S: Final = 5.0


def create_app(
    settings: Settings,
    *,
    search: SearchBackend | None = None,
    metrics: Metrics | None = None,
    spans: SpanProcessor | None = None,
) -> FastAPI:
    """Make the HTTP application.

    The server starts draining through its `state.draining`. `state.open_index()` ends when the index is open, or can't
    be opened.

    The parameters stand in for what the settings name: a backend, which the application closes, the metrics of
    /metrics, and the exporter of spans.
    """
    site = Site(settings)
    files = {file.path: file for file in (*page_files(site), *site_files(site), *docs_files(settings))}
    prometheus = PrometheusMetrics()
    metrics = safe_metrics(prometheus if metrics is None else metrics)
    traces = open_traces(SERVICE, VERSION, spans, sent=settings.traces == "otlp")
    parts = Parts(settings, search, metrics)
    sessions = StreamableHTTPSessionManager(
        _mcp_server(parts, call_over_http),
        json_response=True,
        stateless=True,
        max_request_body_size=MAX_BODY_BYTES,
    )
    draining, gate = asyncio.Event(), Gate(settings.max_concurrency, metrics)
    issuer = settings.issuer
    resource = None if issuer is None else ProtectedResource(settings.oauth_url, issuer)
    mcp = _mcp_endpoints(parts, sessions, traces, resource)
    gated = partial(BoundedEndpoint, gate=gate, timeout=settings.request_timeout)
    calls = {**_calls(parts, mcp, gated), **_pages(site, file_endpoint(files[PAGE_PATH]), parts, gated)}

    app = _empty_app(sessions, parts, traces)
    app.openapi_schema = openapi_document(REGISTRY, needs_ops_key=settings.ops_key is not None)
    app.router.routes = [
        *(Route(path, endpoint=endpoint) for path, endpoint in calls.items()),
        *_ungated(parts, draining, resource),
        Route("/openapi.json", endpoint=openapi_endpoint(app.openapi_schema)),
        *operations_routes(parts, prometheus),
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
    app.state.open_index = partial(_open_index, parts)
    # The fast path begins no spans.
    app.state.suggest_fast_path = _fast_path(parts, gate, draining, metrics) if traces is None else None
    return app


async def run_stdio(settings: Settings) -> None:
    """Serve MCP on stdin and stdout until stdin ends and its requests are answered."""
    parts = Parts(settings)
    token = settings.api_token.get_secret_value().strip() if settings.api_token else None
    traces = open_traces(SERVICE, VERSION, sent=settings.traces == "otlp")
    try:
        server = _mcp_server(parts, call_over_stdio(token or None), traces)
        async with _in_background(parts.live.log_missing_index()), _in_background(_open_index(parts)) as opening:
            server.middleware.insert(0, wait_for_index(opening))
            await serve_stdio(server, OPENING_S + settings.request_timeout + _LATE_S)
    finally:
        await _close(parts, traces)


def _mcp_server(parts: Parts, make_call: CallFactory, traces: CallTracer | None = None) -> Server[Any]:
    return build_server(
        parts.dispatcher,
        parts.responder,
        VERSION,
        make_call,
        traces=traces,
        public_url=parts.settings.public_url,
        usable_tools_only=parts.settings.mcp_anonymous_tools == "usable",
    )


def _mcp_endpoints(
    parts: Parts,
    sessions: StreamableHTTPSessionManager,
    traces: CallTracer | None,
    resource: ProtectedResource | None,
) -> dict[str, McpEndpoint]:
    """The endpoints of the one MCP server by path: with API tokens, and with those of an issuer."""
    endpoint = partial(
        McpEndpoint,
        sessions,
        trusted=parts.trusted,
        allowed_hosts=parts.settings.mcp_allowed_hosts,
        allowed_origins=parts.settings.mcp_allowed_origins,
        traces=traces,
    )
    if resource is None or parts.oauth_dispatcher is None:
        return {"/mcp": endpoint(parts.dispatcher)}
    return {
        "/mcp": endpoint(parts.dispatcher, explain=resource.mention),
        OAUTH_PATH: endpoint(parts.oauth_dispatcher, token_of=bearer_token, explain=resource.challenge),
    }


def _calls(parts: Parts, mcp: Mapping[str, McpEndpoint], gated: Callable[..., BoundedEndpoint]) -> dict[str, ASGIApp]:
    """MCP, the tools and /suggest by path; they share the bound on concurrent requests."""
    tools = {f"/tool/{tool.name}": tool_endpoint(parts, tool.name) for tool in REGISTRY}
    endpoints = {**tools, SUGGEST_PATH: suggest_endpoint(parts.responder, parts.trusted)}
    return {
        # Not interrupted, as the SDK's own tasks would outlive the request; a called tool stops at its deadline.
        **{path: gated(endpoint, refused=refused_early, interrupted=False) for path, endpoint in mcp.items()},
        **{path: gated(endpoint) for path, endpoint in endpoints.items()},
    }


def _labels(site: Site, files: Iterable[PageFile], resource: ProtectedResource | None) -> dict[str, str]:
    """What metrics and logs call each path."""
    labels = route_labels(tool.name for tool in REGISTRY) | {file.path: file.label for file in files}
    if site.sitemap:
        labels[SITEMAP_PATH] = "sitemap"
    if resource is not None:
        labels |= {OAUTH_PATH: MCP_ROUTE, resource.metadata_path: "oauth_metadata"}
    return labels


def _pages(site: Site, start: ASGIApp, parts: Parts, gated: Callable[..., BoundedEndpoint]) -> dict[str, ASGIApp]:
    """The views of the page and the sitemap by path, which call what the tools call."""
    views = Views(site, parts)
    pages: dict[str, ASGIApp] = {PAGE_PATH: PageEndpoint(start, gated(views.endpoint, refused=views.refused))}
    if site.sitemap:
        pages[SITEMAP_PATH] = gated(Sitemap(site, parts).endpoint)
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
        Route("/ready", endpoint=ready_endpoint(parts, draining)),
        Route("/version", endpoint=version_endpoint(parts.settings)),
    ]


def _empty_app(sessions: StreamableHTTPSessionManager, parts: Parts, traces: CallTracer | None) -> FastAPI:
    """The framework without routes; its lifespan opens and closes the parts."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            await parts.warm_up()
            async with _in_background(parts.live.log_missing_index()), sessions.run():
                yield
        finally:
            await _close(parts, traces)

    return FastAPI(
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # The framework's spans would duplicate ours.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )


async def _close(parts: Parts, traces: CallTracer | None) -> None:
    await parts.close()
    if traces is not None:
        await asyncio.to_thread(traces.close)


async def _open_index(parts: Parts) -> None:
    with suppress(BackendUnavailable):
        await parts.search.snapshot()


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Within, the work runs, so that an engine that hangs does not delay the start."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _not_found(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await problem_answer(RouteNotFoundError()).send(send)
