"""Traces sent by OpenTelemetry's own protocol, where the settings switch them on; otherwise nothing of it runs.

Where they are sent, how many and with what credentials is said by OpenTelemetry's own variables, which the library
reads: OTEL_EXPORTER_OTLP_..., OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES.
"""

import os
from dataclasses import dataclass
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from service.runtime.tracing import UNTRACED, CallTracer, TracedTransport

_FLUSH_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Traces:
    """Where calls are traced.

    Attributes:
        transport: begins their spans.
        provider: of the spans; None where nothing is traced.
    """

    transport: CallTracer
    provider: TracerProvider | None

    def close(self) -> None:
        """Send what is left, for a short time at most."""
        if self.provider is not None:
            self.provider.force_flush(_FLUSH_MS)
            self.provider.shutdown()


def open_traces(service: str, version: str, processor: SpanProcessor | None = None, *, sent: bool = False) -> Traces:
    """Make what traces calls.

    Args:
        service: its name in the traces; OTEL_SERVICE_NAME comes before it.
        version: of the service.
        processor: takes the spans; without one they are sent, if at all.
        sent: whether they are sent by OTLP over HTTP.
    """
    if processor is None:
        if not sent:
            return Traces(UNTRACED, None)
        processor = BatchSpanProcessor(OTLPSpanExporter())
    resource = Resource.create({"service.version": version}).merge(_named(service))
    # Not the global one: applications in one process don't share it, and no library begins spans that nobody asked for.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return Traces(TracedTransport(provider.get_tracer(service, version)), provider)


def _named(service: str) -> Resource:
    return Resource({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service})
