"""The composition root: the only place that knows which parts there are, and the owner of all their lives."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Final

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from opentelemetry.sdk.trace import SpanProcessor
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import MAX_BODY_BYTES, RouteNotFoundError
from service.http.access_log import ObservedCalls, route_words
from service.http.bounded_endpoint import Gated
from service.http.compression import Compression
from service.http.middleware import SUGGEST_PATH, HttpMiddleware, suggest_headers, uncaught_exception_handler
from service.http.responses import problem_answer
from service.mcp_server.endpoint import McpEndpoint, call_over_http, refused_early
from service.mcp_server.server import build_server
from service.mcp_server.stdio import call_over_stdio, serve_stdio
from service.observability.prometheus import PrometheusMetrics
from service.observability.safe_metrics import SafeMetrics
from service.observability.traces import open_traces
from service.operations.flags import flags_of
from service.operations.health import Questions
from service.operations.state import ServiceState
from service.operations.state_document import About
from service.parts import Parts, open_parts
from service.rest.openapi.document import VERSION, openapi_document, openapi_endpoint
from service.rest.operations import OpsKey, operations_routes
from service.rest.probes import SERVICE, health_endpoint, ready_endpoint, version_endpoint
from service.rest.report_readiness import ReportsCheck
from service.rest.tool_endpoint import tool_endpoint
from service.runtime.addresses import Proxies, proxies
from service.runtime.build_stamp import stamp_of_build
from service.runtime.metrics import Metrics
from service.runtime.overload import Gate
from service.search.protocol import SearchBackend
from service.settings.service import Settings
from service.suggest.endpoint import suggest_endpoint
from service.suggest.fast_path import SuggestFastPath
from service.tools.registry import REGISTRY
from service.web.docs_page import docs_files
from service.web.pages import page_files, page_routes, page_words, site_files

# How long after its deadline the answer to a request over stdio may be written.
_LATE_S: Final = 5.0


def create_app(
    settings: Settings,
    *,
    search: SearchBackend | None = None,
    metrics: Metrics | None = None,
    spans: SpanProcessor | None = None,
) -> FastAPI:
    """Make the HTTP application. Its `state.draining` is what the server sets when it is told to stop.

    Args:
        settings: all of them.
        search: a backend instead of the one that the settings name; the application closes it.
        metrics: what is told of each call instead of the metrics of /metrics.
        spans: takes the spans of calls instead of what the settings name.
    """
    page = (*page_files(), *site_files(), *docs_files(settings))
    words = route_words(tool.name for tool in REGISTRY) | page_words(page)
    prometheus = PrometheusMetrics(words.values())
    metrics = SafeMetrics(prometheus if metrics is None else metrics)
    traces = open_traces(SERVICE, VERSION, spans, sent=settings.traces == "otlp")
    draining = asyncio.Event()
    parts = open_parts(settings, search, metrics)
    trusted = proxies(settings.trusted_proxies, settings.forwarding_header, settings.country_header)
    dispatcher = parts.dispatcher
    sessions = StreamableHTTPSessionManager(
        app=build_server(dispatcher, parts.responder, VERSION, call_over_http(trusted), public_url=settings.public_url),
        json_response=True,
        stateless=True,
        max_request_body_size=MAX_BODY_BYTES,
    )

    app = _bare(settings, sessions, parts, traces.close)
    document = openapi_document(REGISTRY, needs_ops_key=settings.ops_key is not None)
    app.openapi_schema = document
    hosts, origins = settings.mcp_allowed_hosts, settings.mcp_allowed_origins
    mcp = McpEndpoint(sessions, dispatcher, trusted, hosts, origins, traces=traces.transport)
    gate = Gate(settings.max_concurrency, metrics)
    gated = partial(Gated, gate=gate, timeout=settings.request_timeout)
    calls: dict[str, ASGIApp] = {
        # The SDK's own tasks would not end with the request's: a tool that is called stops by itself.
        "/mcp": gated(mcp, refused=refused_early, interrupted=False),
        **_calls(parts, trusted, gated),
    }
    app.router.routes = [
        *(Route(path, endpoint=answers) for path, answers in calls.items()),
        *_probes(settings, parts, draining),
        Route("/openapi.json", endpoint=openapi_endpoint(document)),
        *operations_routes(
            OpsKey(settings.ops_key, parts.admission, trusted),
            Questions(parts.search, parts.reports, settings.request_timeout),
            about(settings),
            prometheus,
        ),
        *page_routes(page),
    ]
    app.router.default = _nothing_here
    app.add_middleware(
        HttpMiddleware,
        cors_origins=settings.cors_origins,
        draining=draining,
        hsts_seconds=settings.hsts_seconds,
        direct_routes=calls,
    )
    # What answers on the fast path is the same on any other.
    app.add_middleware(Compression, untouched=[SUGGEST_PATH])
    # Outermost: it tells what the caller got.
    app.add_middleware(ObservedCalls, routes=words, metrics=metrics, traces=traces.transport)
    app.state.draining = draining
    if settings.traces == "off" and spans is None:
        # A span of each call is the application's business.
        app.state.suggest_fast_path = SuggestFastPath(
            responder=parts.responder,
            trusted=trusted,
            gate=gate,
            draining=draining,
            metrics=metrics,
            common=suggest_headers(settings.hsts_seconds),
            timeout=settings.request_timeout,
        )
    return app


def _bare(
    settings: Settings, sessions: StreamableHTTPSessionManager, parts: Parts, close_traces: Callable[[], None]
) -> FastAPI:
    """The framework without anything to answer, and with what has to be closed in the end."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            await parts.warm_up()
            async with _logged_missing_index(parts), sessions.run():
                yield
        finally:
            await parts.close()
            await asyncio.to_thread(close_traces)

    return FastAPI(
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Its own spans would come beside ours.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers={Exception: uncaught_exception_handler(settings.hsts_seconds)},
    )


