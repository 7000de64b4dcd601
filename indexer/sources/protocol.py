"""What the indexer asks of a catalogue: all records of a type, and the changes that come after them (G3).

A source says where a record stands, so that what is wrong with it can be told without its value (V1).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from indexer.progress import Advance
from indexer.records.problems import ProblemLog
from indexer.records.shop import Record

# What says which of two records is newer, the strongest last: a versioned record is newer than one without a version.
UNVERSIONED: Final = 0
UPDATED_AT: Final = 1
VERSION: Final = 2


class Order(NamedTuple):
    """Which of two records of a key is newer: the greater one.

    Attributes:
        kind: UNVERSIONED, UPDATED_AT or VERSION.
        number: the version, or microseconds since 1970; 0 without either.
    """

    kind: int
    number: int


NO_ORDER: Final = Order(UNVERSIONED, 0)


def order_of(record: Record) -> Order:
    """The order that a record states of itself."""
    if record.version is not None:
        return Order(VERSION, record.version)
    return NO_ORDER if record.order is None else Order(UPDATED_AT, record.order)


class Numbered(Protocol):
    """A record with the line where it stands."""

    @property
    def record(self) -> Any:  # noqa: ANN401 - of the model that was asked for
        """The record."""

    @property
    def line(self) -> int:
        """Its line, or the number of its row."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a record.

    Attributes:
        type: a key of RECORDS.
        key: the record's key.
        order: which change of this key is newer; never NO_ORDER.
        record: the new record; None when it was deleted.
        place: where the change stands, for reports.
    """

    type: str
    key: str
    order: Order
    record: Record | None
    place: str


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A change that can't be applied.

    Attributes:
        place: where it stands.
        reasons: what is wrong with it, without its values.
        raw: as it came, for the dead-letter file, which is as private as the state.
    """

    place: str
    reasons: tuple[str, ...]
    raw: str


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Some changes, in the order of their arrival.

    Attributes:
        changes: those that can be applied.
        refused: those that can't.
        position: where reading goes on, to be kept with what was applied; None when the source has no such place.
        more: whether more is there already.
    """

    changes: tuple[Change, ...]
    refused: tuple[RefusedChange, ...]
    position: str | None
    more: bool


class ChangeSource(Protocol):
    """Where changes come from. The same change may come twice, and in any order: versions decide."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def kind(self) -> str:
        """What operators are told that it is: `file`, `stdin` or `sql`."""

    @property
    def ended(self) -> bool:
        """Whether nothing can come any more, as of a stream that was closed."""

    def read(self, position: str | None, most: int) -> ChangeBatch:
        """The next changes, without waiting for any.

        Args:
            position: of an earlier batch; None for the beginning. One that the source no longer knows (its file was
                replaced) means the beginning as well.
            most: how many at most.

        Raises:
            CatalogueError: the source cannot be read now; nothing was passed over.
        """

    def whereabouts(self, position: str | None) -> str | None:
        """How far a position is, in words for operators: never a record's key, version or value (V1).

        None where there is no such place.
        """

    def waiting(self, position: str | None) -> int | None:
        """How many changes are known to be there behind a position; there may be more. None where that is not known.

        Raises:
            CatalogueError: the source cannot be read now.
        """

    def close(self) -> None:
        """Release files and connections."""


class Source(Protocol):
    """A catalogue. Reading raises CatalogueError when it cannot be read as it is."""

    def kinds(self) -> tuple[str, ...]:
        """The types that it holds, shops first."""

    def name(self, kind: str) -> str:
        """What reports call the place where a type stands."""

    def size(self, kind: str) -> int:
        """How much there is to go through, in the source's own unit."""

    def unit(self) -> str:
        """That unit: bytes or rows."""

    def fingerprint(self) -> str | None:
        """A digest of all that a build reads of it, and how; None where that can't be known."""

    def open_snapshot(self) -> str | None:
        """Fix what the following calls of `records` read, as of one moment where the source can do that.

        Returns:
            The position from which changes have to be read so that none is missed; None for all that are there.
        """

    def records(self, kind: str, model: type[Record], problems: ProblemLog, advance: Advance) -> Iterable[Numbered]:
        """Read the records of a type; bad ones go to `problems`."""

    def close_snapshot(self) -> None:
        """Let go of what `open_snapshot` holds."""

    def changes(self) -> ChangeSource | None:
        """Where changes of this catalogue come from; None when it has no such place."""
