"""Compares a source with the state of the live generation: what of it never came, and what should be gone (G3).

The source is read as a full build would read it, with what the state remembers. Then the state takes the changes that
came meanwhile, so whatever still differs was lost: nothing that is only under way is held to be at fault.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from indexer.jobs.catching_up import Follower
from indexer.jobs.reading import Reading, read_catalogue
from indexer.jobs.update import update
from indexer.jobs.verification import batches
from indexer.reconcile.findings import Fault, FaultCount, Found
from indexer.records.problems import ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.protocol import Source
from indexer.state.changing import write_related, write_shop
from indexer.state.related import RelatedRow
from indexer.state.schema import Origin, Presence
from indexer.state.shops import ShopRow
from indexer.state.state import State
from indexer.state.states import READ_ANEW

_BATCH: Final = 1_000
_TABLE: Final = """
CREATE TEMP TABLE lost (type TEXT, key TEXT, gone INTEGER, hides INTEGER, PRIMARY KEY (type, key)) WITHOUT ROWID
"""
# What a fresh row and the known one of its key say. A version in the text of one alone is no difference: a change may
# state it beside the record. Of two records of one version the one stands that hides more, then that of greater text.
_LOST_CHANGE: Final = f"""
fresh.presence <> {Presence.MISSING:d} AND (
    known.presence IS NULL
    OR (fresh.kind, fresh.number) > (known.kind, known.number)
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
_SHOP_ROWS: Final = """
SELECT 'shops' AS type, id AS key, kind, number, origin, presence, record,
    CASE WHEN shown THEN 0 WHEN presence = 0 THEN 1 ELSE 2 END AS hides FROM
"""
_BELONGING_ROWS: Final = """
SELECT type, key, kind, number, origin, presence, record, CASE presence WHEN 0 THEN 0 ELSE 2 END AS hides FROM
"""
_LOST: Final = tuple(
    f"""
    INSERT INTO temp.lost SELECT {left}.type, {left}.key, {gone}, fresh.hides IS NULL OR fresh.hides > 0
    FROM ({rows} {left_table}) AS {left} LEFT JOIN ({rows} {right_table}) AS {right} USING (type, key) WHERE {differs}
    """  # noqa: S608 - nothing but constants of this module
    for rows, table in ((_SHOP_ROWS, "shops"), (_BELONGING_ROWS, "belongings"))
    for left, left_table, right, right_table, gone, differs in (
        ("fresh", f"read_anew.{table}", "known", f"main.{table}", _DELETED, _LOST_CHANGE),
        ("known", f"main.{table}", "fresh", f"read_anew.{table}", "TRUE", _LOST_DELETE),
    )
)
# What hides comes first, and shops before what belongs to them.
_IN_ORDER: Final = "SELECT type, key, gone FROM temp.lost ORDER BY hides DESC, type <> 'shops', type, key"


@dataclass(frozen=True, slots=True)
class ReadAnew:
    """A source as a full build would have it now.

    Attributes:
        source: which one.
        state: of its records.
        problems: of records that were passed over.
    """

    source: Source
    state: State
    problems: ProblemLog


@contextmanager
def read_anew(
    source: Source, known: Path, *, skip_invalid: bool = False, tick: Callable[[], None] = lambda: None
) -> Iterator[ReadAnew]:
    """Read a whole source into a private file, which is gone afterwards; no lease is needed for it.

    Args:
        source: the catalogue.
        known: the live generation's state file; it is only read, and may change meanwhile.
        skip_invalid: as the build did.
        tick: called now and then.

    Raises:
        CatalogueError: it cannot be read, or holds bad records that were not to be skipped.
    """
    # Beside the state: it holds the same secrets, and what a killed one leaves is removed with old states.
    with TemporaryDirectory(prefix=READ_ANEW, dir=known.parent) as directory:
        letters = DeadLetters(Path(directory) / "dead-letters.ndjson")  # what follows has kept its own
        changes = source.changes()
        state = State.create(Path(directory) / "state.sqlite")
        problems = ProblemLog()
        try:
            read_catalogue(Reading(source, changes, known, letters, skip_invalid), state, problems, tick)
            yield ReadAnew(source, state, problems)
        finally:
            state.close()
            letters.close()
            if changes is not None:
                changes.close()


def compare_source(anew: ReadAnew, follower: Follower, *, repair: bool) -> Found:
    """Compare what was read with the state, under the lease.

    Args:
        anew: the source.
        follower: of the live generation and the source's changes; it takes those that came meanwhile.
        repair: whether the state and the generation get what was lost.

    Raises:
        CatalogueError: the changes can't be read.
        SinkError: the engine failed, or the lease is lost.
    """
    follower.drain()
    state = follower.state
    found = _find(state, anew.state)
    if not repair or not found.total:
        return found
    refused = 0
    for some in batches(list(state.connection.execute(_IN_ORDER)), _BATCH):
        follower.check()
        with state.transaction():
            for kind, key, gone in some:
                _put(state, anew.state, kind, key, gone=bool(gone))
        refused += update(state, follower.editor, follower.check, follower.clock).refused
    return replace(found, repaired=found.total - min(refused, found.total), refused=refused)


def _find(state: State, fresh: State) -> Found:
    db = state.connection
    db.execute("DROP TABLE IF EXISTS temp.lost")
    db.execute(_TABLE)
    db.execute("ATTACH DATABASE ? AS read_anew", (f"file:{fresh.path}?mode=ro",))
    try:
        for statement in _LOST:
            db.execute(statement)
    finally:
        db.execute("DETACH DATABASE read_anew")
    counted = db.execute("SELECT gone, type, COUNT(*) FROM temp.lost GROUP BY gone, type ORDER BY gone, type")
    faults = tuple(
        FaultCount((Fault.LOST_CHANGE, Fault.LOST_DELETE)[gone], kind, count) for gone, kind, count in counted
    )
    counting = "SELECT (SELECT COUNT(*) FROM shops) + (SELECT COUNT(*) FROM belongings)"
    (checked,) = fresh.connection.execute(counting).fetchone()
    return Found(faults, checked=checked)


def _put(state: State, fresh: State, kind: str, key: str, *, gone: bool) -> None:
    """Write the fresh row, or a tombstone where there is none."""
    if kind == "shops":
        shop = fresh.shops.row(key)
        known = state.shops.row(key)
        if shop is None and known is not None and gone:
            shop = ShopRow(key, known.order, Origin.CATALOGUE, 0, Presence.MISSING, False, None, None, None)
        if shop is not None:
            write_shop(state, shop)
        return
    row = fresh.related_records.row(kind, key)
    before = state.related_records.row(kind, key)
    if row is None and before is not None and gone:
        row = RelatedRow(kind, key, before.order, Origin.CATALOGUE, 0, Presence.MISSING, None, None, None, None)
    if row is not None:
        write_related(state, row)
