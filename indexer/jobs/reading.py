"""Reads a whole catalogue into a new state, with the former state's versions and the changes since (G3)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from indexer.jobs.update import NOTHING, ChangeCounts, replay
from indexer.progress import stage
from indexer.records.entities import fields_with_entities
from indexer.records.hiding import HIDES, Hiding
from indexer.records.problems import InvalidRecordsError, Problem, ProblemLog
from indexer.records.shop import Record
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.protocol import ChangeSource, Source
from indexer.state.changing import apply_hiding
from indexer.state.remembered import Kept, take_over
from indexer.state.rows import DuplicateKeyError, Origin
from indexer.state.state import FORMER_POSITION, State

NOTED: Final = 20
# A record with fewer characters has no names of this size. Of the 3,295 development shops the greatest has 531.
_LONG_RECORD: Final = 1_000
_LONG_NAMED: Final = 10_000
_WORD_ENDS: Final = re.compile(r"\s+")


# The number of records with HTML entities in a field, by type and field, and the line of the first.
_Entities = dict[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """Counts of records read.

    `read` has the valid records by type, `left_out` those of no public shop. A newer record of the same key replaced
    the `superseded` shops. `public` shops have their domain; `lost_domain` shops have not, and `lost` has the lines of
    the first of them, each with that of the holder. `not_public` counts shops that only changes or the former state
    know too. `kept` is what the former state has instead, by type. `notes` name fields with HTML entities.
    """

    read: Mapping[str, int] = field(default_factory=dict)
    superseded: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    public: int = 0
    not_public: int = 0
    lost: tuple[tuple[int, int], ...] = ()
    lost_domain: int = 0
    changes: ChangeCounts = NOTHING
    kept: Mapping[str, Kept] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read, and how.

    `former` is the file of the former state, whose versions and deletions are taken over, and `kept_listing` the file
    that names the records that were. `letters` takes changes that can't be applied.
    """

    source: Source
    changes: ChangeSource | None
    former: Path | None
    letters: DeadLetters
    skip_invalid: bool
    kept_listing: Path | None = None


def read_catalogue(
    reading: Reading, state: State, problems: ProblemLog, tick: Callable[[], None] = lambda: None
) -> ReadCounts:
    """Read a catalogue into an empty state, and decide which records are public.

    The former state's versions and the changes that are available count. `tick` is called after each record, and
    between the statements that sort the records.
    """
    source = reading.source
    with source.reading() as position:
        state.connection.execute("BEGIN")
        entities: _Entities = {}

        def each(kind: str, line: int, record: Record) -> None:
            tick()
            for name in fields_with_entities(record):
                count, first = entities.get((kind, name), (0, line))
                entities[kind, name] = count + 1, first

        counted = {kind: _stage(source, kind, state, problems, each) for kind in source.kinds()}
        hidden = dict.fromkeys(hiding.line for hiding in problems.hiding if _hide(state, hiding))
        state.connection.execute("COMMIT")
    if problems.count and not reading.skip_invalid:
        raise InvalidRecordsError(problems)
    state.position = position
    with stage("Sorting the records") as advance:

        def after_statement() -> None:
            advance(0)
            tick()

        kept = {} if reading.former is None else _take_over(reading, reading.former, state)
        after_statement()
        state.index(after_statement)
        state.public.settle(after_statement)
    changes = replay(state, reading.changes, reading.letters)
    _forget_missing(state, source)
    with state.transaction():
        for hiding in problems.hiding:
            if not hiding.is_certain and apply_hiding(state, hiding, Origin.CATALOGUE):
                hidden[hiding.line] = None
    state.pending.clear()  # the generation is not written yet: it will have all of it
    lost, lost_domain = state.public.lost_domains(NOTED)
    return ReadCounts(
        read={kind: read for kind, (read, _) in counted.items()},
        superseded=counted["shops"][1],
        left_out={kind: state.public.left_out(kind) for kind in source.kinds()[1:]},
        public=state.public.count("shops"),
        not_public=state.public.count_hidden(),
        lost=lost,
        lost_domain=lost_domain,
        changes=changes,
        kept=kept,
        notes=_notes(source, hidden, entities),
    )


