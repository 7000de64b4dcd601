"""Traces: a server span for each call, and below it a client span for each request to an engine or a store.

Spans hold names of tools and operations, and outcomes; never a query, a shop, a token, an address or the text of an
exception. OpenTelemetry's own variables, which its library reads, set the destination, credentials and sampling.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as span_context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shop_directory.runtime.request_context import RequestContext

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_FLUSH_MS: Final = 2_000
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_TRACE_CONTEXT: Final = ("traceparent", "tracestate")
# Outcomes that are faults of the service; errors of the caller are not.
_FAULTS: Final = frozenset({"internal_error", "backend_unavailable", "overloaded", "not_ready"})


def header_texts(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """HTTP headers as text by name."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


class CallTracer:
    """Starts a server span for each call."""

    def __init__(self, provider: "TracerProvider", service: str, version: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(service, version)

    def begin(self, request: RequestContext, name: str, sent: Mapping[str, Any], attributes: Mapping[str, str]) -> None:
        """Start the span of the current task's call, as a child of the caller's span if one was sent.

        The span ends with the request, and gets its outcome. Its name is a method and a route, or a protocol's method
        and a tool. `sent` are the headers of the call, by lower-case name.
        """
        texts = {key: sent[key] for key in _TRACE_CONTEXT if isinstance(sent.get(key), str)}
        # The parent comes only from the caller's headers: the surrounding context may belong to another call.
        parent = _PROPAGATOR.extract(texts, context=span_context.Context())
        span = self._tracer.start_span(name, parent, SpanKind.SERVER, {**attributes, "request.id": request.request_id})
        request.span = partial(_client_span, self._tracer)
        request.on_end.append(partial(_end, span, request))
        # Never detached: each request has its own task, and each task its own context.
        span_context.attach(set_span_in_context(span))

    def close(self) -> None:
        """Send the remaining spans, for two seconds at most."""
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()


def open_traces(
    service: str, version: str, processor: "SpanProcessor | None" = None, *, sent: bool = False
) -> CallTracer | None:
    """Open the tracing of calls; OTEL_SERVICE_NAME takes precedence over the service's name.

    The `processor` receives the spans; without one they are sent by OTLP over HTTP if they are `sent`, else not made.
    """
    if processor is None:
        if not sent:
            return None
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        processor = BatchSpanProcessor(OTLPSpanExporter())
    # Imported only while tracing is switched on: a tenth of a second of each start.
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
    resource = Resource.create({"service.version": version}).merge(Resource(named))
    # Not the global provider: applications of one process would share it, and libraries would add spans to it.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return CallTracer(provider, service, version)


def _end(span: Span, request: RequestContext) -> None:
    outcome = request.outcome or "none"
    span.set_attribute("shop_directory.outcome", outcome)
    if request.generation is not None:
        span.set_attribute("shop_directory.generation", request.generation)
    if outcome in _FAULTS:
        span.set_attribute("error.type", outcome)
        span.set_status(StatusCode.ERROR)
    span.end()


@contextmanager
def _client_span(tracer: Tracer, system: str, operation: str) -> Iterator[Span]:
    attributes = {"db.system.name": system, "db.operation.name": operation}
    span = tracer.start_span(f"{operation} {system}", kind=SpanKind.CLIENT, attributes=attributes)
    token = span_context.attach(set_span_in_context(span))
    try:
        yield span
    except BaseException as error:
        # Only the type: the text may hold the query.
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        span_context.detach(token)
        span.end()
