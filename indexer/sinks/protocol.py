"""What a build asks of the place it writes to: one whole generation, sealed, checked, then published at once (G1)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from index_mappings.generations import Stamp


class SinkError(Exception):
    """The engine did not do what it was asked; the live generation is untouched."""


class GenerationWriter(Protocol):
    """A generation that is being written. Every method may raise SinkError."""

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Write documents of one kind, as many as there are, in constant memory; returns how many."""

    def seal(self, stamp: Stamp) -> None:
        """Make what was written readable, and write the stamp."""

    def count(self, kind: str) -> int:
        """How many documents of a kind the engine holds."""

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """The stored parts of documents by their ids; ids that are not there are left out."""

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids the engine holds."""

    def publish(self) -> None:
        """Make this generation the live one, all its indices in one step."""

    def discard(self) -> None:
        """Remove what was written."""


class Sink(Protocol):
    """A place that holds generations. Every method may raise SinkError."""

    def live(self) -> Stamp | None:
        """The stamp of the live generation, if any."""

    def begin(self, generation: str) -> GenerationWriter:
        """Start a new generation next to the live one."""

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove all other generations; returns the removed."""

    def close(self) -> None:
        """Release connections."""
