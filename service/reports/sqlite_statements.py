"""The SQL of the report queue; each function is one transaction on an open file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from service.reports.protocol import Recheck, Report, ReportsUnavailable, Waiting, Worker
from service.reports.wire import report_from_texts, report_to_texts

VERSION: Final = 1

_FIELDS: Final = ("source", "kind", "shop_id", "code", "reason", "reported_at")
_SCHEMA: Final = (
    """
    CREATE TABLE reports (
        id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, kind TEXT NOT NULL, shop_id TEXT NOT NULL,
        code TEXT, reason TEXT NOT NULL, reported_at TEXT NOT NULL
    )
    """,
    "CREATE TABLE marks (mark TEXT PRIMARY KEY, expires_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX marks_by_end ON marks (expires_at)",
    # The id is that of the report, as each report has one re-check.
    """
    CREATE TABLE rechecks (
        id INTEGER PRIMARY KEY REFERENCES reports, deliveries INTEGER NOT NULL DEFAULT 0, worker TEXT,
        claimed_at REAL, dead INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX rechecks_by_state ON rechecks (dead, deliveries, id)",
    "CREATE TABLE workers (name TEXT PRIMARY KEY, seen_at REAL NOT NULL) WITHOUT ROWID",
    f"PRAGMA user_version = {VERSION}",
)
_ENTRIES: Final = (
    "SELECT id, deliveries, worker, claimed_at, dead, source, kind, shop_id, code, reason, reported_at"
    " FROM rechecks JOIN reports USING (id)"
)
_INSERT: Final = "INSERT INTO reports (source, kind, shop_id, code, reason, reported_at) VALUES (?, ?, ?, ?, ?, ?)"
_NEXT: Final = (
    "SELECT id, source, kind, shop_id, code, reason, reported_at FROM reports WHERE id > ? ORDER BY id LIMIT ?"
)


def prepare(db: sqlite3.Connection) -> None:
    """Set an open file to durable writes, and create the tables if it is new.

    Raises:
        ReportsUnavailable: the file is of another version, or its file system can't do WAL.
    """
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise ReportsUnavailable("the file of reports is on a file system without write-ahead logging")
    db.execute("PRAGMA synchronous = FULL")
    if _version(db) == 0:
        with _transaction(db):
            # Another process may have created the tables.
            if _version(db) == 0:
                for statement in _SCHEMA:
                    db.execute(statement)
    if _version(db) != VERSION:
        raise ReportsUnavailable(f"the file of reports has another version than {VERSION}")


def append(db: sqlite3.Connection, report: Report, now: float, window: float) -> bool:
    """Write mark, report and re-check; returns False when the mark exists."""
    texts = report_to_texts(report)
    with _transaction(db):
        db.execute("DELETE FROM marks WHERE expires_at <= ?", (now,))
        marked = db.execute("INSERT INTO marks VALUES (?, ?) ON CONFLICT DO NOTHING", (report.mark, now + window))
        if marked.rowcount == 0:
            return False
        row = db.execute(_INSERT, [texts.get(field) for field in _FIELDS])
        db.execute("INSERT INTO rechecks (id) VALUES (?)", (row.lastrowid,))
        return True


def claim(
    db: sqlite3.Connection, worker: str, count: int, idle_seconds: float, *, now: float, max_deliveries: int
) -> tuple[Recheck, ...]:
    """Turn entries delivered too often into dead letters, then claim new entries, then abandoned ones."""
    abandoned = (now - idle_seconds,)
    with _transaction(db):
        db.execute("INSERT OR REPLACE INTO workers VALUES (?, ?)", (worker, now))
        db.execute(
            "UPDATE rechecks SET dead = 1 WHERE dead = 0 AND deliveries >= ? AND claimed_at <= ?",
            (max_deliveries, *abandoned),
        )
        ids = db.execute("SELECT id FROM rechecks WHERE dead = 0 AND deliveries = 0 ORDER BY id LIMIT ?", (count,))
        claimed = [entry_id for (entry_id,) in ids]
        ids = db.execute(
            "SELECT id FROM rechecks WHERE dead = 0 AND deliveries > 0 AND claimed_at <= ? ORDER BY id LIMIT ?",
            (*abandoned, count - len(claimed)),
        )
        claimed += [entry_id for (entry_id,) in ids]
        db.executemany(
            "UPDATE rechecks SET deliveries = deliveries + 1, worker = ?, claimed_at = ? WHERE id = ?",
            [(worker, now, entry_id) for entry_id in claimed],
        )
        rows = [db.execute(f"{_ENTRIES} WHERE id = ?", (entry_id,)).fetchone() for entry_id in claimed]
        return tuple(_recheck(row, now) for row in rows)


