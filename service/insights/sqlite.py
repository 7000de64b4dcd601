"""The counts of queries in a SQLite file of one machine."""

import secrets
import sqlite3
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from service.insights.protocol import (
    KEPT_DAYS,
    KEY_BYTES,
    LEAST_GROUPS,
    MOST_QUERIES,
    InsightsUnavailable,
    QueryCount,
    Tally,
)
from service.sqlite_file import SqliteFile, in_transaction, reading

_SECONDS: Final = 5.0
# Deleted hashes and keys are overwritten, and no log of former pages keeps them.
_SETUP: Final = """
PRAGMA journal_mode = DELETE;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS keys (day TEXT PRIMARY KEY, key BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS groups (mark TEXT, caller TEXT, PRIMARY KEY (mark, caller)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (
    day TEXT, mark TEXT, asked INTEGER NOT NULL, not_found INTEGER NOT NULL, query TEXT, PRIMARY KEY (day, mark)
) STRICT, WITHOUT ROWID;
"""
_ADD: Final = """
INSERT INTO counts VALUES (?, ?, ?, ?, NULL) ON CONFLICT DO UPDATE
SET asked = asked + excluded.asked, not_found = not_found + excluded.not_found
"""
_SHOW: Final = """
UPDATE counts SET query = ? WHERE day = ? AND mark = ?
AND (SELECT count(*) FROM groups WHERE groups.mark = counts.mark) >= ?
"""
_PRUNE: Final = """
DELETE FROM counts WHERE day = ?1 AND mark NOT IN (
    SELECT mark FROM counts WHERE day = ?1 ORDER BY query IS NULL, asked DESC LIMIT ?2
)
"""
_COUNTS: Final = """
SELECT query, sum(asked), sum(not_found) FROM counts WHERE day >= ? AND query IS NOT NULL
GROUP BY query ORDER BY sum(asked) DESC, query
"""


class SqliteInsights:
    """A store in one file."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, _SECONDS, lambda db: db.executescript(_SETUP), self._unavailable)

    @in_transaction
    def key_of(self, db: sqlite3.Connection, day: str) -> bytes:
        db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (day, secrets.token_bytes(KEY_BYTES)))
        if db.execute("DELETE FROM keys WHERE day < ?", (day,)).rowcount:
            db.execute("DELETE FROM groups")
        kept = (date.fromisoformat(day) - timedelta(days=KEPT_DAYS - 1)).isoformat()
        db.execute("DELETE FROM counts WHERE day < ? OR (day < ? AND query IS NULL)", (kept, day))
        return bytes(db.execute("SELECT key FROM keys WHERE day = ?", (day,)).fetchone()[0])

    @in_transaction
    def add(self, db: sqlite3.Connection, day: str, tallies: Sequence[Tally]) -> None:
        if db.execute("SELECT 1 FROM keys WHERE day = ?", (day,)).fetchone() is None:
            return
        for tally in tallies:
            db.execute(_ADD, (day, tally.mark, tally.asked, tally.not_found))
            callers = [(tally.mark, group) for group in tally.groups]
            db.executemany("INSERT OR IGNORE INTO groups VALUES (?, ?)", callers)
            db.execute(_SHOW, (tally.query, day, tally.mark, LEAST_GROUPS))
        db.execute(_PRUNE, (day, MOST_QUERIES))
        db.execute("DELETE FROM groups WHERE mark NOT IN (SELECT mark FROM counts WHERE day = ?)", (day,))

    @reading
    def counts(self, db: sqlite3.Connection, since: str) -> tuple[QueryCount, ...]:
        return tuple(QueryCount(*row) for row in db.execute(_COUNTS, (since,)))

    @in_transaction
    def erase(self, db: sqlite3.Connection) -> None:
        for table in ("keys", "groups", "counts"):
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant

    async def close(self) -> None:
        await self._file.close()

    def _unavailable(self, error: Exception) -> InsightsUnavailable:
        return InsightsUnavailable(f"the file {self._file.path}: {str(error) or type(error).__name__}")
