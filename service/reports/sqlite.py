"""Reports in one SQLite file, the default; several processes of one machine may use it.

When `append` returns, the transaction with mark, report and re-check is committed and synced (WAL, `synchronous=FULL`).
"""

import errno
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from service.reports.protocol import (
    Reason,
    Recheck,
    Report,
    ReportsUnavailable,
    Waiting,
    Worker,
    report_from_texts,
    report_to_texts,
)
from service.sqlite_file import SqliteFile, in_transaction, primary_code, reading

_PAGE: Final = 500
_SQLITE_REASONS: Final = {
    sqlite3.SQLITE_FULL: Reason.FULL,
    sqlite3.SQLITE_READONLY: Reason.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: Reason.READ_ONLY,
    sqlite3.SQLITE_PERM: Reason.READ_ONLY,
    sqlite3.SQLITE_IOERR: Reason.FAILING,
}
_SYSTEM_REASONS: Final = {
    errno.ENOSPC: Reason.FULL,
    errno.EDQUOT: Reason.FULL,
    errno.EROFS: Reason.READ_ONLY,
    errno.EACCES: Reason.READ_ONLY,
    errno.EEXIST: Reason.READ_ONLY,
    errno.EISDIR: Reason.READ_ONLY,
    errno.ENOTDIR: Reason.READ_ONLY,
    errno.EPERM: Reason.READ_ONLY,
    errno.EIO: Reason.FAILING,
}
_VERSION: Final = 1

