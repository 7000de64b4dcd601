"""One state file: the records of one generation, and its position in the changes (G3).

Only its owner can read it. A change, its pending documents and the position are saved in one transaction, so that a
crash loses none of them.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
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
    """A file's URI for SQLite, with the special characters of its name escaped."""
    return f"file:{quote(str(path))}?mode={mode}"


class StateError(CatalogueError):
    """The state cannot be used; the message says what to do."""


class State:
    """The records of one generation.

    Attributes:
        connection: the database, for statements on several tables.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self.connection = db
        self.shops = StateShops(db)
        self.related_records = StateRelatedRecords(db)
        self.pending = Pending(db)

    @classmethod
    def create(cls, path: Path) -> "State":
        """Create an empty state for a whole catalogue.

        It need not survive a crash before `seal`: a build that is killed starts again.

        Raises:
            StateError: the file cannot be created.
            DiskFullError: the disk is full.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
            # A sink may read the records in another thread, but never in two at the same time.
            db = sqlite3.connect(database_uri(path, "rw"), uri=True, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise_if_full(error)
            raise StateError(f"the state {path} cannot be created: {error}") from error
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        db.executescript(SCHEMA)
        state = cls(path, db)
        state.set("version", STATE_VERSION)
        return state

    @classmethod
    def open(cls, path: Path) -> "State":
        """Open a sealed state for following.

        Raises:
            StateError: it is missing, damaged, or of another version of this program.
            DiskFullError: the disk is full.
        """
        advice = "build again to create it: shop-directory index build"
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
        """Write all of it to the disk, and mark it as complete."""
        self.set("sealed", "yes")
        file = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def move(self, path: Path) -> None:
        """Rename the open file; only before `seal`, as SQLite keeps no other files for it until then."""
        self.path.replace(path)
        self.path = path

    def index(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Create the indexes, after a whole catalogue was stored.

        Args:
            meanwhile: called after each statement, one of which takes some seconds for a million shops.
        """
        for statement in INDEXES:
            self.connection.execute(statement)
            meanwhile()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction, which an error rolls back."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:  # SQLite has rolled back already when the disk is full
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def get(self, name: str) -> str | None:
        """A property of the state as a whole; None if it is not set."""
        row = self.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def set(self, name: str, value: str | None) -> None:
        """Set a property of the state as a whole."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def position(self) -> str | None:
        """The position in the changes."""
        return self.get("position")

    @position.setter
    def position(self, position: str | None) -> None:
        self.set("position", position)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
