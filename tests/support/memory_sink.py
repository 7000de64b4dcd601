"""Generations in memory: the documents themselves, for the reference backend."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from index_mappings.documents import stored_part
from index_mappings.generations import Operations, Stamp
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseHolder, LeaseLostError, acquire_until
from indexer.sinks.protocol import Generation, GenerationRole
from shop_directory.typeahead.segment import Shown, shown_part

_PAUSE_S: Final = 0.01


class MemoryLease:
    """A lease within this process; `held` has the holders of the leases of a sink."""

    def __init__(self, held: "dict[MemoryLease, LeaseHolder]", guard: threading.Lock) -> None:
        self._held, self._guard = held, guard

    def acquire(self, job: str, wait: float) -> None:
        acquire_until(lambda: self._acquire(job), wait, _PAUSE_S)

    def check(self) -> None:
        if self not in self._held:
            raise LeaseLostError("the lease is not held")

    def release(self) -> None:
        self._held.pop(self, None)

    def _acquire(self, job: str) -> None:
        with self._guard:
            for holder in self._held.values():
                raise LeaseHeldError(f"another job has the lease: {holder}")
            self._held[self] = LeaseHolder.here(job)


class MemorySink:
    """Holds the published generation's stamp, documents by kind, and operations document."""

    location = "memory"

    def __init__(self) -> None:
        self.stamp: Stamp | None = None
        self.documents: dict[str, list[Any]] = {}
        self.operations_document: Operations | None = None
        self._unpublished: dict[str, MemoryWriter] = {}
        self._held: dict[MemoryLease, LeaseHolder] = {}
        self._guard = threading.Lock()

    def live(self) -> Stamp | None:
        return self.stamp

    def generations(self) -> tuple[Generation, ...]:
        return () if self.stamp is None else (Generation(self.stamp.generation, GenerationRole.LIVE, self.stamp, None),)

    def begin(self, generation: str) -> "MemoryWriter":
        writer = MemoryWriter()
        self._unpublished[generation] = writer
        return writer

    def reader(self, generation: str) -> "MemoryEditor":
        return self.edit(generation)

    def edit(self, generation: str) -> "MemoryEditor":
        if self.stamp is not None and self.stamp.generation == generation:
            return MemoryEditor(self)
        writer = self._unpublished.get(generation)
        if writer is None or writer.stamp is None:
            raise SinkError(f"there is no sealed generation {generation}")
        return MemoryEditor(writer)

    def publish(self, generation: str, replaced: str | None) -> None:
        if replaced != (None if self.stamp is None else self.stamp.generation):
            raise SinkError("the generation could not be published: another one has been meanwhile")
        writer = self._unpublished.pop(generation)
        self.stamp, self.documents, self.operations_document = (
            writer.stamp,
            writer.documents,
            writer.operations_document,
        )

    def retire(self, generation: str, at: datetime) -> None:
        """Do nothing: a replaced generation is removed."""

    def alias_drift(self) -> Mapping[str, str]:
        return {}

    def repair_stamp(self) -> None:
        """Do nothing."""

    def drop(self, generation: str) -> None:
        self._unpublished.pop(generation, None)

    def lease(self) -> MemoryLease:
        return MemoryLease(self._held, self._guard)

    def close(self) -> None:
        """Do nothing."""


class MemoryReader:
    """Reads the documents of a sink's live generation, or of one that is being written."""

    def __init__(self, generation: "MemorySink | MemoryWriter") -> None:
        self._source = generation

    def count(self, kind: str) -> int:
        return len(self._source.documents.get(kind, ()))

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        wanted = set(ids)
        return {found.id: stored_part(found) for found in self._source.documents.get(kind, ()) if found.id in wanted}

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        return len(set(ids).intersection(found.id for found in self._source.documents.get(kind, ())))

    def page(self, kind: str, after: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        later = (found for found in self._source.documents.get(kind, ()) if found.id > after)
        return [(found.id, stored_part(found)) for found in sorted(later, key=lambda document: document.id)[:limit]]

    def operations(self) -> Operations | None:
        return self._source.operations_document

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:  # noqa: ARG002 - never fails
        self._source.operations_document = operations


class MemoryWriter(MemoryReader):
    def __init__(self) -> None:
        super().__init__(self)
        self.documents: dict[str, list[Any]] = {}
        self.stamp: Stamp | None = None
        self.operations_document: Operations | None = None

    def add(self, kind: str, documents: Iterable[object], tick: Callable[[], None] = lambda: None) -> int:
        tick()
        stored = self.documents.setdefault(kind, [])
        before = len(stored)
        stored.extend(documents)
        return len(stored) - before

    def seal(self, stamp: Stamp) -> Stamp:
        self.stamp = stamp
        return stamp


class MemoryTypeahead(MemoryReader):
    def shown(self, after: str, end: str | None) -> dict[str, Shown]:
        shops = (found for found in self._source.documents.get("shops", ()) if found.id > after)
        return {found.id: shown_part(found) for found in shops if end is None or found.id <= end}

    def damaged(self, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:  # noqa: ARG002 - protocol
        return ()

    def rebuild(self) -> None:
        """Do nothing."""


class MemoryEditor(MemoryReader):
    """Changes a generation; readers in the same process see the changes after `show`."""

    def __init__(self, generation: MemorySink | MemoryWriter) -> None:
        super().__init__(generation)
        self.typeahead = MemoryTypeahead(generation)
        self._written = {
            kind: {found.id: found for found in documents} for kind, documents in generation.documents.items()
        }

    @property
    def stamp(self) -> Stamp:
        if self._source.stamp is None:
            raise SinkError("the generation is not sealed")
        return self._source.stamp

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        return ()

    def write(self, kind: str, documents: Iterable[Any], removed: Collection[str]) -> int:
        written = self._written.setdefault(kind, {})
        for document_id in removed:
            written.pop(document_id, None)
        written.update({document.id: document for document in documents})
        return 0

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        removed = set(shop_ids)
        written = self._written.get(kind, {})
        self._written[kind] = {
            key: found for key, found in written.items() if not removed.intersection(found.shop_refs)
        }

    def show(self) -> None:
        self._source.documents = {kind: list(found.values()) for kind, found in self._written.items()}

    def commit(self, stamp: Stamp) -> None:
        self._source.stamp = stamp

    def close(self) -> None:
        """Do nothing."""
