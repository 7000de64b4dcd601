"""Metric families as bytes: the Prometheus text format, or OpenMetrics for who asks for it.

The library writes both, so that whatever stands in a label is escaped by its rules.
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
    """What a scrape is answered.

    Attributes:
        body: the text.
        media_type: its content type.
    """

    body: bytes
    media_type: bytes


class _Once(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposed(families: Sequence[Metric], accept: str | None) -> Exposition:
    """Write the families.

    Args:
        families: each name once.
        accept: the caller's header. Of it only whether OpenMetrics is named counts; nothing of it is repeated.
    """
    registry = CollectorRegistry()
    registry.register(_Once(families))
    if accept is not None and _OPENMETRICS in accept.lower():
        return Exposition(_openmetrics(registry), openmetrics.CONTENT_TYPE_LATEST.encode())
    return Exposition(generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4.encode())


def _openmetrics(registry: CollectorRegistry) -> bytes:
    text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
    return text
