"""Generations in memory: the documents themselves, for the reference backend that is the oracle of the engines."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from index_mappings.documents import stored_part
from index_mappings.generations import Stamp


class MemorySink:
    """Holds the published generation's stamp and documents by kind."""

    def __init__(self) -> None:
        self.stamp: Stamp | None = None
        self.documents: dict[str, list[Any]] = {}

    def live(self) -> Stamp | None:
        """The published stamp."""
        return self.stamp

    def begin(self, generation: str) -> "MemoryWriter":
        """Start a generation."""
        return MemoryWriter(self, generation)

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """An older generation is gone as soon as it is replaced."""
        del keep
        return ()

    def close(self) -> None:
        """Nothing is held open."""


class MemoryWriter:
    """A generation that is not published yet."""

    def __init__(self, sink: MemorySink, generation: str) -> None:
        self._sink = sink
        self._generation = generation
        self._documents: dict[str, list[Any]] = {}
        self._stamp: Stamp | None = None

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Keep the documents."""
        kept = self._documents.setdefault(kind, [])
        before = len(kept)
        kept.extend(documents)
        return len(kept) - before

    def seal(self, stamp: Stamp) -> None:
        """Keep the stamp."""
        self._stamp = stamp

    def count(self, kind: str) -> int:
        """How many documents of a kind there are."""
        return len(self._documents.get(kind, ()))

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        wanted = set(ids)
        return {found.id: stored_part(found) for found in self._documents.get(kind, ()) if found.id in wanted}

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids there are."""
        return len(set(ids).intersection(found.id for found in self._documents.get(kind, ())))

    def publish(self) -> None:
        """Put this generation in the place of the other."""
        self._sink.stamp, self._sink.documents = self._stamp, self._documents

    def discard(self) -> None:
        """Forget the documents."""
        self._documents = {}
