"""Reads a whole catalogue into a new state, with the former state's versions and the changes since (G3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from indexer.jobs.update import NOTHING, ChangeCounts, replay
from indexer.progress import stage
from indexer.records.problems import InvalidRecordsError, Problem, ProblemLog
from indexer.records.related import RECORDS
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.protocol import ChangeSource, Source
from indexer.state.remembered import Kept, take_over
from indexer.state.rows import DuplicateKeyError
from indexer.state.state import State

NOTED: Final = 20


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """The counts of what was read.

    Attributes:
        read: valid records by type.
        left_out: records by type that belong to no public shop.
        superseded: shops that a newer record of the same key replaced.
        public: public shops that have their domain.
        not_public: shops that the gate rejected, those that only changes or the former state know included.
        lost: for the first public shops without their domain: their line, and the line of the shop that has it.
        lost_domain: the number of shops without their domain.
        changes: of the changes that were available.
        kept: what the former state has instead of the catalogue, by type.
    """

    read: Mapping[str, int]
    left_out: Mapping[str, int]
    superseded: int
    public: int
    not_public: int
    lost: tuple[tuple[int, int], ...]
    lost_domain: int
    changes: ChangeCounts
    kept: Mapping[str, Kept]


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read, and how.

    Attributes:
        source: the catalogue.
        changes: its changes, if it has any.
        former: the file of the former state, whose versions and deletions are taken over; None without one.
        letters: takes changes that can't be applied.
        skip_invalid: whether bad records are skipped.
        kept_listing: the file that names the records kept from the former state; None for no file.
    """

    source: Source
    changes: ChangeSource | None
    former: Path | None
    letters: DeadLetters
    skip_invalid: bool
    kept_listing: Path | None = None


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """The records of a catalogue, stored in a state that is not settled yet.

    Attributes:
        position: from which changes have to be read so that none is missed.
        read: valid records by type.
        superseded: shops that a newer record of the same key replaced.
    """

    position: str | None
    read: Mapping[str, int]
    superseded: int


def read_catalogue(
    reading: Reading, state: State, problems: ProblemLog, tick: Callable[[], None] = lambda: None
) -> ReadCounts:
    """Read a catalogue into an empty state, and settle it; as `read_records` and `settle`."""
    return settle(reading, read_records(reading, state, problems, tick), state, tick)


def read_records(
    reading: Reading, state: State, problems: ProblemLog, tick: Callable[[], None] = lambda: None
) -> ReadRecords:
    """Read the records of a catalogue into an empty state; `tick` is called after each."""
    source = reading.source
    position = source.begin_reading()
    try:
        state.connection.execute("BEGIN")
        counted = {kind: _stage(source, kind, state, problems, tick) for kind in source.kinds()}
        state.connection.execute("COMMIT")
    finally:
        source.end_reading()
    if problems.count and not reading.skip_invalid:
        raise InvalidRecordsError(problems)
    return ReadRecords(position, {kind: read for kind, (read, _) in counted.items()}, counted["shops"][1])


def settle(reading: Reading, records: ReadRecords, state: State, tick: Callable[[], None] = lambda: None) -> ReadCounts:
    """Decide which records are public, with the former state's versions and the changes that are available.

    `tick` is called between the statements that sort the records.
    """
    with stage("Sorting the records") as advance:

        def meanwhile() -> None:
            advance(0)
            tick()

        kept: Mapping[str, Kept] = {}
        if reading.former is not None:
            kept = take_over(state.connection, reading.former, reading.kept_listing)
            meanwhile()
        state.index(meanwhile)
        state.shops.settle(meanwhile)
    state.position = records.position
    changes = NOTHING
    if reading.changes is not None:
        changes = replay(state, reading.changes, reading.letters)
    state.pending.clear()  # the generation is not written yet: it will have all of it
    lost, lost_domain = state.shops.lost_domains(NOTED)
    return ReadCounts(
        read=records.read,
        left_out={kind: state.related_records.left_out(kind) for kind in reading.source.kinds()[1:]},
        superseded=records.superseded,
        public=state.shops.count(),
        not_public=state.shops.count_hidden(),
        lost=lost,
        lost_domain=lost_domain,
        changes=changes,
        kept=kept,
    )


def _stage(source: Source, kind: str, state: State, problems: ProblemLog, tick: Callable[[], None]) -> tuple[int, int]:
    """Read one type; returns the number of records, and how many of them repeat a key."""
    read = repeated = 0
    with stage(f"Reading {kind}", source.size(kind), source.unit()) as advance:
        for numbered in source.records(kind, RECORDS[kind], problems, advance):
            tick()
            try:
                repeated += not state.rows.put(kind, numbered.record, numbered.line)
                read += 1
            except DuplicateKeyError as error:
                problems.add(Problem(source.name(kind), numbered.line, "id", str(error)))
    return read, repeated


def disputed_categories(state: State) -> list[str]:
    """The slugs of the categories with more than one display name."""
    return [category.slug for category in state.shops.categories() if category.names > 1]


def build_notes(file: str, counts: ReadCounts, disputed: Sequence[str]) -> tuple[str, ...]:
    """Notes for the operator: shops left out for their domain, by their line in `file`, and disputed categories."""
    domains = [f"{file}:{line}: left out, its domain belongs to the shop of line {won}" for line, won in counts.lost]
    names = [f"category {slug} has more than one display name; the most frequent is shown" for slug in disputed]
    return (*domains, *names[:NOTED])
