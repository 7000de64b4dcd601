"""Generations in memory: the documents themselves, for the reference backend that is the oracle of the engines."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from index_mappings.documents import stored_part
from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.typeahead.segment import Shown, shown_part
from indexer.sinks.failures import SinkError
from indexer.sinks.memory.lease import MemoryLease, MemoryLock
from indexer.sinks.protocol import Generation, Role


class MemorySink:
    """Holds the published generation's stamp, documents by kind, and operations document."""

    place = "memory"

    def __init__(self) -> None:
        self.stamp: Stamp | None = None
        self.documents: dict[str, list[Any]] = {}
        self.told: Operations | None = None
        self._unpublished: dict[str, MemoryWriter] = {}
        self._lock = MemoryLock()

    def live(self) -> Stamp | None:
        """The published stamp."""
        return self.stamp

    def generations(self) -> tuple[Generation, ...]:
        """The live one: an older one is gone as soon as it is replaced."""
        return () if self.stamp is None else (Generation(self.stamp.generation, Role.LIVE, self.stamp, None),)

    def begin(self, generation: str) -> "MemoryWriter":
        """Start a generation."""
        writer = MemoryWriter(self, generation)
        self._unpublished[generation] = writer
        return writer

    def edit(self, generation: str) -> "MemoryEditor":
        """Open the live generation, or one that is sealed."""
        if self.stamp is not None and self.stamp.generation == generation:
            return MemoryEditor(self, self)
        writer = self._unpublished.get(generation)
        if writer is None or writer.stamp is None:
            raise SinkError(f"there is no sealed generation {generation}")
        return MemoryEditor(self, writer)

    def publish(self, generation: str, replaced: str | None) -> None:
        """Put a generation in the place of the other."""
        if replaced != (None if self.stamp is None else self.stamp.generation):
            raise SinkError("the generation could not be published: another one has been meanwhile")
        writer = self._unpublished.pop(generation)
        self.stamp, self.documents, self.told = writer.stamp, writer.documents, writer.told

    def announce(self, generation: str) -> float:  # noqa: ARG002 - as the protocol says
        """Nothing has to be fetched."""
        return 0.0

    def retire(self, generation: str, at: datetime) -> None:
        """Nothing is kept of what is replaced."""

    def alias_drift(self) -> tuple[str, ...]:
        """Nothing: stamp and documents are replaced together."""
        return ()

    def repair_aliases(self) -> None:
        """There is nothing to do."""

    def drop(self, generation: str) -> None:
        """Forget a generation that was not published."""
        self._unpublished.pop(generation, None)

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """An older generation is gone as soon as it is replaced."""
        del keep
        return ()

    def lease(self) -> MemoryLease:
        """An asker within this process."""
        return MemoryLease(self._lock)

    def close(self) -> None:
        """Nothing is held open."""


class MemoryReader:
    """Documents by kind, wherever they are kept."""

    def __init__(self, sink: MemorySink, kept: "MemorySink | MemoryWriter | None" = None) -> None:
        self._sink = sink
        self._kept = kept

    @property
    def _by_kind(self) -> dict[str, list[Any]]:
        if self._kept is None:
            raise SinkError("nothing is kept")
        return self._kept.documents

    def count(self, kind: str) -> int:
        """How many documents of a kind there are."""
        return len(self._by_kind.get(kind, ()))

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        wanted = set(ids)
        return {found.id: stored_part(found) for found in self._by_kind.get(kind, ()) if found.id in wanted}

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids there are."""
        return len(set(ids).intersection(found.id for found in self._by_kind.get(kind, ())))

    def scan(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """In the order of the ids."""
        for found in sorted(self._by_kind.get(kind, ()), key=lambda document: document.id):
            yield found.id, stored_part(found)

    def page(self, kind: str, after: str, most: int) -> list[tuple[str, dict[str, Any]]]:
        """The first ids after one."""
        return list(islice((found for found in self.scan(kind) if found[0] > after), most))

    def operations(self) -> Operations | None:
        """The document as it was written."""
        return None if self._kept is None else self._kept.told


class MemoryWriter(MemoryReader):
    """A generation that is not published yet."""

    def __init__(self, sink: MemorySink, generation: str) -> None:
        super().__init__(sink, self)
        live = sink.live()
        self._replaced = None if live is None else live.generation
        self._generation = generation
        self.documents: dict[str, list[Any]] = {}
        self.stamp: Stamp | None = None
        self.told: Operations | None = None

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Keep the documents."""
        kept = self.documents.setdefault(kind, [])
        before = len(kept)
        kept.extend(documents)
        return len(kept) - before

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:  # noqa: ARG002 - no trouble
        """Keep the document."""
        self.told = operations

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Nothing lies apart."""

    def seal(self, stamp: Stamp) -> Stamp:
        """Keep the stamp."""
        self.stamp = stamp
        return stamp

    def publish(self) -> None:
        """Put this generation in the place of the other."""
        self._sink.publish(self._generation, self._replaced)

    def discard(self) -> None:
        """Forget the documents."""
        self._sink.drop(self._generation)
        self.documents = {}


class MemoryEditor(MemoryReader):
    """A generation that is changed; readers in the same process see the changes when they are shown."""

    def __init__(self, sink: MemorySink, kept: MemorySink | MemoryWriter) -> None:
        super().__init__(sink, kept)
        self._place = kept
        self._written = {kind: {found.id: found for found in documents} for kind, documents in kept.documents.items()}

    @property
    def stamp(self) -> Stamp:
        """The stamp as it is now."""
        if self._place.stamp is None:
            raise SinkError("the generation is not sealed")
        return self._place.stamp

    def typeahead_shown(self, after: str, end: str | None) -> dict[str, Shown]:
        """What the documents show: there are no files."""
        shops = (found for found in self._by_kind.get("shops", ()) if found.id > after)
        return {found.id: shown_part(found) for found in shops if end is None or found.id <= end}

    def typeahead_damaged(self) -> tuple[str, ...]:
        """Nothing: there are no files."""
        return ()

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """None: there are no files."""
        return ()

    def rebuild_typeahead(self) -> None:
        """There is nothing to do."""

    def write(self, kind: str, documents: Iterable[Any], removed: Collection[str]) -> int:
        """Replace and remove documents."""
        written = self._written.setdefault(kind, {})
        for document_id in removed:
            written.pop(document_id, None)
        written.update({document.id: document for document in documents})
        return 0

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove by the shop's id."""
        gone = set(shop_ids)
        written = self._written.get(kind, {})
        self._written[kind] = {key: found for key, found in written.items() if not gone.intersection(found.shop_refs)}

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:  # noqa: ARG002 - no trouble
        """Replace the document."""
        self._place.told = operations

    def show(self) -> None:
        """Put the changed documents in the place of the others."""
        self._place.documents = {kind: list(found.values()) for kind, found in self._written.items()}

    def commit(self, stamp: Stamp) -> None:
        """Replace the stamp."""
        self._place.stamp = stamp

    def close(self) -> None:
        """Nothing is held."""
