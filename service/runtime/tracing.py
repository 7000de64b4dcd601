"""Traces: one server span a call on every door, and under it a client span for each question to an engine or a store.

Off unless a tracer is handed in. A span names tools, operations and outcomes; never a query, a shop, a token or an
address, and no exception's text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Final, Protocol

from opentelemetry import context as span_context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.runtime.request_context import RequestContext, current

Carried = Callable[[], Mapping[str, Any]]

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_CARRIED: Final = ("traceparent", "tracestate")
_NOTHING: Final = nullcontext()
# What is the service's own fault; that a caller asked for the wrong thing is none.
_FAULTS: Final = frozenset({"internal_error", "backend_unavailable", "overloaded", "not_ready"})


def of_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """What came in headers of HTTP."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


class Transport(Protocol):
    """Where calls come in."""

    def begin(self, request: RequestContext, name: str, carried: Carried, attributes: Mapping[str, str]) -> None:
        """The running task now works for this call, until the request's end."""


class UntracedTransport:
    """A door that nobody traces."""

    def begin(self, request: RequestContext, name: str, carried: Carried, attributes: Mapping[str, str]) -> None:
        """Nothing is kept."""


UNTRACED: Final = UntracedTransport()


class TracedTransport:
    """A door that begins a server span for each call."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, request: RequestContext, name: str, carried: Carried, attributes: Mapping[str, str]) -> None:
        """The running task now works for this call, until the request's end.

        Args:
            request: the call's; its outcome ends up in the span.
            name: of the span: a method and a route, or a protocol's method and a tool.
            carried: gives what came with the call, by lower-case name; of it `traceparent` and `tracestate` count.
            attributes: of the span.
        """
        came = carried()
        texts = {key: came[key] for key in _CARRIED if isinstance(came.get(key), str)}
        # From nothing but what the caller sent: the context around may be another call's.
        parent = _PROPAGATOR.extract(texts, context=span_context.Context())
        span = self._tracer.start_span(name, parent, SpanKind.SERVER, {**attributes, "request.id": request.request_id})
        request.tracer = self._tracer
        request.ended.append(partial(_end, span, request))
        # Each request has a task, and each task a context, of its own: there is nothing to go back to.
        span_context.attach(set_span_in_context(span))


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
def _asking(tracer: Tracer, system: str, operation: str) -> Iterator[Span]:
    attributes = {"db.system.name": system, "db.operation.name": operation}
    span = tracer.start_span(f"{operation} {system}", kind=SpanKind.CLIENT, attributes=attributes)
    token = span_context.attach(set_span_in_context(span))
    try:
        yield span
    except BaseException as error:
        # By its kind only: its text may hold what was asked.
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        span_context.detach(token)
        span.end()


def asking(system: str, operation: str) -> AbstractContextManager[object]:
    """Everything within asks another part for the call under way; nothing is kept where nobody traces it.

    Args:
        system: `opensearch`, `tantivy`, `redis` or `sqlite`.
        operation: what it is asked.
    """
    request = current()
    if request is None or request.tracer is None:
        return _NOTHING
    return _asking(request.tracer, system, operation)
