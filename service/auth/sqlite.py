"""Tokens in a SQLite file that only its owner can read: the default store (Q1).

All statements run on a thread of the store, so that a locked file never blocks the event loop. The file is created at
the first use. If it is missing later, the store is unavailable: lost tokens must not look like tokens never issued.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from service.auth.protocol import SecretHash, Token, TokensUnavailable

T = TypeVar("T")

_LOCK_SECONDS: Final = 0.8
_SETUP: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY,
    secret_hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    quota_class TEXT NOT NULL,
    expires_at INTEGER
) STRICT;
PRAGMA wal_checkpoint(TRUNCATE);
"""
_COLUMNS: Final = "id, name, quota_class, expires_at"


class SqliteTokenStore:
    """A token store in one file, which any number of processes of one machine can share."""

    def __init__(self, path: Path) -> None:
        """Configure the store; the file is opened, and created with its directory, at the first call."""
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokens")

    async def find(self, secret_hash: SecretHash) -> Token | None:
        query = f"SELECT {_COLUMNS} FROM tokens WHERE secret_hash = ?"  # noqa: S608 - a constant
        row = await self._run(lambda db: db.execute(query, (secret_hash.hexadecimal,)).fetchone())
        return None if row is None else Token(*row)

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        row = (token.id, secret_hash.hexadecimal, token.name, token.quota_class, token.expires_at)
        await self._run(lambda db: _change(db, "INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", row))

    async def all(self) -> tuple[Token, ...]:
        query = f"SELECT {_COLUMNS} FROM tokens ORDER BY name, id"  # noqa: S608 - a constant
        return tuple(Token(*row) for row in await self._run(lambda db: db.execute(query).fetchall()))

    async def revoke(self, token_id: str) -> bool:
        return await self._run(lambda db: _change(db, "DELETE FROM tokens WHERE id = ?", (token_id,))) > 0

    async def close(self) -> None:
        """Close the file and end the thread."""
        self._thread.submit(self._disconnect)
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            try:
                return work(self._connect())
            except (sqlite3.Error, OSError) as error:
                self._disconnect()
                raise TokensUnavailable(f"the token file {self._path.absolute()}: {self._reason(error)}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _reason(self, error: sqlite3.Error | OSError) -> str:
        """What is wrong with the file or its disk; no value of a statement."""
        if isinstance(error, OSError):
            return error.strerror or type(error).__name__
        # SQLite calls a full disk an I/O error where the files next to the database can't grow.
        return str(error) if os.statvfs(self._path.parent).f_bavail else "its disk is full"

    def _connect(self) -> sqlite3.Connection:
        """The connection to the file that is at the path now, as the file may have been replaced."""
        if self._inode is not None and self._path.stat().st_ino != self._inode:
            self._disconnect()
        if self._db is None:
            if self._inode is None:
                # Created if it does not exist; it is never readable by others, not even briefly.
                self._path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = _open(self._path)
            self._inode = self._path.stat().st_ino
        return self._db

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _change(db: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    changed = db.execute(statement, values).rowcount
    # Changes are rare, so each goes into the main file: it can be copied alone, and a replacement finds no old log.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return changed


def _open(path: Path) -> sqlite3.Connection:
    # mode=rw, as a file that SQLite creates may be readable by others.
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", timeout=_LOCK_SECONDS, isolation_level=None, uri=True)
    try:
        with closing(db.cursor()) as cursor:
            cursor.executescript(_SETUP)
    except sqlite3.Error:
        db.close()
        raise
    return db
