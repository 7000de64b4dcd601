"""A SQLite file of a store, which only its owner can read and any number of processes of one machine can share.

All statements run on a thread of the file, so that the event loop never waits for a disk or a lock.
"""

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from service.runtime.store_waits import StoreUnavailable

T = TypeVar("T")
Given = ParamSpec("Given")

_PRIMARY_CODE: Final = 0xFF
_BUSY_WAIT: Final = 0.01


class SqliteFile:
    """The file at a path, and this process's connection to it."""

    def __init__(
        self,
        path: Path,
        timeout: float,
        prepare: Callable[[sqlite3.Connection], object],
        unavailable: Callable[[Exception], StoreUnavailable],
        *,
        is_made_again: bool = True,
    ) -> None:
        """Open nothing yet; the file is created with its directory at the first call.

        `timeout` seconds are for a whole call, including waiting for the thread and for other processes. `prepare` is
        called with each new connection, which is in autocommit mode. `unavailable` makes the error of a call that
        failed. A file that was removed `is_made_again`, or else the store is unavailable.
        """
        self.path = path.absolute()
        self._timeout = timeout
        self._prepare = prepare
        self._unavailable = unavailable
        self._is_made_again = is_made_again
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=path.stem)
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements; they are cancelled if they have not started by the deadline, and repeated while "busy"."""
        end = time.monotonic() + self._timeout
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._run_until, end, work)
        except (sqlite3.Error, OSError) as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Close the file, and end the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _run_until(self, end: float, work: Callable[[sqlite3.Connection], T]) -> T:
        while True:
            try:
                db = self._connected()
                db.execute(f"PRAGMA busy_timeout = {max(0, int((end - time.monotonic()) * 1000))}")
                return work(db)
            except sqlite3.Error as error:
                busy = primary_code(error) == sqlite3.SQLITE_BUSY
                if not busy:
                    # A new connection at the next call, as the fault may be over by then.
                    self._disconnect()
                if not busy or time.monotonic() >= end:
                    raise
            # Processes that create the file at the same time get "busy" without waiting, whatever the time-out.
            time.sleep(_BUSY_WAIT)

    def _connected(self) -> sqlite3.Connection:
        """The connection to the file that is at the path now: writes to one that was removed would be lost."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            if self._identity is not None and not self._is_made_again:
                raise
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not by SQLite, whose files others may be able to read. One that is there by now is not opened: closing it
            # again would end the locks of other connections of this process.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
            status = self.path.stat()
        if S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        identity = status.st_dev, status.st_ino
        if self._db is None or identity != self._identity:
            self._disconnect()
            db = sqlite3.connect(f"{self.path.as_uri()}?mode=rw", timeout=0, isolation_level=None, uri=True)
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            self._db, self._identity = db, identity
        return self._db

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


class _Store(Protocol):
    _file: SqliteFile


StoreT = TypeVar("StoreT", bound=_Store)


def in_transaction(
    work: Callable[Concatenate[StoreT, sqlite3.Connection, Given], T],
) -> Callable[Concatenate[StoreT, Given], Coroutine[Any, Any, T]]:
    """A method of a store that is run on its file in one transaction: all of its statements, or none."""
    # IMMEDIATE, as a deferred one that starts to write may fail with "busy" without waiting.
    return _method(work, "BEGIN IMMEDIATE")


def reading(
    work: Callable[Concatenate[StoreT, sqlite3.Connection, Given], T],
) -> Callable[Concatenate[StoreT, Given], Coroutine[Any, Any, T]]:
    """A method of a store that only reads its file, as of one point in time; no writer waits for it."""
    return _method(work, "BEGIN DEFERRED")


def _method(
    work: Callable[Concatenate[StoreT, sqlite3.Connection, Given], T], begin: str
) -> Callable[Concatenate[StoreT, Given], Coroutine[Any, Any, T]]:
    @wraps(work)
    async def method(store: StoreT, /, *given: Given.args, **named: Given.kwargs) -> T:
        def run(db: sqlite3.Connection) -> T:
            db.execute(begin)
            try:
                done = work(store, db, *given, **named)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            return done

        return await store._file.run(run)  # noqa: SLF001 - the store's own

    return method


def primary_code(error: sqlite3.Error) -> int:
    """The kind of an error, without its details."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY_CODE
