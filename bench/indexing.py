"""How fast a whole build is, beside the raw engine that is given the same finished documents, in one run."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.invented import write_invented
from indexer.build import build
from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.memory import MemorySink
from indexer.sources.ndjson import NdjsonCatalogue


@dataclass(frozen=True, slots=True)
class Indexing:
    """Seconds for the same shops.

    Attributes:
        shops: how many public ones.
        whole: reading, gate, projection, writing, verification, publishing.
        projection: the same without any engine.
        raw: only writing the finished documents.
    """

    shops: int
    whole: float
    projection: float
    raw: float


def measure(directory: Path, count: int) -> Indexing:
    """Build `count` invented shops in the embedded engine."""
    catalogue = write_invented(directory / "shops.ndjson", count)
    memory = MemorySink()
    projection = _seconds(lambda: build(NdjsonCatalogue(catalogue), memory))
    whole = _seconds(lambda: build(NdjsonCatalogue(catalogue), EmbeddedSink(directory / "whole")))
    writer = EmbeddedSink(directory / "raw").begin("raw")
    shops = memory.documents["shops"]
    raw = _seconds(lambda: writer.add("shops", shops))
    return Indexing(len(shops), whole, projection, raw)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
