"""Reports in one SQLite file, for the embedded default; several processes of one machine may use it.

An acknowledgement means: the transaction that holds mark, report and re-check is committed and synced (WAL,
`synchronous=FULL`). The file is readable by its owner only. All statements run on one thread of their own, so the event
loop never waits for a disk or a lock, and no longer than the deadline for either.
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
from service.reports.failures import Reason, ReportsUnavailable
from service.reports.protocol import Recheck, Report, Waiting

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
    """The report queue of a file."""

    def __init__(
        self,
        path: Path,
        *,
        window_seconds: float = 86_400.0,
        timeout: float = 1.5,
        max_deliveries: int = 5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open lazily.

        Args:
            path: the file; it and its directory are made when they are not there.
            window_seconds: how long the same report appends nothing more (Q5).
            timeout: seconds for a whole call, waiting for other processes and our own turn included.
            max_deliveries: how often a re-check is handed out before it becomes a dead letter.
            clock: seconds since the epoch; processes that share the file share it.
        """
        self._path = path
        self._window = window_seconds
        self._timeout = timeout
        self._max_deliveries = max_deliveries
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reports")
        self._opened: tuple[sqlite3.Connection, tuple[int, int]] | None = None

    async def append(self, report: Report) -> bool:
        """Keep a report and queue its re-check in one transaction."""
        return await self._run(lambda db: statements.append(db, report, self._clock(), self._window))

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Take re-checks, new ones first, then abandoned ones; those delivered too often become dead letters."""
        most = self._max_deliveries
        return await self._run(
            lambda db: statements.claim(db, worker, count, idle_seconds, now=self._clock(), max_deliveries=most)
        )

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Take the entries that the worker holds off the queue; the others are left as they are."""
        return await self._run(lambda db: statements.acknowledge(db, worker, ids))

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue, as of one moment."""
        return await self._run(lambda db: statements.waiting(db, count, self._clock()))

    async def export(self) -> AsyncIterator[Report]:
        """All reports ever, in the order in which they were appended; a page is read at a time."""
        page = await self._page(0)
        while page:
            for _, report in page:
                yield report
            page = await self._page(page[-1][0])

    async def depth(self) -> int:
        """How many re-checks nobody has acknowledged."""
        return await self._run(statements.depth)

    async def check(self) -> None:
        """Write and sync a page: a disk that is full or read-only is seen by nothing less."""
        await self._run(statements.write_page)

    async def close(self) -> None:
        """Close the file; what is under way ends first."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
        self._thread.shutdown(wait=False)

    async def _page(self, after: int) -> list[tuple[int, Report]]:
        return await self._run(lambda db: statements.reports_after(db, after, _PAGE))

    async def _run(self, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        """Run on the thread, within the deadline; whose turn has not come by then never runs."""
        end = time.monotonic() + self._timeout
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._until, end, work)
        except (sqlite3.Error, OSError, TimeoutError) as error:
            text = f"the file of reports did not confirm: {type(error).__name__}"
            raise ReportsUnavailable(text, _reason_of(error)) from error

    def _until(self, end: float, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        while True:
            try:
                db = self._open()
                db.execute(f"PRAGMA busy_timeout = {max(0, int((end - time.monotonic()) * 1000))}")
                return work(db)
            except sqlite3.Error as error:
                busy = (getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
                if not busy:
                    # Whatever is wrong with the file may be over by the next call.
                    self._shut()
                if not busy or time.monotonic() >= end:
                    raise
            # Two that make the file at the same time are told "busy" at once, whatever the time-out.
            time.sleep(_BUSY_WAIT)

    def _open(self) -> sqlite3.Connection:
        if self._opened is not None:
            db, place = self._opened
            if self._place() == place:
                return db
            # The file was removed or replaced: what is written to the old one would be lost.
            self._shut()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            statements.prepare(db)
            self._opened = (db, self._place())
        except BaseException:
            db.close()
            raise
        return db

    def _place(self) -> tuple[int, int]:
        """Which file it is, whatever its name; zeros when there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_dev, found.st_ino

    def _shut(self) -> None:
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None


def _reason_of(error: Exception) -> Reason:
    if isinstance(error, sqlite3.Error):
        return _SQLITE_REASONS.get((getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY_CODE, Reason.NO_ANSWER)
    return _SYSTEM_REASONS.get(getattr(error, "errno", None) or 0, Reason.NO_ANSWER)
