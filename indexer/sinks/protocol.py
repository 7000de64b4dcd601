"""The protocols of a sink, which holds generations: to write, publish, change and read them (G1, G3).

Also what both engines derive of a generation: its role, and a stamp that replaces another generation's.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from index_mappings.generations import Operations, Stamp
from indexer.sinks.lease import Lease
from shop_directory.typeahead.segment import Shown

# What is wrong with a stamp, and what to do.
STAMP_DRIFT: Final = "the stamp of {} names another generation: shop-directory index verify --repair replaces it"
# The documents that a scan reads at a time.
_PAGE: Final = 2_000
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class GenerationRole(Enum):
    """The role of a generation."""

    LIVE = "live"  # the service answers from it
    PREVIOUS = "previous"  # the live one before; stays for a rollback
    RETIRED = "retired"  # an earlier live one, which readers may still use
    UNFINISHED = "unfinished"  # never published: of a running or a killed build


@dataclass(frozen=True, slots=True)
class Generation:
    """An existing generation; its stamp is None before it is sealed, `retired_at` if it is not known or it is live.

    A `whole` one has its stamp and all indices, so that it can be published again.
    """

    name: str
    role: GenerationRole
    stamp: Stamp | None
    retired_at: datetime | None
    whole: bool = True


def with_roles(found: Iterable[Generation], live: str | None, previous: str | None) -> tuple[Generation, ...]:
    """Generations with their roles, from the pointers to the live and the previous one, and the marks of retirement.

    If the pointer to the previous one is gone, or leads to one that has lost a part, the previous one is the whole one
    that was live last: what was lost may be the live generation, whose successor then names it or none.
    """
    generations = tuple(found)
    others = [one for one in generations if one.name != live and (one.name == previous or one.retired_at is not None)]
    best = max(others, key=lambda one: (one.whole, one.name == previous, one.retired_at or _NEVER), default=None)
    if best is not None and (best.whole or best.name == previous):
        previous = best.name
    return tuple(replace(one, role=_role_of(one, live, previous)) for one in generations)


def _role_of(found: Generation, live: str | None, previous: str | None) -> GenerationRole:
    if found.name == live:
        return GenerationRole.LIVE
    if found.name == previous:
        return GenerationRole.PREVIOUS
    return GenerationRole.UNFINISHED if found.retired_at is None else GenerationRole.RETIRED


def renewed(found: Stamp, generation: str, counts: Mapping[str, int], typeahead: str) -> Stamp:
    """A stamp for a generation whose stamp names another one; caches must see it as new (C1).

    The former sequence number is lost. The seconds since 1970 are above any: a micro-batch a second since then. Schema
    version and date are those of the stamp that was found.
    """
    sequence = max(found.sequence, int(time.time())) + 1
    return replace(found, generation=generation, sequence=sequence, source_position=None, typeahead=typeahead).counted(
        counts
    )


class GenerationReader(Protocol):
    """Reads a generation, and replaces its operations document. Every method may raise SinkError."""

    def count(self, kind: str) -> int:
        """The number of documents of a kind that the engine finds."""

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """The stored parts of documents by id, without those that do not exist."""

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        """The number of these ids that the engine finds."""

    def page(self, kind: str, after: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        """The first ids after this one in order, with stored parts; fewer than `limit` if none follow.

        The order is that of the stored ids, from which a foreign document's id may differ; without one it comes last.
        """

    def operations(self) -> Operations | None:
        """The operations document; None if there is none, or it is damaged."""

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        """Replace the operations document, which readers see immediately, and nothing else.

        `wait_for_engine` says whether to retry as long as for any other write, or only briefly.
        """


def scan(reader: GenerationReader, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ids and stored parts of all documents of a kind, in the order of the ids, in constant memory.

    The documents may not change during the scan, as under the lease.
    """
    after: str | None = ""
    while after is not None and (page := reader.page(kind, after, _PAGE)):
        yield from page
        after = page[-1][1].get("id")  # a document without one comes last


class GenerationWriter(GenerationReader, Protocol):
    """Writes a new generation. Every method may raise SinkError."""

    def add(self, kind: str, documents: Iterable[object], tick: Callable[[], None] = lambda: None) -> int:
        """Write documents of one kind in constant memory; returns how many were written.

        `tick` is called repeatedly while the engine writes what it has received.
        """

    def seal(self, stamp: Stamp) -> Stamp:
        """Make the documents readable, and write and return the stamp, which comes without the names of files."""


