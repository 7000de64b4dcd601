"""The counts of queries in a SQLite file of one machine, which its owner alone can read."""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Final, TypeVar

from service.insights.protocol import (
    KEPT_DAYS,
    KEY_BYTES,
    LEAST_GROUPS,
    MOST_QUERIES,
    InsightsUnavailable,
    QueryCount,
    Tally,
)

T = TypeVar("T")

_LOCK_SECONDS: Final = 5.0
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
    """A store in one file, which any number of processes of one machine can share."""

    def __init__(self, path: Path) -> None:
        """Configure the store; the file is opened, and created with its directory, at each call."""
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="insights")

    async def key_of(self, day: str) -> bytes:
        def work(db: sqlite3.Connection) -> bytes:
            db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (day, secrets.token_bytes(KEY_BYTES)))
            if db.execute("DELETE FROM keys WHERE day < ?", (day,)).rowcount:
                db.execute("DELETE FROM groups")
            kept = (date.fromisoformat(day) - timedelta(days=KEPT_DAYS - 1)).isoformat()
            db.execute("DELETE FROM counts WHERE day < ? OR (day < ? AND query IS NULL)", (kept, day))
            return bytes(db.execute("SELECT key FROM keys WHERE day = ?", (day,)).fetchone()[0])

        return await self._run(work)

    async def add(self, day: str, tallies: Sequence[Tally]) -> None:
        def work(db: sqlite3.Connection) -> None:
            if db.execute("SELECT 1 FROM keys WHERE day = ?", (day,)).fetchone() is None:
                return
            for tally in tallies:
                db.execute(_ADD, (day, tally.mark, tally.asked, tally.not_found))
                callers = [(tally.mark, group) for group in tally.groups]
                db.executemany("INSERT OR IGNORE INTO groups VALUES (?, ?)", callers)
                db.execute(_SHOW, (tally.query, day, tally.mark, LEAST_GROUPS))
            db.execute(_PRUNE, (day, MOST_QUERIES))
            db.execute("DELETE FROM groups WHERE mark NOT IN (SELECT mark FROM counts WHERE day = ?)", (day,))

        await self._run(work)

    async def counts(self, since: str) -> tuple[QueryCount, ...]:
        return await self._run(lambda db: tuple(QueryCount(*row) for row in db.execute(_COUNTS, (since,))))

    async def erase(self) -> None:
        def work(db: sqlite3.Connection) -> None:
            for table in ("keys", "groups", "counts"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant

        await self._run(work)

    async def close(self) -> None:
        """End the thread."""
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
                with closing(sqlite3.connect(self._path, timeout=_LOCK_SECONDS, isolation_level=None)) as db:
                    db.executescript(_SETUP)
                    db.execute("BEGIN IMMEDIATE")
                    done = work(db)
                    db.execute("COMMIT")
                    return done
            except (sqlite3.Error, OSError) as error:
                raise InsightsUnavailable(f"the file {self._path.absolute()}: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)
