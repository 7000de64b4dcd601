"""Brings states of version 1 to version 2, in which `index hide` is a mark and no version of a record (V4).

In version 1 `index hide` and `index show` wrote records with the next version, or the present time, to a file of
changes. A record that they wrote becomes what it was before: one version older, or without a time.
"""

import json
import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from indexer.records.shop import NO_ORDER, VERSION, Order, ShopRecord
from indexer.state.marks import mark_lines, read_marks
from indexer.state.rows import SHOPS, Origin, Presence, StateRows, read_only

FORMER_VERSION: Final = "1"
MARKS_TABLE: Final = "CREATE TABLE marks (key TEXT PRIMARY KEY) WITHOUT ROWID;"
MARKS_FILE: Final = "hidden-shops.ndjson"
_FORMER_FILE: Final = "visibility-changes.ndjson"
_PRIVATE: Final = 0o600


@dataclass(slots=True)
class _Written:
    """The versions that the commands gave to a shop's record, and whether the last one hid it."""

    orders: set[Order] = field(default_factory=set)
    last: Order = NO_ORDER
    hidden: bool = False

    @property
    def before(self) -> Order:
        """The version of the record before the last commands; a time was not stored."""
        order = self.last
        while order in self.orders and order.kind == VERSION:
            order = Order(VERSION, order.number - 1)
        return order if order.kind == VERSION else NO_ORDER


def adopt_former_marks(directory: Path) -> None:
    """Make the file of marks from the changes of version 1, once.

    A shop stays hidden unless a newest state of version 1 shows a newer record of it.
    """
    marks = directory / MARKS_FILE
    written = {} if marks.exists() else _written(directory)
    if not written:
        return
    hidden = [key for key, one in written.items() if one.hidden and not _is_overruled(directory, key, one.last)]
    temporary = directory / f"{MARKS_FILE}.{os.getpid()}"
    file = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, _PRIVATE)
    try:
        os.write(file, mark_lines(hidden, hidden=True))
        os.fsync(file)
    finally:
        os.close(file)
    temporary.replace(marks)


def is_former(path: Path) -> bool:
    """Whether a file is a state of version 1, which opening it migrates."""
    return _property(path, "version") == FORMER_VERSION


def is_sealed(path: Path) -> bool:
    """Whether a state is complete and can be read."""
    return _property(path, "sealed") is not None


def _property(path: Path, name: str) -> str | None:
    """A property of a state, which is only read; None if it has none, or is damaged."""
    with suppress(sqlite3.Error), closing(read_only(path)) as db:
        found = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])
    return None


def migrate(path: Path, db: sqlite3.Connection) -> None:
    """Bring an open state of version 1 to version 2, in one transaction."""
    adopt_former_marks(path.parent)
    marks = path.parent / MARKS_FILE
    marked, size = read_marks(marks)
    rows = StateRows(db)
    db.execute("BEGIN IMMEDIATE")
    try:
        if db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone() == (FORMER_VERSION,):
            db.execute(MARKS_TABLE)
            for key, written in _written(path.parent).items():
                row = rows.row(SHOPS, key)
                is_theirs = row is not None and row.order == written.last and row.origin is Origin.CHANGE
                if row is None or not is_theirs or row.text is None or (not row.shown and key not in marked):
                    continue
                record = _record(row.text, written.before)
                rows.write(
                    replace(
                        row,
                        order=written.before,
                        origin=Origin.CATALOGUE,
                        line=0,
                        presence=Presence.THERE,
                        shown=True,
                        text=record.model_dump_json(),
                    )
                )
            db.executemany("INSERT INTO marks VALUES (?)", [(key,) for key in marked if _hides(rows, key)])
            # Marks of shops that this state shows are applied by the next job.
            applied = str(size) if all(_hides(rows, key) for key in marked) else None
            db.execute("INSERT OR REPLACE INTO meta VALUES ('marks_position', ?)", (applied,))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('version', '2')")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _hides(rows: StateRows, key: str) -> bool:
    """Whether a state shows nothing of a shop."""
    row = rows.row(SHOPS, key)
    return row is None or row.owner is None


def _record(text: str, order: Order) -> ShopRecord:
    """The record as it was before it was hidden, of a shop that only a public record could hide."""
    stated = {"version": order.number} if order.kind == VERSION else {"updated_at": None}
    return ShopRecord.model_validate_json(text).model_copy(update={"visibility": "public", **stated})


def _is_overruled(directory: Path, key: str, order: Order) -> bool:
    """Whether the newest state of version 1 shows a newer record of a shop than the one that hid it."""
    for path in sorted(directory.glob("*.sqlite"), reverse=True):
        with suppress(sqlite3.Error), closing(read_only(path)) as db:
            row = StateRows(db).row(SHOPS, key)
            return row is not None and row.shown and row.order > order
    return False


def _written(directory: Path) -> dict[str, _Written]:
    """What the commands of version 1 wrote, by shop."""
    found: dict[str, _Written] = {}
    file = directory / _FORMER_FILE
    for line in file.read_bytes().splitlines() if file.exists() else ():
        with suppress(ValueError, KeyError, TypeError, ValidationError):
            record = ShopRecord.model_validate_json(json.dumps(json.loads(line)["record"]))
            one = found.setdefault(record.id, _Written())
            one.orders.add(record.order)
            one.last, one.hidden = record.order, record.visibility != "public"
    return found
