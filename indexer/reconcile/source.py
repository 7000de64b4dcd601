"""Compares a source with the state of the live generation: finds lost changes and lost deletions (G3).

The source is read as a full build would read it, with the versions of the state. Then the state takes the changes that
arrived since, so a change that is only delayed is not a fault: what still differs was lost.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from indexer.jobs.generation_writing import batches
from indexer.jobs.reading import Reading, read_catalogue
from indexer.jobs.update import ChangeApplier, update
from indexer.reconcile.generation import FaultReport, FaultType
from indexer.records.problems import ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.protocol import Source, changes_of
from indexer.state.changing import write_row
from indexer.state.rows import PUBLIC, Origin, Presence, Row, attached, newer_sql
from indexer.state.state import REREAD_PREFIX, State

_BATCH: Final = 1_000
_TABLE: Final = """
CREATE TEMP TABLE lost (type TEXT, key TEXT, gone INTEGER, hides INTEGER, PRIMARY KEY (type, key)) WITHOUT ROWID
"""
# Compares a fresh row with the known one of its key. A version in the text of one alone is not a difference: a change
# may state it elsewhere. Between two records of one version the one that hides more wins, then the greater text.
_LOST_CHANGE: Final = f"""
fresh.presence <> {Presence.MISSING:d} AND (
    known.presence IS NULL
    OR {newer_sql("fresh", "known")}
    OR (fresh.kind < known.kind AND known.origin = {Origin.CATALOGUE:d})
    OR ((fresh.kind, fresh.number) = (known.kind, known.number)
        AND (fresh.presence <> known.presence
             OR json_remove(fresh.record, '$.version') <> json_remove(known.record, '$.version'))
        AND (known.origin = {Origin.CATALOGUE:d}
             OR (fresh.hides, fresh.record) > (known.hides, known.record))))
"""
_LOST_DELETE: Final = f"""
known.presence = {Presence.THERE:d} AND (
    (fresh.presence = {Presence.MISSING:d} AND (fresh.kind, fresh.number) = (known.kind, known.number))
    OR (fresh.presence IS NULL AND known.kind = 0))
"""
_DELETED: Final = f"COALESCE(fresh.presence = {Presence.DELETED:d} AND known.presence = {Presence.THERE:d}, FALSE)"
_SHOP_ROWS: Final = f"""
SELECT 'shops' AS type, id AS key, kind, number, origin, presence, record,
    CASE WHEN {PUBLIC} THEN 0 WHEN presence = 0 THEN 1 ELSE 2 END AS hides FROM
"""  # noqa: S608 - nothing but constants of this module
_RELATED_ROWS: Final = """
SELECT type, key, kind, number, origin, presence, record, CASE presence WHEN 0 THEN 0 ELSE 2 END AS hides FROM
"""
_LOST: Final = tuple(
    f"""
    INSERT INTO temp.lost SELECT {left}.type, {left}.key, {gone}, fresh.hides IS NULL OR fresh.hides > 0
    FROM ({rows} {left_table}) AS {left} LEFT JOIN ({rows} {right_table}) AS {right} USING (type, key) WHERE {differs}
    """  # noqa: S608 - nothing but constants of this module
    for rows, table in ((_SHOP_ROWS, "shops"), (_RELATED_ROWS, "belongings"))
    for left, left_table, right, right_table, gone, differs in (
        ("fresh", f"snapshot.{table}", "known", f"main.{table}", _DELETED, _LOST_CHANGE),
        ("known", f"main.{table}", "fresh", f"snapshot.{table}", "TRUE", _LOST_DELETE),
    )
)
# Records that hide something come first, and shops before their related records.
_IN_ORDER: Final = "SELECT type, key, gone FROM temp.lost ORDER BY hides DESC, type <> 'shops', type, key"


@contextmanager
def read_source(
    source: Source, known: Path, *, skip_invalid: bool = False, tick: Callable[[], None] = lambda: None
) -> Iterator[State]:
    """Read a whole source into a private state, which is removed afterwards; this needs no lease.

    The live state's file, `known`, is only read, and may change in parallel. `tick` is called after each record.
    """
    # Alongside the state, as it holds the same secrets; the next job removes the remains of a killed one.
    with TemporaryDirectory(prefix=REREAD_PREFIX, dir=known.parent) as directory:
        letters = DeadLetters(Path(directory) / "dead-letters.ndjson")  # the follower has its own
        fresh = State.create(Path(directory) / "state.sqlite")
        with changes_of(source) as changes, closing(letters), fresh as state:
            read_catalogue(Reading(source, changes, known, letters, skip_invalid), state, ProblemLog(), tick)
            yield state


def compare_source(snapshot: State, applier: ChangeApplier, *, repair: bool) -> FaultReport:
    """Compare a snapshot of the source with the state, under the lease.

    The applier, of the live generation and the source's changes, applies those that arrived since.
    """
    applier.drain()
    state = applier.state
    found = _find_lost(state, snapshot)
    if not repair or not found.total:
        return found
    refused = 0
    for batch in batches(list(state.connection.execute(_IN_ORDER)), _BATCH):
        applier.check()
        with state.transaction():
            for kind, key, gone in batch:
                row, known = snapshot.rows.row(kind, key), state.rows.row(kind, key)
                if row is None and known is not None and gone:
                    row = Row(kind, key, known.order, Origin.CATALOGUE, 0, Presence.MISSING)
                if row is not None:
                    write_row(state, row)
        refused += update(state, applier.editor, applier.check).refused
    return replace(found, repaired=found.total - min(refused, found.total), refused=refused)


def _find_lost(state: State, fresh: State) -> FaultReport:
    db = state.connection
    db.execute("DROP TABLE IF EXISTS temp.lost")
    db.execute(_TABLE)
    with attached(db, fresh.path, "snapshot"):
        for statement in _LOST:
            db.execute(statement)
    counted = db.execute("SELECT gone, type, COUNT(*) FROM temp.lost GROUP BY gone, type")
    classes = (FaultType.LOST_CHANGE, FaultType.LOST_DELETE)
    faults = Counter({(classes[gone], kind): count for gone, kind, count in counted})
    counting = "SELECT (SELECT COUNT(*) FROM shops) + (SELECT COUNT(*) FROM belongings)"
    (checked,) = fresh.connection.execute(counting).fetchone()
    return FaultReport(faults, checked=checked)
