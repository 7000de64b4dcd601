"""Reading a whole catalogue into a fresh state, with what the former one remembers and what changed since (G3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from indexer.jobs.catching_up import CaughtUp, replay
from indexer.progress import stage
from indexer.records.problems import InvalidRecordsError, Problem, ProblemLog
from indexer.records.related import RECORDS
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.protocol import ChangeSource, Source
from indexer.state.remembered import take_over
from indexer.state.schema import KeyTwiceError
from indexer.state.state import State

NOTED: Final = 20


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What was read.

    Attributes:
        read: valid records by type.
        left_out: records by type that belong to no public shop.
        superseded: shops that a newer record of the same key replaced.
        public: public shops that have their domain.
        lost: for the first public shops without their domain: their line and the winner's.
        lost_domain: how many there are.
        changes: what came of the changes that were there already.
    """

    read: Mapping[str, int]
    left_out: Mapping[str, int]
    superseded: int
    public: int
    lost: tuple[tuple[int, int], ...]
    lost_domain: int
    changes: CaughtUp

    @property
    def not_public(self) -> int:
        """Shops that the gate kept back."""
        return max(0, self.read["shops"] - self.superseded - self.public - self.lost_domain)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a catalogue is read.

    Attributes:
        source: the catalogue.
        changes: its changes, if it has any.
        former: the former state's file, if there is one to remember.
        letters: takes changes that can't be applied.
        skip_invalid: whether bad records are passed over.
    """

    source: Source
    changes: ChangeSource | None
    former: Path | None
    letters: DeadLetters
    skip_invalid: bool


def read_catalogue(
    reading: Reading, state: State, problems: ProblemLog, tick: Callable[[], None] = lambda: None
) -> ReadCounts:
    """Read and settle everything.

    Args:
        reading: what and how.
        state: an empty one.
        problems: takes what is wrong.
        tick: called now and then.

    Raises:
        CatalogueError: it cannot be read, or holds bad records that were not to be skipped.
    """
    source = reading.source
    position = source.open_snapshot()
    try:
        state.connection.execute("BEGIN")
        putters = {kind: _ticking(_putter(kind, state), tick) for kind in source.kinds()}
        counted = {kind: _stage(source, kind, putters[kind], problems) for kind in source.kinds()}
        state.connection.execute("COMMIT")
    finally:
        source.close_snapshot()
    if problems.count and not reading.skip_invalid:
        raise InvalidRecordsError(problems)
    if reading.former is not None:
        take_over(state.connection, reading.former)
    state.index()
    state.shops.settle()
    state.position = position
    changes = CaughtUp(0, 0, 0)
    if reading.changes is not None:
        changes = replay(state, reading.changes, reading.letters)
    state.pending.clear()  # nothing of it is anywhere yet
    lost, lost_domain = state.shops.lost_domains(NOTED)
    return ReadCounts(
        read={kind: read for kind, (read, _) in counted.items()},
        left_out={kind: state.related_records.left_out(kind) for kind in source.kinds()[1:]},
        superseded=counted["shops"][1],
        public=state.shops.count(),
        lost=lost,
        lost_domain=lost_domain,
        changes=changes,
    )


def _putter(kind: str, state: State) -> Callable[[Any, int], bool]:
    if kind == "shops":
        return state.shops.put
    return lambda record, line: state.related_records.put(kind, record, line)


def _ticking(put: Callable[[Any, int], bool], tick: Callable[[], None]) -> Callable[[Any, int], bool]:
    def ticking(record: Any, line: int) -> bool:  # noqa: ANN401 - a record of its kind
        tick()
        return put(record, line)

    return ticking


def _stage(source: Source, kind: str, put: Callable[[Any, int], bool], problems: ProblemLog) -> tuple[int, int]:
    """Read one type; returns how many were read, and how many of them came with a key that had come before."""
    read = again = 0
    with stage(f"Reading {kind}", source.size(kind), source.unit()) as advance:
        for numbered in source.records(kind, RECORDS[kind], problems, advance):
            try:
                again += not put(numbered.record, numbered.line)
                read += 1
            except KeyTwiceError as error:
                problems.add(Problem(source.name(kind), numbered.line, "id", str(error)))
    return read, again