_FIELDS: Final = ("source", "kind", "shop_id", "code", "reason", "reported_at")
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS reports (
    id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, kind TEXT NOT NULL, shop_id TEXT NOT NULL,
    code TEXT, reason TEXT NOT NULL, reported_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS marks (mark TEXT PRIMARY KEY, expires_at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS marks_by_end ON marks (expires_at);
-- The id is that of the report, as each report has one re-check.
CREATE TABLE IF NOT EXISTS rechecks (
    id INTEGER PRIMARY KEY REFERENCES reports, deliveries INTEGER NOT NULL DEFAULT 0, worker TEXT,
    claimed_at REAL, dead INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS rechecks_by_state ON rechecks (dead, deliveries, id);
CREATE TABLE IF NOT EXISTS workers (name TEXT PRIMARY KEY, seen_at REAL NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_ENTRIES: Final = (
    "SELECT id, deliveries, worker, claimed_at, dead, source, kind, shop_id, code, reason, reported_at"
    " FROM rechecks JOIN reports USING (id)"
)
_INSERT: Final = "INSERT INTO reports (source, kind, shop_id, code, reason, reported_at) VALUES (?, ?, ?, ?, ?, ?)"
_NEXT: Final = (
    "SELECT id, source, kind, shop_id, code, reason, reported_at FROM reports WHERE id > ? ORDER BY id LIMIT ?"
)


class SqliteReports:
    """A report queue in a file."""

    def __init__(
        self,
        path: Path,
        *,
        window_seconds: float = 86_400.0,
        timeout: float = 1.5,
        max_deliveries: int = 5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A repetition of the same report within the window appends nothing (Q5).

        `timeout` seconds are for a whole call. A re-check that was delivered `max_deliveries` times becomes a dead
        letter. `clock` gives seconds since the epoch, the same for all processes that share the file.
        """
        self._file = SqliteFile(path, timeout, _prepare, _unavailable)
        self._window = window_seconds
        self._max_deliveries = max_deliveries
        self._clock = clock

    @in_transaction
    def append(self, db: sqlite3.Connection, report: Report) -> bool:
        texts, now = report_to_texts(report), self._clock()
        db.execute("DELETE FROM marks WHERE expires_at <= ?", (now,))
        mark = (report.mark, now + self._window)
        if db.execute("INSERT INTO marks VALUES (?, ?) ON CONFLICT DO NOTHING", mark).rowcount == 0:
            return False
        row = db.execute(_INSERT, [texts.get(field) for field in _FIELDS])
        db.execute("INSERT INTO rechecks (id) VALUES (?)", (row.lastrowid,))
        return True

    @in_transaction
    def claim(self, db: sqlite3.Connection, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        now = self._clock()
        abandoned = now - idle_seconds
        db.execute("INSERT OR REPLACE INTO workers VALUES (?, ?)", (worker, now))
        db.execute(
            "UPDATE rechecks SET dead = 1 WHERE dead = 0 AND deliveries >= ? AND claimed_at <= ?",
            (self._max_deliveries, abandoned),
        )
        claimed: list[tuple[int]] = []
        for which, *values in (("deliveries = 0",), ("deliveries > 0 AND claimed_at <= ?", abandoned)):
            claimed += db.execute(
                f"SELECT id FROM rechecks WHERE dead = 0 AND {which} ORDER BY id LIMIT ?",  # noqa: S608 - a constant
                (*values, count - len(claimed)),
            )
        db.executemany(
            "UPDATE rechecks SET deliveries = deliveries + 1, worker = ?, claimed_at = ? WHERE id = ?",
            [(worker, now, *entry_id) for entry_id in claimed],
        )
        rows = [db.execute(f"{_ENTRIES} WHERE id = ?", entry_id).fetchone() for entry_id in claimed]
        # In the transaction: an entry that cannot be read leaves all of them unclaimed.
        return tuple(_recheck(row, now) for row in rows)

    @in_transaction
    def acknowledge(self, db: sqlite3.Connection, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(entry_id for entry_id in ids if _removed(db, worker, entry_id))

    @reading
    def waiting(self, db: sqlite3.Connection, count: int) -> Waiting:
        now = self._clock()
        (lag, pending, dead) = db.execute(
            "SELECT COUNT(*) FILTER (WHERE dead = 0 AND deliveries = 0),"
            " COUNT(*) FILTER (WHERE dead = 0 AND deliveries > 0), COUNT(*) FILTER (WHERE dead = 1) FROM rechecks"
        ).fetchone()
        workers = db.execute(
            "SELECT name, COUNT(*), seen_at FROM rechecks JOIN workers ON name = worker"
            " WHERE dead = 0 AND deliveries > 0 GROUP BY name ORDER BY name"
        ).fetchall()
        listed = f"{_ENTRIES} WHERE dead = ? ORDER BY id LIMIT ?"
        rechecks, dead_letters = (
            tuple(_recheck(row, now) for row in db.execute(listed, (state, count))) for state in (0, 1)
        )
        return Waiting(
            depth=lag + pending,
            lag=lag,
            pending=pending,
            dead=dead,
            workers=tuple(Worker(name, held, max(0.0, now - seen_at)) for name, held, seen_at in workers),
            rechecks=rechecks,
            dead_letters=dead_letters,
        )

    async def export(self) -> AsyncIterator[Report]:
        page = await self._page(0)
        while page:
            for _, *texts in page:
                yield _report(texts)
            page = await self._page(page[-1][0])

    @in_transaction
    def check(self, db: sqlite3.Connection) -> None:
        """Write and sync a page, as only a write shows that the disk is full or read-only."""
        db.execute(f"PRAGMA user_version = {_VERSION}")

    async def close(self) -> None:
        await self._file.close()

    async def _page(self, after: int) -> list[Any]:
        return await self._file.run(lambda db: db.execute(_NEXT, (after, _PAGE)).fetchall())


def _unavailable(error: Exception) -> ReportsUnavailable:
    if isinstance(error, sqlite3.Error):
        reason = _SQLITE_REASONS.get(primary_code(error), Reason.NO_ANSWER)
    else:
        reason = _SYSTEM_REASONS.get(getattr(error, "errno", None) or 0, Reason.NO_ANSWER)
    return ReportsUnavailable(f"the file of reports did not confirm: {type(error).__name__}", reason)


def _prepare(db: sqlite3.Connection) -> None:
    """Set an open file to durable writes, and create the tables if it is new."""
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise ReportsUnavailable("the file of reports is on a file system without write-ahead logging")
    db.execute("PRAGMA synchronous = FULL")
    if _version(db) == 0:
        db.executescript(_SCHEMA)
    if _version(db) != _VERSION:
        raise ReportsUnavailable(f"the file of reports has another version than {_VERSION}")


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