@asynccontextmanager
async def _logged_missing_index(parts: Parts) -> AsyncIterator[None]:
    """Look for the index alongside, so that an engine that hangs does not delay the start."""
    looking = asyncio.create_task(parts.live.log_missing_index())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait((looking,))


def _calls(parts: Parts, trusted: Proxies, gated: Callable[[ASGIApp], Gated]) -> dict[str, ASGIApp]:
    """The tools and /suggest by their paths, all behind one gate."""
    tools: dict[str, ASGIApp] = {
        f"/tool/{tool.name}": gated(tool_endpoint(parts.dispatcher, tool.name, trusted)) for tool in REGISTRY
    }
    return {**tools, SUGGEST_PATH: gated(suggest_endpoint(parts.responder, trusted))}


def _probes(settings: Settings, parts: Parts, draining: asyncio.Event) -> list[Route]:
    """What may be asked at any time, however much there is to do."""
    reports = ReportsCheck(parts.limiter, parts.reports)
    build = stamp_of_build(settings.commit, settings.built_at)
    return [
        Route("/health", endpoint=health_endpoint()),
        Route("/ready", endpoint=ready_endpoint(parts.live, reports, draining)),
        Route("/version", endpoint=version_endpoint(build)),
    ]


async def run_stdio(settings: Settings, *, search: SearchBackend | None = None) -> None:
    """Serve MCP on stdin and stdout until stdin ends and its requests are answered."""
    parts = open_parts(settings, search)
    token = settings.api_token.get_secret_value().strip() if settings.api_token else None
    traces = open_traces(SERVICE, VERSION, sent=settings.traces == "otlp")
    call_of = call_over_stdio(token or None)
    try:
        timeout = settings.request_timeout
        server = build_server(
            parts.dispatcher,
            parts.responder,
            VERSION,
            call_of,
            timeout=timeout,
            traces=traces.transport,
            public_url=settings.public_url,
        )
        async with _logged_missing_index(parts):
            await serve_stdio(server, timeout + _LATE_S)
    finally:
        await parts.close()
        await asyncio.to_thread(traces.close)


def about(settings: Settings) -> About:
    """What those who run the service read of this process, whatever happens to it."""
    build = stamp_of_build(settings.commit, settings.built_at)
    state = ServiceState(
        name=SERVICE,
        version=VERSION,
        commit=None if build is None else build.commit,
        built_at=None if build is None else build.built_at,
        started_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        pid=os.getpid(),
    )
    return About(state, flags_of(settings))


async def _nothing_here(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await problem_answer(RouteNotFoundError()).send(send)
