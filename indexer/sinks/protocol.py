"""What the indexer asks of the place it writes to: whole generations, published at once, and changes (G1, G3)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.typeahead.segment import Shown
from indexer.sinks.lease import Lease


class Role(Enum):
    """What a generation is."""

    LIVE = "live"  # the one that is answered from
    PREVIOUS = "previous"  # what was live before; kept for a rollback
    RETIRED = "retired"  # what was live earlier; readers may still be busy with it
    UNFINISHED = "unfinished"  # never published: a build at work, or what a killed one left


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation that is there.

    Attributes:
        name: its name.
        role: what it is.
        stamp: what it says of itself; None before it is sealed.
        retired_at: since when it is not live any more; None where that is not known.
    """

    name: str
    role: Role
    stamp: Stamp | None
    retired_at: datetime | None


class GenerationReader(Protocol):
    """A generation that is read back. Every method may raise SinkError."""

    def count(self, kind: str) -> int:
        """How many documents of a kind the engine can find."""

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """The stored parts of documents by their ids; ids that are not there are left out."""

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids the engine can find."""

    def scan(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Ids and stored parts of all documents of a kind, in the order of the ids, in constant memory."""

    def page(self, kind: str, after: str, most: int) -> list[tuple[str, dict[str, Any]]]:
        """The first ids after this one, at most so many, in order and with stored parts; fewer mean that none follow.

        A document that nobody should have written may be named otherwise than its stored id, which orders it; one
        without a stored id comes last.
        """

    def operations(self) -> Operations | None:
        """The operations document; None where there is none that can be read."""


class GenerationWriter(GenerationReader, Protocol):
    """A generation that is being written. Every method may raise SinkError."""

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Write documents of one kind, as many as there are, in constant memory; returns how many were taken."""

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:
        """Replace the operations document, which readers see at once; the stamp and all else stay as they are.

        Args:
            operations: the whole document.
            patient: whether an engine in trouble is waited for, as for any other write.
        """

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Lay what was written together for its readers, once all of it is there; no answer depends on it.

        Args:
            meanwhile: called again and again while that takes time; its errors are raised.
        """

    def seal(self, stamp: Stamp) -> Stamp:
        """Make what was written readable, and write the stamp.

        Args:
            stamp: all of it but the name of the typeahead.

        Returns:
            The stamp as it was written.
        """

    def publish(self) -> None:
        """Make this generation the live one, all its indices in one step."""

    def discard(self) -> None:
        """Remove what was written."""


class GenerationEditor(GenerationReader, Protocol):
    """A sealed generation that is changed in place. Every method may raise SinkError.

    Readers see nothing of what was written until `commit`.
    """

    @property
    def stamp(self) -> Stamp:
        """The stamp as it was when the editor was opened, or as it was committed last."""

    def typeahead_shown(self, after: str, end: str | None) -> Mapping[str, Shown]:
        """What suggestions show of shops, by id, as of the last `commit`.

        Args:
            after: the shops after this id.
            end: and up to this one; None for all that follow.

        Raises:
            TypeaheadDamagedError: its files say nothing.
        """

    def typeahead_damaged(self) -> tuple[str, ...]:
        """The files of the typeahead that are missing, or not what their names say; reads all of them."""

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """The kind and name of each file of the indices that is missing, or not what was written; reads all of them.

        None where the engine's own checksums prove its files.
        """

    def rebuild_typeahead(self) -> None:
        """Write the typeahead again from the shops and categories that readers see; the next `commit` shows it."""

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Put documents in the place of any with their ids, and remove others; returns how many were refused."""

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove all coupons or offers that name one of these shops, whoever wrote them."""

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:
        """Replace the operations document, which readers see at once; the stamp and all else stay as they are.

        Args:
            operations: the whole document.
            patient: whether an engine in trouble is waited for, as for any other write.
        """

    def show(self) -> None:
        """Let readers see what was written: one refresh."""

    def commit(self, stamp: Stamp) -> None:
        """Write the typeahead of what was written, and replace the stamp.

        Args:
            stamp: all of it but the name of the typeahead, which follows from what was written.

        Raises:
            SinkError: among others, somebody else replaced it meanwhile.
        """

    def close(self) -> None:
        """Let go of it; what was not shown may be lost."""


class Sink(Protocol):
    """A place that holds generations. Every method may raise SinkError."""

    @property
    def place(self) -> str:
        """What reports call it; no credentials."""

    def live(self) -> Stamp | None:
        """The stamp of the live generation, if any."""

    def generations(self) -> tuple[Generation, ...]:
        """All that are there, the oldest first."""

    def begin(self, generation: str) -> GenerationWriter:
        """Start a new generation next to the live one."""

    def edit(self, generation: str) -> GenerationEditor:
        """Open a sealed generation for changes.

        Raises:
            SinkError: among others, it is not there or has no stamp.
        """

    def publish(self, generation: str, replaced: str | None) -> None:
        """Make a sealed generation live, in one step, if the one to be replaced still is; that becomes the previous.

        Raises:
            SinkError: another one is live; the publisher was overtaken.
        """

    def announce(self, generation: str) -> float:
        """Let readers fetch ahead what they need of a sealed generation that will be published soon.

        Returns:
            For how many seconds to give them time before that; 0 where they have to fetch nothing.
        """

    def retire(self, generation: str, at: datetime) -> None:
        """Note since when a generation is not live any more."""

    def alias_drift(self) -> tuple[str, ...]:
        """What does not lead to the live generation: kinds whose alias is astray, and `stamp` if it is another one's.

        Raises:
            SinkError: among others, which generation is live can't be told any more.
        """

    def repair_aliases(self) -> None:
        """Lead everything to the live generation, all aliases in one step; call it under the lease."""

    def drop(self, generation: str) -> None:
        """Remove a generation that is not live, as far as it is there."""

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove all generations but these; returns the removed."""

    def lease(self) -> Lease:
        """A new asker for the right to write here (G4)."""

    def close(self) -> None:
        """Release connections."""
