"""Takes records over from the former state, so that an old catalogue does not undo newer changes (G3).

A key's former record is kept if it is newer than the catalogue's. A key that the catalogue lacks is kept if a change
added it and its version is above all that the catalogue has of its type; otherwise a tombstone stores its version, so
no late change restores it. A database is read as of its last change, so what it lacks is deleted.
"""

import json
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from indexer.disk_space import raise_if_full
from indexer.state.rows import PUBLIC, SHOPS, Origin, Presence, Row, StateRows, database_uri, newer_sql
from indexer.state.state import FORMER_POSITION, MISSING_CHANGES, POSITION, STATE_VERSION, StateError, is_damage

# A former row of a stronger kind of order wins only if a change wrote it, as an operator may begin to state versions.
# Among equal versions the one that hides more wins, as among changes.
_NEWER: Final = f"""
({newer_sql("former", "fresh")} AND (former.kind = fresh.kind OR former.origin = {Origin.CHANGE:d}))
OR (former.kind > 0 AND (former.kind, former.number) = (fresh.kind, fresh.number)
    AND (former.presence = {Presence.DELETED:d}
         OR (former.presence = {Presence.THERE:d} AND former.origin = {Origin.CHANGE:d} AND {{hidden}})))
"""
_STAYS: Final = f"""
former.presence <> {Presence.THERE:d}
OR (NOT :current AND former.origin = {Origin.CHANGE:d} AND {newer_sql("former", "newest")})
"""
# For former rows that replaced the catalogue's: whether the two differ in more than their version.
_DIFFERS: Final = """
former.presence <> fresh.presence
OR json_remove(former.record, '$.version', '$.updated_at') IS NOT json_remove(fresh.record, '$.version', '$.updated_at')
"""
# Shops that were marked: the new state reads the marks itself.
_MARKED: Final = f"SELECT id FROM main.shops WHERE NOT shown AND {PUBLIC}"
_POSITION: Final = f"""
INSERT INTO main.meta SELECT '{FORMER_POSITION}', value FROM former_state.meta WHERE name = '{POSITION}'
UNION ALL SELECT name, value FROM former_state.meta WHERE name = '{MISSING_CHANGES}'
"""
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Kept:
    """The number of records of one type that a build has from the former state instead of from its catalogue.

    The catalogue lacks some; others, or deletions, are newer than its record and differ from it.
    """

    lacking: int
    newer: int


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows are taken over: which rows, by which key, and the columns of a tombstone."""

    name: str
    rows: str
    key: str
    columns: str
    tombstone: str
    hidden: str


_MISSING: Final = f"kind, number, {Origin.CATALOGUE:d}, 0, {Presence.MISSING:d}"
_SHOPS: Final = _Table(
    name="shops",
    rows="TRUE",
    key="id",
    columns="id, kind, number, origin, line, presence, shown, rank, domain, record",
    tombstone=f"id, {_MISSING}, 0, NULL, NULL, NULL",
    hidden=f"NOT former.{PUBLIC}",
)
_RELATED: Final = _Table(
    name="belongings",
    rows="type = :type",
    key="key",
    columns="type, key, kind, number, origin, line, presence, owner, other, rank, record",
    tombstone=f"type, key, {_MISSING}, NULL, NULL, NULL, NULL",
    hidden="FALSE",
)


def take_over(
    db: sqlite3.Connection, former: Path, listing: Path | None = None, *, current: bool = False
) -> Mapping[str, Kept]:
    """Take records over into a state that holds a catalogue and is not settled yet; returns their numbers, by type.

    `current` says that the catalogue has all changes up to the position from which changes are read, so it lacks none.

    The former state is only read. `listing`, a file that its owner alone can read as it names hidden shops, gets the
    keys of all kept records; it is removed where there are none. Raises StateError if the former state is damaged, or
    of another version of this program.
    """
    try:
        db.execute("ATTACH DATABASE ? AS former_state", (database_uri(former, "ro"),))
        properties = dict(db.execute("SELECT name, value FROM former_state.meta").fetchall())
        if properties.get("version") != STATE_VERSION or properties.get("sealed") is None:
            raise _unusable(former, "unfinished or of another version")
        db.execute("CREATE TEMP TABLE kept (type TEXT, key TEXT, newer INTEGER)")
        db.execute(_POSITION)
        _take_over(db, _SHOPS, "shops", current=current)
        _forget_marks(db)
        for (kind,) in db.execute("SELECT DISTINCT type FROM former_state.belongings").fetchall():
            _take_over(db, _RELATED, kind, current=current)
        db.execute("DETACH DATABASE former_state")
        counted = db.execute("SELECT type, COUNT(*), SUM(newer) FROM temp.kept GROUP BY type ORDER BY MIN(rowid)")
        kept = {kind: Kept(count - newer, newer) for kind, count, newer in counted}
        if listing is not None:
            _list_kept(db, listing)
        db.execute("DROP TABLE temp.kept")
    except (sqlite3.Error, OSError) as error:
        raise_if_full(error)
        if not is_damage(error):
            raise StateError(
                f"the former state {former} cannot be read now ({error}): check its permissions and the disk"
            ) from error
        raise _unusable(former, str(error)) from error
    return kept


def _forget_marks(db: sqlite3.Connection) -> None:
    """Write marked shops as they are without their marks."""
    rows = StateRows(db)
    for (shop_id,) in db.execute(_MARKED).fetchall():
        row = rows.row(SHOPS, shop_id)
        if row is not None and row.shop is not None:
            rows.write(Row.of(SHOPS, row.shop, row.order, row.origin, row.line))


def _list_kept(db: sqlite3.Connection, listing: Path) -> None:
    listing.unlink(missing_ok=True)
    rows = db.execute("SELECT type, key, newer FROM temp.kept ORDER BY rowid")
    if (row := rows.fetchone()) is None:
        return
    with os.fdopen(os.open(listing, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE), "w", encoding="utf-8") as file:
        while row is not None:
            kind, key, newer = row
            file.write(f"{json.dumps({'type': kind, 'key': key, 'catalogue': 'older' if newer else 'lacks it'})}\n")
            row = rows.fetchone()


def _unusable(former: Path, why: str) -> StateError:
    # To ignore it could show a shop again that a change has hidden since the catalogue was written.
    advice = "to do without the versions and deletions that it remembers, build with --fresh-state"
    return StateError(f"the former state {former} cannot be taken over ({why}): {advice}")


def _take_over(db: sqlite3.Connection, table: _Table, kind: str, *, current: bool) -> None:
    newest = f"SELECT kind, number FROM main.{table.name} WHERE {table.rows} ORDER BY kind DESC, number DESC LIMIT 1"
    newest_kind, number = db.execute(newest, {"type": kind}).fetchone() or (0, 0)
    given = {"type": kind, "kind": newest_kind, "number": number, "current": current}
    statements = (
        f"""
        CREATE TEMP TABLE newer AS SELECT former.*, ({_DIFFERS}) AS differs
        FROM (SELECT * FROM former_state.{table.name} WHERE {table.rows}) AS former
        JOIN (SELECT * FROM main.{table.name} WHERE {table.rows}) AS fresh USING ({table.key})
        WHERE {_NEWER.format(hidden=table.hidden)}
        """,
        f"INSERT OR REPLACE INTO main.{table.name} SELECT {table.columns} FROM temp.newer",
        f"INSERT INTO temp.kept SELECT :type, {table.key}, TRUE FROM temp.newer WHERE differs",
        f"""
        CREATE TEMP TABLE lacking AS SELECT former.*, ({_STAYS}) AS stays
        FROM former_state.{table.name} AS former, (SELECT :kind AS kind, :number AS number) AS newest
        WHERE {table.rows} AND {table.key} NOT IN (SELECT {table.key} FROM main.{table.name} WHERE {table.rows})
        """,
        f"INSERT INTO main.{table.name} SELECT {table.columns} FROM temp.lacking WHERE stays",
        f"INSERT INTO main.{table.name} SELECT {table.tombstone} FROM temp.lacking WHERE NOT stays AND kind > 0",
        f"""
        INSERT INTO temp.kept SELECT :type, {table.key}, FALSE FROM temp.lacking
        WHERE stays AND presence = {Presence.THERE:d}
        """,
        "DROP TABLE temp.newer",
        "DROP TABLE temp.lacking",
    )
    for statement in statements:
        db.execute(statement, given)
