"""Reading a catalogue into the staging: shops first, as only what belongs to a public shop is kept of the rest (V1)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from indexer.belongings import BELONGINGS, RECORDS, RedirectRecord, ResourceAccountRecord
from indexer.problems import Problem, ProblemLog
from indexer.progress import Advance, stage
from indexer.records import Record, ShopRecord
from indexer.staged_belongings import StagedBelongings
from indexer.staging import KeyTwiceError, Staging


class Numbered(Protocol):
    """A record with the line where it stands."""

    @property
    def record(self) -> Any:  # noqa: ANN401 - of the model that was asked for
        """The record."""

    @property
    def line(self) -> int:
        """Its line."""


class Source(Protocol):
    """A catalogue."""

    def kinds(self) -> tuple[str, ...]:
        """The types that it holds, shops first."""

    def name(self, kind: str) -> str:
        """What reports call the place where a type stands."""

    def size(self, kind: str) -> int:
        """How much there is to go through, in bytes."""

    def records(self, kind: str, model: type[Record], problems: ProblemLog, advance: Advance) -> Iterable[Numbered]:
        """Read the records of a type; bad ones go to `problems`."""


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What was read.

    Attributes:
        read: valid records by type.
        left_out: records by type that belong to no public shop.
        superseded: shops that a newer record of the same key replaced.
        public: public shops that have their domain.
        lost: for each public shop without its domain, its line and the winner's.
    """

    read: Mapping[str, int]
    left_out: Mapping[str, int]
    superseded: int
    public: int
    lost: tuple[tuple[int, int], ...]

    @property
    def not_public(self) -> int:
        """Shops that the gate kept back."""
        return self.read["shops"] - self.superseded - self.public - len(self.lost)


def read_catalogue(source: Source, staging: Staging, problems: ProblemLog) -> tuple[ReadCounts, StagedBelongings]:
    """Read and stage everything; what is wrong goes to `problems`."""
    read: dict[str, int] = {}
    left_out: dict[str, int] = {}

    def shop(record: ShopRecord, line: int) -> bool:
        return staging.put(record, line)

    read["shops"], superseded = _stage(source, "shops", shop, problems)
    public = staging.settle()
    belongings = StagedBelongings(staging.connection)
    for kind in source.kinds()[1:]:
        read[kind], left_out[kind] = _stage(source, kind, _putter(kind, belongings), problems)
    return ReadCounts(read, left_out, superseded, public, tuple(staging.lost_domains())), belongings


def _putter(kind: str, belongings: StagedBelongings) -> Callable[[Any, int], bool]:
    def belonging(record: Any, line: int) -> bool:  # noqa: ANN401 - a record of this kind
        return belongings.put(kind, record, line)

    def redirect(record: RedirectRecord, line: int) -> bool:
        return belongings.put_redirect(record, line)

    def account(_: ResourceAccountRecord, __: int) -> bool:
        # Checked here, kept by what answers the operations endpoints.
        return True

    if kind in BELONGINGS:
        return belonging
    return redirect if kind == "redirects" else account


def _stage(source: Source, kind: str, put: Callable[[Any, int], bool], problems: ProblemLog) -> tuple[int, int]:
    """Read one type; returns how many were read, and for how many `put` said no."""
    read = refused = 0
    with stage(f"Reading {kind}", source.size(kind), "bytes") as advance:
        for numbered in source.records(kind, RECORDS[kind], problems, advance):
            try:
                refused += not put(numbered.record, numbered.line)
                read += 1
            except KeyTwiceError as error:
                problems.add(Problem(source.name(kind), numbered.line, "id", str(error)))
    return read, refused
