"""Tokens in a SQLite file: the default store (Q1).

If the file is missing later, the store is unavailable: lost tokens must not look like tokens never issued.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

from service.auth.protocol import SecretHash, Token, TokensUnavailable
from service.sqlite_file import SqliteFile

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
    """A token store in one file."""

    def __init__(self, path: Path, timeout: float = 5.0) -> None:
        self._file = SqliteFile(
            path, timeout, lambda db: db.executescript(_SETUP), self._unavailable, is_made_again=False
        )

    async def find(self, secret_hash: SecretHash) -> Token | None:
        query = f"SELECT {_COLUMNS} FROM tokens WHERE secret_hash = ?"  # noqa: S608 - a constant
        row = await self._file.run(lambda db: db.execute(query, (secret_hash.hexadecimal,)).fetchone())
        return None if row is None else Token(*row)

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        row = (token.id, secret_hash.hexadecimal, token.name, token.quota_class, token.expires_at)
        await self._file.run(lambda db: _change(db, "INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", row))

    async def all(self) -> tuple[Token, ...]:
        query = f"SELECT {_COLUMNS} FROM tokens ORDER BY name, id"  # noqa: S608 - a constant
        return tuple(Token(*row) for row in await self._file.run(lambda db: db.execute(query).fetchall()))

    async def revoke(self, token_id: str) -> bool:
        return await self._file.run(lambda db: _change(db, "DELETE FROM tokens WHERE id = ?", (token_id,))) > 0

    async def close(self) -> None:
        await self._file.close()

    def _unavailable(self, error: Exception) -> TokensUnavailable:
        """What is wrong with the file or its disk; no value of a statement."""
        reason = str(error)
        if isinstance(error, OSError):
            reason = error.strerror or type(error).__name__
        elif not os.statvfs(self._file.path.parent).f_bavail:
            # SQLite calls a full disk an I/O error where the files next to the database can't grow.
            reason = "its disk is full"
        return TokensUnavailable(f"the token file {self._file.path}: {reason}")


def _change(db: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    changed = db.execute(statement, values).rowcount
    # Changes are rare, so each goes into the main file: it can be copied alone, and a replacement finds no old log.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return changed