def _take_over(reading: Reading, former: Path, state: State) -> Mapping[str, Kept]:
    """Take records over from the former state; returns their numbers, by type."""
    # Only a source that is read as of one point in time has a position.
    is_current = state.position is not None
    kept = take_over(state.connection, former, reading.kept_listing, current=is_current)
    if reading.changes is not None:
        # A file that was rotated before the former state had read it to its end is read too.
        reading.changes.hold(state.get(FORMER_POSITION))
    return kept


def _hide(state: State, hiding: Hiding) -> bool:
    """Apply a bad record's hiding, before records are sorted; returns whether another record showed the shop."""
    rows = list(state.rows.hidden_by(hiding, Origin.CATALOGUE))
    shown = [row for row in rows if (known := state.rows.row("shops", row.key)) is not None and known.shown]
    for row in rows:
        state.rows.write(row)
    return bool(shown)


def _forget_missing(state: State, source: Source) -> None:
    """Forget changes that could not be read where the catalogue was written after them."""
    if (missing := state.missing) is not None:
        written = source.written()
        if written is None or written > datetime.fromisoformat(missing.before):
            state.missing = None


def _notes(source: Source, hidden: Iterable[int], entities: _Entities) -> tuple[str, ...]:
    """The first lines that hide a shop, and one note for each field with entities, which are valid and hardly meant."""
    name = source.name("shops")
    return (
        *(f"{name}:{line}: {HIDES}, which another record shows" for line in islice(hidden, NOTED)),
        *(
            f"{source.name(kind)}:{first}: {field_name} holds HTML entities such as &amp; in {count:,}"
            f" {'record' if count == 1 else 'records'}, first in this one: write the characters that they stand for"
            for (kind, field_name), (count, first) in entities.items()
        ),
    )


def _stage(
    source: Source, kind: str, state: State, problems: ProblemLog, each: Callable[[str, int, Record], None]
) -> tuple[int, int]:
    """Read one type; returns the number of records, and how many of them repeat a key."""
    read = repeated = 0
    with stage(f"Reading {kind}", source.size(kind), source.unit) as advance:
        for line, record in source.records(kind, problems, advance):
            each(kind, line, record)
            try:
                repeated += not state.rows.put(kind, record, line)
                read += 1
            except DuplicateKeyError as error:
                problems.add(Problem(source.name(kind), line, "id", str(error)))
    return read, repeated


def disputed_categories(state: State) -> list[str]:
    """The slugs of the categories with more than one display name."""
    return [category.slug for category in state.public.categories() if category.names > 1]


def long_named(state: State) -> list[tuple[int, int]]:
    """The lines of public shops whose names take most of the time of a build, each with the number of characters.

    A name is found from each of its words on, so each word costs the characters from it to the end.
    """
    found = []
    for line, shop in state.public.shops_by_line(_LONG_RECORD):
        names = (shop.name, *shop.aliases)
        size = sum(len(name) - at for name in names for at in (0, *(gap.end() for gap in _WORD_ENDS.finditer(name))))
        if size > _LONG_NAMED:
            found.append((line, size))
    return found


def build_notes(
    file: str, counts: ReadCounts, disputed: Sequence[str], named: Sequence[tuple[int, int]] = ()
) -> tuple[str, ...]:
    """Notes for the operator: shops left out for their domain or slow by their names, by their line in `file`.

    Then disputed categories and doubtful texts. Line 0 is a change's.
    """
    domains = [f"{file}:{line}: left out, its domain belongs to the shop of line {won}" for line, won in counts.lost]
    names = [f"category {slug} has more than one display name; the most frequent is shown" for slug in disputed]
    slow = [
        f"{f'{file}:{line}' if line else 'a change'}: {size:,} characters from each word of its names to the end: its"
        " aliases make builds and searches slow; leave out those that nobody types"
        for line, size in named
    ]
    return (*domains, *slow[:NOTED], *names[:NOTED], *counts.notes)