@runtime_checkable
class LocalWriter(Protocol):
    """A writer that needs space on a disk of this machine."""

    def needed_space(self, counts: Mapping[str, int]) -> tuple[Path, int]:
        """A folder, and how many bytes are written below it at the peak for this many documents of each kind."""


@runtime_checkable
class SamplingWriter(Protocol):
    """A writer that sees a sample of a kind's documents before all of them, to choose what is faster to look up."""

    def learn(self, kind: str, sample: Iterable[object]) -> None:
        """Choose it; no answer depends on it."""


@runtime_checkable
class MergingWriter(Protocol):
    """A writer that merges segments in a separate step, after all documents were written, for faster reads."""

    def merge(self, tick: Callable[[], None]) -> None:
        """Merge them; no answer depends on it. `tick` is called repeatedly; its errors are raised."""


class GenerationTypeahead(Protocol):
    """The typeahead of a sealed generation, as of the last `commit` of its editor."""

    def shown(self, after: str, end: str | None) -> Mapping[str, Shown]:
        """What suggestions show of the shops with ids after `after`, up to `end` if given, by id.

        Raises TypeaheadDamagedError if a file is missing or damaged.
        """

    def damaged(self, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """The missing and damaged files; reads all of them. Other threads may call it, also after `close`.

        `check` is called often while reading; its errors are raised.
        """

    def rebuild(self) -> None:
        """Write it again from the shops and categories that readers see; shown by the next `commit`."""


class GenerationEditor(GenerationReader, Protocol):
    """Changes a sealed generation in place; readers see no change until `commit`. Methods may raise SinkError."""

    @property
    def stamp(self) -> Stamp:
        """The stamp as of the last `commit`, or of the opening of the editor."""

    @property
    def typeahead(self) -> GenerationTypeahead:
        """The generation's typeahead, which follows the documents that are written."""

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """The kind and name of each missing or damaged file of the indices; reads all of them.

        Empty for an engine that verifies its files itself.
        """

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Add or replace documents, and remove others by id; returns how many were refused."""

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove all coupons or offers of these shops, also those that the state does not know."""

    def show(self) -> None:
        """Refresh the indices, so that readers see the changed documents."""

    def commit(self, stamp: Stamp) -> None:
        """Write the changes of the typeahead, and replace the stamp by one that comes without the names of files.

        Raises SinkError, among others if another job replaced the stamp.
        """

    def close(self) -> None:
        """Close the editor; changes that were not shown may be lost."""


class Sink(Protocol):
    """Holds the generations of one location. Every method may raise SinkError."""

    @property
    def location(self) -> str:
        """Its location for reports, without credentials."""

    def live(self) -> Stamp | None:
        """The stamp of the live generation, if any."""

    def generations(self) -> tuple[Generation, ...]:
        """All generations, the oldest first."""

    def begin(self, generation: str) -> GenerationWriter:
        """Start a new generation next to the live one."""

    def reader(self, generation: str) -> GenerationReader:
        """Read a sealed generation, without the lease. Raises SinkError as `edit`."""

    def edit(self, generation: str) -> GenerationEditor:
        """Open a sealed generation for changes. Raises SinkError, among others if it does not exist or has no stamp."""

    def publish(self, generation: str, replaced: str | None) -> None:
        """Make a sealed generation live in one step, if `replaced` still is live; that becomes the previous one.

        Raises SinkError, among others if another generation is live.
        """

    def retire(self, generation: str, at: datetime) -> None:
        """Record when a generation ceased to be live."""

    def alias_drift(self) -> Mapping[str, str]:
        """What is wrong, and what to do, by the kinds whose alias does not lead to the live generation.

        Publishing moves all aliases together, so only another program can cause this. `stamp` is one too if the live
        stamp names another generation. Raises SinkError, among others if the live generation is unknown.
        """

    def repair_stamp(self) -> None:
        """Replace the live stamp if it names another generation; only under the lease."""

    def drop(self, generation: str) -> None:
        """Remove a generation that is not live, if it exists."""

    def lease(self) -> Lease:
        """A new handle on the lease of this location (G4)."""

    def close(self) -> None:
        """Release connections."""


@runtime_checkable
class AnnouncingSink(Protocol):
    """A sink whose readers fetch files of a generation before they answer from it."""

    def announce(self, generation: str) -> float:
        """Announce a sealed generation before it is published; returns how many seconds to wait before publishing."""
