"""Reports in one SQLite file, the default; several processes of one machine may use it.

When `append` returns, the transaction with mark, report and re-check is committed and synced (WAL, `synchronous=FULL`).
Only the owner can read the file. All statements run on a thread of the store, so that the event loop never waits for a
disk or a lock, and calls wait no longer than their deadline.
"""

import asyncio
import errno
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from service.reports import sqlite_statements as statements
from service.reports.protocol import Reason, Recheck, Report, ReportsUnavailable, Waiting

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
        """Configure the queue; the file is opened at the first call.

        Args:
            path: the file; it and its directory are created if they do not exist.
            window_seconds: how long a repetition of the same report appends nothing (Q5).
            timeout: seconds for a whole call, including waiting for the thread and for other processes.
            max_deliveries: how often a re-check is delivered before it becomes a dead letter.
            clock: seconds since the epoch, the same for all processes that share the file.
        """
        self._path = path
        self._window = window_seconds
        self._timeout = timeout
        self._max_deliveries = max_deliveries
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reports")
        self._opened: tuple[sqlite3.Connection, tuple[int, int]] | None = None

    async def append(self, report: Report) -> bool:
        """Store a report and queue its re-check in one transaction."""
        return await self._run(lambda db: statements.append(db, report, self._clock(), self._window))

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Claim re-checks, new ones first, then abandoned ones; those delivered too often become dead letters."""
        limit = self._max_deliveries
        return await self._run(
            lambda db: statements.claim(db, worker, count, idle_seconds, now=self._clock(), max_deliveries=limit)
        )

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove the entries that the worker holds; others stay."""
        return await self._run(lambda db: statements.acknowledge(db, worker, ids))

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue at one time."""
        return await self._run(lambda db: statements.waiting(db, count, self._clock()))

    async def export(self) -> AsyncIterator[Report]:
        """All reports ever stored, in the order of appending, read page by page."""
        page = await self._page(0)
        while page:
            for _, report in page:
                yield report
            page = await self._page(page[-1][0])

    async def depth(self) -> int:
        """How many re-checks are not acknowledged."""
        return await self._run(statements.depth)

    async def check(self) -> None:
        """Write and sync a page, as only a write shows that the disk is full or read-only."""
        await self._run(statements.write_page)

    async def close(self) -> None:
        """Close the file after pending calls."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    async def _page(self, after: int) -> list[tuple[int, Report]]:
        return await self._run(lambda db: statements.reports_after(db, after, _PAGE))

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
            statements.prepare(db)
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
