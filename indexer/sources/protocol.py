"""The protocols of a catalogue: all records of a type, and the changes that follow them (G3).

A source states the location of each record, so that a problem can be reported without a value (V1).
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from indexer.progress import Advance
from indexer.records.problems import Problem, ProblemLog
from indexer.records.shop import ORDER_FIELDS, Order, Record

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True, slots=True)
class NumberedRecord(Generic[AnyRecord]):
    """A valid record, and its line or the number of its row."""

    record: AnyRecord
    line: int


def without_mixed_versions(
    records: Iterable[NumberedRecord[AnyRecord]], name: str, container: str, problems: ProblemLog
) -> Generator[NumberedRecord[AnyRecord], None, None]:
    """The records whose kind of version is the first one that any of them states, or that state none.

    The others are problems; `container` is `file` or `table`.
    """
    expected: str | None = None
    for found in records:
        stated = ORDER_FIELDS[found.record.order.kind]
        expected = expected or stated
        if stated in (None, expected):
            yield found
        else:
            reason = f"must not be mixed with {expected} in one {container}"
            problems.add(Problem(name, found.line, stated, reason))


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a record.

    Attributes:
        type: a key of RECORDS.
        key: the record's key.
        order: by which changes of this key are compared; never NO_ORDER.
        record: the new record; None if it was deleted.
        location: the file and line, or table and row, of the change, for reports.
    """

    type: str
    key: str
    order: Order
    record: Record | None
    location: str


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A change that can't be applied.

    Attributes:
        location: as of `Change`.
        reasons: what is wrong with the change, without its values.
        raw: the change as it was received, for the dead-letter file, which is as private as the state.
    """

    location: str
    reasons: tuple[str, ...]
    raw: str


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Some changes, in the order of their arrival.

    Attributes:
        changes: those that can be applied.
        refused: those that can't.
        position: where reading continues, stored with the applied changes; None if the source has no positions.
        more: whether more changes are available already.
    """

    changes: tuple[Change, ...]
    refused: tuple[RefusedChange, ...]
    position: str | None
    more: bool


class ChangeSource(Protocol):
    """A source of changes. A change may be delivered twice, and in any order: versions decide."""

    @property
    def kind(self) -> str:
        """Its kind, as operators see it: `file`, `stdin` or `sql`."""

    @property
    def ended(self) -> bool:
        """Whether no more changes can follow, as for a stream that was closed."""

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes, without waiting for any.

        Args:
            position: of an earlier batch; None for the beginning. A position that the source does not know any more
                (its file was replaced) means the beginning as well.
            limit: the highest number of changes.

        Raises:
            CatalogueError: the source cannot be read now; no change was skipped.
        """

    def describe_position(self, position: str | None) -> str | None:
        """A description of a position for operators, without a record's key, version or value (V1).

        None if the source has no positions.
        """

    def backlog(self, position: str | None) -> int | None:
        """The number of changes that are known to follow a position; there may be more. None if it is unknown.

        Raises:
            CatalogueError: the source cannot be read now.
        """

    def close(self) -> None:
        """Release files and connections."""


class Source(Protocol):
    """A catalogue. Every method may raise CatalogueError."""

    def kinds(self) -> tuple[str, ...]:
        """The types of the catalogue, shops first."""

    def name(self, kind: str) -> str:
        """The name of a type's file or table, for reports."""

    def size(self, kind: str) -> int:
        """The size of a type in the source's unit."""

    def unit(self) -> str:
        """The unit of `size`: bytes or rows."""

    def fingerprint(self) -> str | None:
        """A digest of all that a build reads and of the options of reading; None if it can't be known."""

    def begin_reading(self) -> str | None:
        """Fix the state that the following calls of `records` read, if the source supports that.

        Returns:
            The position from which changes have to be read so that none is missed; None for the beginning.
        """

    def records(
        self, kind: str, model: type[Record], problems: ProblemLog, advance: Advance
    ) -> Iterable[NumberedRecord[Any]]:
        """Read the records of a type; invalid ones are added to `problems`."""

    def end_reading(self) -> None:
        """Release what `begin_reading` holds."""

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
