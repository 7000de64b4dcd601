"""One state file: the records behind one generation, and how far into the changes they are (G3).

Only its owner can read it. A change, what it touches and the position are saved in one transaction, so a crash loses
neither: what was touched stays pending until the engine has it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from indexer.disk_space import raise_if_full
from indexer.records.problems import CatalogueError
from indexer.state.pending import Pending
from indexer.state.related import StateRelatedRecords
from indexer.state.schema import INDEXES, SCHEMA, STATE_VERSION
from indexer.state.shops import StateShops

_PRIVATE: Final = 0o600
_BUSY_MS: Final = 30_000


def database_uri(path: Path, mode: str) -> str:
    """A file's URI as SQLite reads it, whatever characters its name has."""
    return f"file:{quote(str(path))}?mode={mode}"


class StateError(CatalogueError):
    """The state cannot be used; the text says what to do."""


class State:
    """The records behind one generation."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        self.shops = StateShops(db)
        self.related_records = StateRelatedRecords(db)
        self.pending = Pending(db)

    @classmethod
    def create(cls, path: Path) -> "State":
        """Make an empty state for a whole catalogue.

        Nothing of it has to survive a crash until `seal`: a build that is killed starts anew.

        Raises:
            StateError: the file cannot be made.
            DiskFullError: there is no space for it.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
            # A sink may draw the records from another thread, but never from two at a time.
            db = sqlite3.connect(database_uri(path, "rw"), uri=True, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise_if_full(error)
            raise StateError(f"the state {path} cannot be made: {error}") from error
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        db.executescript(SCHEMA)
        state = cls(path, db)
        state.set("version", STATE_VERSION)
        return state

    @classmethod
    def open(cls, path: Path) -> "State":
        """Open a sealed state for following.

        Raises:
            StateError: it is lost, damaged, or of another version of this program.
            DiskFullError: there is no space for the log of its changes.
        """
        advice = "build anew to make it: shop-directory index build"
        if not path.is_file():
            raise StateError(f"the state of the live generation is lost ({path}): {advice}")
        try:
            db = sqlite3.connect(database_uri(path, "rw"), uri=True, isolation_level=None, check_same_thread=False)
            db.executescript(
                f"PRAGMA busy_timeout = {_BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            )
            state = cls(path, db)
            version, sealed = state.get("version"), state.get("sealed")
        except sqlite3.Error as error:
            raise_if_full(error)
            raise StateError(f"the state {path} is damaged: {advice} --fresh-state") from error
        if version != STATE_VERSION or sealed is None:
            db.close()
            raise StateError(f"the state {path} is unfinished or of another version: {advice} --fresh-state")
        return state

    def seal(self) -> None:
        """Make sure that all of it is on the disk."""
        self.set("sealed", "yes")
        file = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def move(self, path: Path) -> None:
        """Give the open file another name; only before it is sealed, as there is nothing beside it then."""
        self.path.replace(path)
        self.path = path

    def index(self) -> None:
        """Make the indexes, when a whole catalogue has been put."""
        self._db.executescript(INDEXES)

    @property
    def connection(self) -> sqlite3.Connection:
        """The database, for what works on all tables at once."""
        return self._db

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing of what is done within."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk ends it by itself
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def get(self, name: str) -> str | None:
        """A note on the state as a whole."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def set(self, name: str, value: str | None) -> None:
        """Keep a note."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def position(self) -> str | None:
        """How far into the changes these records are."""
        return self.get("position")

    @position.setter
    def position(self, position: str | None) -> None:
        self.set("position", position)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
