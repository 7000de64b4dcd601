"""The protocols of a catalogue: all records of a type, and the changes that follow them (G3).

A source states the location of each record, so that a problem can be reported without a value (V1).
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from index_mappings.generations import MissingChanges
from indexer.progress import Advance
from indexer.records.faults import RefusedRecordError
from indexer.records.hiding import HIDES, Hiding
from indexer.records.problems import Problem, ProblemLog
from indexer.records.shop import ORDER_FIELDS, Order, Record, ShopRecord, is_public

# A valid record of its type, after its line or the number of its row.
NumberedRecord = tuple[int, Any]


def without_mixed_versions(
    records: Iterable[NumberedRecord], name: str, container: str, problems: ProblemLog
) -> Generator[NumberedRecord, None, None]:
    """The records of the kind of version that any states first, or of none; others in the `container` are problems."""
    expected: str | None = None
    for line, record in records:
        stated = ORDER_FIELDS[record.order.kind]
        expected = expected or stated
        if stated in (None, expected):
            yield line, record
        else:
            reason = f"must not be mixed with {expected} in one {container}"
            problems.add(Problem(name, line, stated, reason))
            if isinstance(record, ShopRecord) and not is_public(record):
                problems.add_hiding(Hiding(line, (record.id,), None, None))


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a record of a type of RECORDS; without a record it is deleted.

    `order` compares the changes of a key, and is never NO_ORDER. `location` is a file and line, or a table and row.
    """

    type: str
    key: str
    order: Order
    record: Record | None
    location: str


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A change that can't be applied, the reasons without its values, and what it hides all the same.

    `raw` is the change as it was received, for the dead-letter file, which is as private as the state.
    """

    location: str
    reasons: tuple[str, ...]
    raw: str
    hiding: Hiding | None = None

    @classmethod
    def of(cls, location: str, error: RefusedRecordError, raw: str, hiding: Hiding | None) -> "RefusedChange":
        """The change with the reasons of an error."""
        return cls(location, (*error.messages, *([HIDES] if hiding else [])), raw, hiding)


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes that can be applied, in the order of their arrival, and those that can't.

    Reading continues at `position`, which is stored with the applied changes; None if the source has none. `more` says
    whether more changes are available already. `missing` are changes before these that can't be read any more.
    """

    changes: tuple[Change, ...]
    refused: tuple[RefusedChange, ...]
    position: str | None
    more: bool
    missing: MissingChanges | None = None


class ChangeSource(Protocol):
    """A source of changes. A change may be delivered twice, and in any order: versions decide."""

    @property
    def kind(self) -> str:
        """Its kind, as operators see it: `file`, `stdin` or `sql`."""

    @property
    def ended(self) -> bool:
        """Whether no more changes can follow, as for a stream that was closed."""
        return False

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes after the position of an earlier batch, up to `limit`, without waiting for any.

        None is the beginning, and so is a position that the source does not know any more, as its file was replaced.
        Raises CatalogueError if the source cannot be read now; no change was skipped.
        """

    def describe_position(self, position: str | None) -> str | None:  # noqa: ARG002 - for a source without positions
        """A description of a position for operators, without a record's key, version or value (V1)."""
        return None

    def backlog(self, position: str | None) -> int | None:  # noqa: ARG002 - for a source that can't count them
        """The number of changes that are known to follow a position; there may be more. None if it is unknown.

        Raises CatalogueError if the source cannot be read now.
        """
        return None

    def hold(self, position: str | None = None) -> None:  # noqa: ARG002 - for a source that can't be replaced
        """Keep what could be replaced before it is read; called once a second while nothing can be read.

        With a position, what follows it is read as well by the next `read` from the beginning.
        """
        return

    def close(self) -> None:
        """Release files and connections."""


class Source(Protocol):
    """A catalogue. Every method may raise CatalogueError."""

    @property
    def unit(self) -> str:
        """The unit of `size`: bytes or rows."""

    def kinds(self) -> tuple[str, ...]:
        """The types of the catalogue, shops first."""

    def name(self, kind: str) -> str:
        """The name of a type's file or table, for reports."""

    def size(self, kind: str) -> int:
        """The size of a type in the source's unit."""

    def fingerprint(self) -> str | None:
        """A digest of all that a build reads and of the options of reading; None if it can't be known."""

    def written(self) -> datetime | None:
        """When its oldest part was written; None if it is read as of now."""

    def reading(self) -> AbstractContextManager[str | None]:
        """Fix the state that `records` reads during a `with` block, if the source supports that.

        Yields the position from which changes have to be read so that none is missed; None for the beginning.
        """

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterable[NumberedRecord]:
        """Read the records of a type; invalid ones are added to `problems`. `advance` counts in the source's unit."""

    def changes(self) -> ChangeSource | None:
        """The source of this catalogue's changes; None if it has none."""


@contextmanager
def changes_of(source: Source) -> Iterator[ChangeSource | None]:
    """The source of a catalogue's changes during a `with` block, after which it is closed; None if there is none."""
    changes = source.changes()
    try:
        yield changes
    finally:
        if changes is not None:
            changes.close()
