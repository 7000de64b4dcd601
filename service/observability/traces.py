"""Traces over OTLP, where the settings switch them on.

OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_..., OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES), which its library
reads, set the destination, the credentials and the sampling.
"""

import os
from dataclasses import dataclass
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from service.runtime.tracing import CallTracer

_FLUSH_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Traces:
    """The tracing of calls: what starts the spans, and the tracer provider; both None where nothing is traced."""

    transport: CallTracer | None
    provider: TracerProvider | None

    def close(self) -> None:
        """Send the remaining spans, for two seconds at most."""
        if self.provider is not None:
            self.provider.force_flush(_FLUSH_MS)
            self.provider.shutdown()


def open_traces(service: str, version: str, processor: SpanProcessor | None = None, *, sent: bool = False) -> Traces:
    """Open the tracing of calls.

    OTEL_SERVICE_NAME takes precedence over the service's name. Spans are `sent` by OTLP over HTTP, unless a processor
    receives them instead.
    """
    if processor is None:
        if not sent:
            return Traces(None, None)
        # Its import takes 40 ms of each start.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - see above

        processor = BatchSpanProcessor(OTLPSpanExporter())
    resource = Resource.create({"service.version": version}).merge(_service_name(service))
    # Not the global provider: applications of one process would share it, and libraries would add spans to it.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return Traces(CallTracer(provider.get_tracer(service, version)), provider)


def _service_name(service: str) -> Resource:
    return Resource({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service})
