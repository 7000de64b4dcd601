"""Encodes metric families as the Prometheus text format, or as OpenMetrics where the client accepts it.

prometheus_client encodes both, so that label values are escaped correctly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

_OPENMETRICS: Final = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Exposition:
    """The response to a scrape: the encoded text and its content type."""

    body: bytes
    media_type: bytes


class _FixedCollector(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def encode_families(families: Sequence[Metric], accept: str | None) -> Exposition:
    """Encode metric families, no two of the same name.

    Only whether the request's `accept` header names OpenMetrics matters; it is never echoed.
    """
    registry = CollectorRegistry()
    registry.register(_FixedCollector(families))
    if accept is not None and _OPENMETRICS in accept.lower():
        return Exposition(_openmetrics(registry), openmetrics.CONTENT_TYPE_LATEST.encode())
    return Exposition(generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4.encode())


def _openmetrics(registry: CollectorRegistry) -> bytes:
    text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
    return text
