"""Reports in one SQLite file, the default; several processes of one machine may use it.

When `append` returns, the transaction with mark, report and re-check is committed and synced (WAL, `synchronous=FULL`).
Only the owner can read the file. All statements run on a thread of the store, so that the event loop never waits for a
disk or a lock, and calls wait no longer than their deadline. Each call is one transaction.
"""

import asyncio
import errno
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

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

_PAGE: Final = 500
_BUSY_WAIT: Final = 0.01
_PRIMARY_CODE: Final = 0xFF
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
    errno.ENOTDIR: Reason.READ_ONLY,
    errno.EPERM: Reason.READ_ONLY,
    errno.EIO: Reason.FAILING,
}
_Answer = TypeVar("_Answer")
_Given = ParamSpec("_Given")
_VERSION: Final = 1

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
    f"PRAGMA user_version = {_VERSION}",
)
_ENTRIES: Final = (
    "SELECT id, deliveries, worker, claimed_at, dead, source, kind, shop_id, code, reason, reported_at"
    " FROM rechecks JOIN reports USING (id)"
)
_INSERT: Final = "INSERT INTO reports (source, kind, shop_id, code, reason, reported_at) VALUES (?, ?, ?, ?, ?, ?)"
_NEXT: Final = (
    "SELECT id, source, kind, shop_id, code, reason, reported_at FROM reports WHERE id > ? ORDER BY id LIMIT ?"
)


def _on_thread(
    work: Callable[Concatenate["SqliteReports", sqlite3.Connection, _Given], _Answer],
) -> Callable[Concatenate["SqliteReports", _Given], Coroutine[Any, Any, _Answer]]:
    """A method that runs on the queue's thread, on the open file."""

    @wraps(work)
    async def run(self: "SqliteReports", /, *given: _Given.args, **named: _Given.kwargs) -> _Answer:
        return await self._run(lambda db: work(self, db, *given, **named))

    return run


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
        """Configure the queue; the file is opened, and created with its directory, at the first call.

        A repetition of the same report within the window appends nothing (Q5). `timeout` seconds are for a whole call,
        including waiting for the thread and for other processes. A re-check that was delivered `max_deliveries` times
        becomes a dead letter. `clock` gives seconds since the epoch, the same for all processes that share the file.
        """
        self._path = path
        self._window = window_seconds
        self._timeout = timeout
        self._max_deliveries = max_deliveries
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reports")
        self._opened: tuple[sqlite3.Connection, tuple[int, int]] | None = None

    @_on_thread
    def append(self, db: sqlite3.Connection, report: Report) -> bool:
        texts, now = report_to_texts(report), self._clock()
        with _transaction(db):
            db.execute("DELETE FROM marks WHERE expires_at <= ?", (now,))
            mark = (report.mark, now + self._window)
            if db.execute("INSERT INTO marks VALUES (?, ?) ON CONFLICT DO NOTHING", mark).rowcount == 0:
                return False
            row = db.execute(_INSERT, [texts.get(field) for field in _FIELDS])
            db.execute("INSERT INTO rechecks (id) VALUES (?)", (row.lastrowid,))
            return True

    @_on_thread
    def claim(self, db: sqlite3.Connection, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        now = self._clock()
        abandoned = now - idle_seconds
        with _transaction(db):
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

    @_on_thread
    def acknowledge(self, db: sqlite3.Connection, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        with _transaction(db):
            return tuple(entry_id for entry_id in ids if _removed(db, worker, entry_id))

    @_on_thread
    def waiting(self, db: sqlite3.Connection, count: int) -> Waiting:
        now = self._clock()
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

    async def export(self) -> AsyncIterator[Report]:
        page = await self._page(0)
        while page:
            for _, *texts in page:
                yield _report(texts)
            page = await self._page(page[-1][0])

    @_on_thread
    def check(self, db: sqlite3.Connection) -> None:
        """Write and sync a page, as only a write shows that the disk is full or read-only."""
        with _transaction(db):
            db.execute(f"PRAGMA user_version = {_VERSION}")

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    @_on_thread
    def _page(self, db: sqlite3.Connection, after: int) -> list[Any]:
        return db.execute(_NEXT, (after, _PAGE)).fetchall()

    async def _run(self, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        """Run a statement on the thread; it is cancelled if it has not started by the deadline."""
        end = time.monotonic() + self._timeout
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._run_until, end, work)
        except (sqlite3.Error, OSError, TimeoutError) as error:
            text = f"the file of reports did not confirm: {type(error).__name__}"
            raise ReportsUnavailable(text, _reason_of(error)) from error

    def _run_until(self, end: float, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        while True:
            try:
                db = self._open()
                db.execute(f"PRAGMA busy_timeout = {max(0, int((end - time.monotonic()) * 1000))}")
                return work(db)
            except sqlite3.Error as error:
                busy = (getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
                if not busy:
                    # A new connection at the next call, as the fault may be over by then.
                    self._disconnect()
                if not busy or time.monotonic() >= end:
                    raise
            # Processes that create the file at the same time get "busy" without waiting, whatever the time-out.
            time.sleep(_BUSY_WAIT)

    def _open(self) -> sqlite3.Connection:
        if self._opened is not None:
            db, identity = self._opened
            if self._identity() == identity:
                return db
            # The file was removed or replaced: writes to the old one would be lost.
            self._disconnect()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            _prepare(db)
            self._opened = (db, self._identity())
        except BaseException:
            db.close()
            raise
        return db

    def _identity(self) -> tuple[int, int]:
        """The device and inode of the file at the path; zeros if there is none."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return status.st_dev, status.st_ino

    def _disconnect(self) -> None:
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None


def _reason_of(error: Exception) -> Reason:
    if isinstance(error, sqlite3.Error):
        return _SQLITE_REASONS.get((getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY_CODE, Reason.NO_ANSWER)
    return _SYSTEM_REASONS.get(getattr(error, "errno", None) or 0, Reason.NO_ANSWER)


def _prepare(db: sqlite3.Connection) -> None:
    """Set an open file to durable writes, and create the tables if it is new."""
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
    if _version(db) != _VERSION:
        raise ReportsUnavailable(f"the file of reports has another version than {_VERSION}")


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