def acknowledge(db: sqlite3.Connection, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Remove the entries that the worker holds."""
    with _transaction(db):
        return tuple(entry_id for entry_id in ids if _removed(db, worker, entry_id))


def waiting(db: sqlite3.Connection, count: int, now: float) -> Waiting:
    """Count and list the entries in one snapshot."""
    with _transaction(db, "DEFERRED"):
        (lag, pending, dead) = db.execute(
            "SELECT COUNT(*) FILTER (WHERE dead = 0 AND deliveries = 0),"
            " COUNT(*) FILTER (WHERE dead = 0 AND deliveries > 0), COUNT(*) FILTER (WHERE dead = 1) FROM rechecks"
        ).fetchone()
        workers = db.execute(
            "SELECT name, COUNT(*), seen_at FROM rechecks JOIN workers ON name = worker"
            " WHERE dead = 0 AND deliveries > 0 GROUP BY name ORDER BY name"
        ).fetchall()
        listed = f"{_ENTRIES} WHERE dead = ? ORDER BY id LIMIT ?"
        rechecks, dead_letters = (db.execute(listed, (state, count)).fetchall() for state in (0, 1))
    return Waiting(
        depth=lag + pending,
        lag=lag,
        pending=pending,
        dead=dead,
        workers=tuple(Worker(name, held, max(0.0, now - seen_at)) for name, held, seen_at in workers),
        rechecks=tuple(_recheck(row, now) for row in rechecks),
        dead_letters=tuple(_recheck(row, now) for row in dead_letters),
    )


def reports_after(db: sqlite3.Connection, after: int, count: int) -> list[tuple[int, Report]]:
    """The next reports with their row ids."""
    return [(row_id, _report(texts)) for row_id, *texts in db.execute(_NEXT, (after, count))]


def depth(db: sqlite3.Connection) -> int:
    """How many re-checks are neither acknowledged nor dead."""
    (count,) = db.execute("SELECT COUNT(*) FROM rechecks WHERE dead = 0").fetchone()
    return int(count)


def write_page(db: sqlite3.Connection) -> None:
    """Rewrite the page that holds the version, unchanged, and commit it."""
    with _transaction(db):
        db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    # IMMEDIATE, as a deferred transaction that starts to write may fail with "busy" without waiting.
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _removed(db: sqlite3.Connection, worker: str, entry_id: str) -> bool:
    if not (entry_id.isascii() and entry_id.isdigit()):
        return False
    removed = db.execute("DELETE FROM rechecks WHERE id = ? AND worker = ? AND dead = 0", (entry_id, worker))
    return removed.rowcount > 0


def _recheck(row: Sequence[object], now: float) -> Recheck:
    entry_id, deliveries, worker, claimed_at, dead, *texts = row
    idle = None if dead or not isinstance(claimed_at, float) else max(0.0, now - claimed_at)
    return Recheck(
        id=str(entry_id),
        report=_report(texts),
        deliveries=deliveries if isinstance(deliveries, int) else 0,
        claimed_by=worker if isinstance(worker, str) else None,
        idle_seconds=idle,
    )


def _report(row: Sequence[object]) -> Report:
    texts = {field: None if value is None else str(value) for field, value in zip(_FIELDS, row, strict=True)}
    return report_from_texts(texts)
