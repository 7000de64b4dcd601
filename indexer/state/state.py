"""The directory of states: a private SQLite file for each generation, with the generation's name (G3).

A state has the records of one generation, its position in the changes, and the pending documents: those to be written
or removed in the engine because their records changed. A change, its pending documents and the position are saved in
one transaction, so that a crash loses none of them. A rollback finds the state of its generation. Only the owner can
read the directory, which belongs to one location of generations.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from index_mappings.generations import MissingChanges, is_generation
from indexer.disk_space import raise_if_full
from indexer.records.problems import CatalogueError
from indexer.state.migration import FORMER_VERSION, MARKS_FILE, MARKS_TABLE, adopt_former_marks, migrate
from indexer.state.public_records import PublicRecords
from indexer.state.rows import StateRows, database_uri, read_only
from shop_directory.durable_files import synchronise

STATE_VERSION: Final = "2"
# Properties: the position in the source's changes, and the size of the file of marks that was applied.
POSITION: Final = "position"
MARKS_POSITION: Final = "marks_position"
# The position of the former state whose records were taken over.
FORMER_POSITION: Final = "former_position"
MISSING_CHANGES: Final = "missing_changes"

SCHEMA: Final = f"""
{MARKS_TABLE}
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE shops (
    id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, number INTEGER NOT NULL, origin INTEGER NOT NULL,
    line INTEGER NOT NULL, presence INTEGER NOT NULL, shown INTEGER NOT NULL, rank TEXT, domain TEXT, record TEXT
);
CREATE TABLE winners (
    id TEXT PRIMARY KEY, rank TEXT NOT NULL, domain TEXT NOT NULL, line INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE category_names (slug TEXT, name TEXT, shops INTEGER NOT NULL, PRIMARY KEY (slug, name)) WITHOUT ROWID;
CREATE TABLE belongings (
    type TEXT NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL, origin INTEGER NOT NULL,
    line INTEGER NOT NULL, presence INTEGER NOT NULL, owner TEXT, other TEXT, rank TEXT, record TEXT, UNIQUE (type, key)
);
CREATE TABLE pending (kind TEXT, id TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID;
"""
# Created after a whole catalogue was stored: filling a table is faster without them.
INDEXES: Final = (
    "CREATE INDEX claims ON shops (domain, rank) WHERE shown",
    "CREATE INDEX owned ON belongings (owner, type, rank)",
    "CREATE INDEX redirected ON belongings (other) WHERE other IS NOT NULL",
)

# Not a kind of document: shops that are no longer public, all of whose coupons and offers are removed.
REMOVED_SHOPS: Final = "unseated"
# Not a kind of document either: the accounts in the operations document, which is written as a whole.
ACCOUNTS: Final = "resource_accounts"
_SKIPPED: Final = "skipped"
_LOCATION_FILE: Final = "place"
_DEAD_LETTERS: Final = "dead-letters.ndjson"
_KEPT: Final = "kept-from-changes.ndjson"
_SUFFIX: Final = ".sqlite"
# The prefix of the directories in which a source is read again for a comparison.
REREAD_PREFIX: Final = "reread-"
# Longer than any reading takes.
_READING_S: Final = 24 * 3_600
_PRIVATE: Final = 0o600
# SQLITE_ERROR, of a table that is missing, SQLITE_CORRUPT and SQLITE_NOTADB; other errors say nothing of the content.
_DAMAGE: Final = frozenset((1, 11, 26))
_BUSY_MS: Final = 30_000


class Pending:
    """The pending documents by kind and id; they are cleared after the engine's refresh."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, kind: str, document_id: str) -> None:
        """Add one document."""
        self._db.execute("INSERT OR IGNORE INTO pending VALUES (?, ?)", (kind, document_id))

    def add_owned(self, kind: str, shop_id: str) -> None:
        """Add all coupons or offers of a shop."""
        statement = "INSERT OR IGNORE INTO pending SELECT type, key FROM belongings WHERE type = ? AND owner = ?"
        self._db.execute(statement, (kind, shop_id))

    def batches(self, kind: str, size: int) -> Iterator[Sequence[str]]:
        """The ids of one kind in order, in lists of at most `size`."""
        after = ""
        query = "SELECT id FROM pending WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        while ids := [found for (found,) in self._db.execute(query, (kind, after, size))]:
            yield ids
            after = ids[-1]

    def count(self) -> int:
        """The number of pending documents."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM pending").fetchone()
        return int(count)

    def has(self, kind: str, document_id: str | None = None) -> bool:
        """Whether a document of this kind is pending, or the one with this id."""
        query = "SELECT 1 FROM pending WHERE kind = ?1 AND (?2 IS NULL OR id = ?2) LIMIT 1"
        return self._db.execute(query, (kind, document_id)).fetchone() is not None

    def clear(self, kind: str | None = None) -> None:
        """Clear the documents of a kind, or all of them."""
        self._db.execute("DELETE FROM pending WHERE ?1 IS NULL OR kind = ?1", (kind,))


def is_damage(error: Exception) -> bool:
    """Whether an error says that the content of a file is wrong, and not that it can't be read or written now."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


class StateError(CatalogueError):
    """The state cannot be used; the message says what to do."""


class State:
    """The records of one generation; `connection` is for statements on several tables."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self.connection = db
        self.rows = StateRows(db)
        self.public = PublicRecords(db)
        self.pending = Pending(db)

    @classmethod
    def create(cls, path: Path) -> "State":
        """Create an empty state for a whole catalogue.

        It need not survive a crash before `seal`: a build that is killed starts again.
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
        """Open a sealed state; StateError if it is missing, damaged, or of another version of this program."""
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
            if version == FORMER_VERSION and sealed is not None:
                migrate(path, db)
                version = state.get("version")
        except sqlite3.Error as error:
            raise_if_full(error)
            if not is_damage(error):
                raise StateError(
                    f"the state {path} cannot be opened ({error}): check that this user may read and write it and its"
                    " directory, and the disk"
                ) from error
            raise StateError(f"the state {path} is damaged: {advice} --fresh-state") from error
        if version != STATE_VERSION or sealed is None:
            db.close()
            raise StateError(f"the state {path} is unfinished or of another version: {advice} --fresh-state")
        return state

    def seal(self) -> None:
        """Write all of it to the disk, and mark it as complete."""
        self.set("sealed", "yes")
        synchronise(self.path)
        synchronise(self.path.parent)

    def move(self, path: Path) -> None:
        """Rename the open file; only before `seal`, as SQLite keeps no other files for it until then."""
        self.path.replace(path)
        self.path = path

    def index(self, tick: Callable[[], None] = lambda: None) -> None:
        """Create the indexes, after a whole catalogue was stored.

        `tick` is called after each statement, one of which takes some seconds for a million shops.
        """
        for statement in INDEXES:
            self.connection.execute(statement)
            tick()

    @contextmanager
    def transaction(self, *, undone: bool = False) -> Iterator[None]:
        """Run the block in a transaction, or as a part of a running one.

        An error rolls the transaction back; with `undone` its end does so as well.
        """
        is_outer = not self.connection.in_transaction
        if is_outer:
            self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if is_outer and self.connection.in_transaction:  # SQLite has rolled back already when the disk is full
                self.connection.execute("ROLLBACK")
            raise
        if is_outer:
            self.connection.execute("ROLLBACK" if undone else "COMMIT")

    def get(self, name: str) -> str | None:
        """A property of the state as a whole; None if it is not set."""
        row = self.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def set(self, name: str, value: str | None) -> None:
        """Set a property of the state as a whole."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def marks(self) -> Path:
        """The file of the marks of `index hide`, which all states of a directory read."""
        return self.path.with_name(MARKS_FILE)

    @property
    def position(self) -> str | None:
        """The position in the changes."""
        return self.get(POSITION)

    @position.setter
    def position(self, position: str | None) -> None:
        self.set(POSITION, position)

    def is_marked(self, shop_id: str) -> bool:
        """Whether `index hide` has hidden a shop, as far as this state knows."""
        return self.connection.execute("SELECT 1 FROM marks WHERE key = ?", (shop_id,)).fetchone() is not None

    @property
    def missing(self) -> MissingChanges | None:
        """The changes that could not be read; None if all were."""
        stored = self.get(MISSING_CHANGES)
        return None if stored is None else MissingChanges(**json.loads(stored))

    @missing.setter
    def missing(self, missing: MissingChanges | None) -> None:
        self.set(MISSING_CHANGES, None if missing is None else json.dumps(asdict(missing)))

    @property
    def skipped(self) -> Mapping[str, Any] | None:
        """The number of bad `records` that the build left out, and of their problems by `reasons`; None if unknown."""
        stored = self.get(_SKIPPED)
        return None if stored is None else json.loads(stored)

    @skipped.setter
    def skipped(self, skipped: Mapping[str, Any] | None) -> None:
        self.set(_SKIPPED, None if skipped is None else json.dumps(skipped))

    @property
    def logo_hosts(self) -> tuple[str, ...]:
        """The hosts besides a shop's own on which its logo may be, the same for all documents of the generation."""
        return tuple((self.get("logo_hosts") or "").split())

    @logo_hosts.setter
    def logo_hosts(self, hosts: Sequence[str]) -> None:
        self.set("logo_hosts", " ".join(hosts))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class States:
    """The state files in one directory."""

    def __init__(self, directory: Path, location: str, *, make: bool = True) -> None:
        """Open the directory; create it, and mark it with the sink's location, unless `make` is false.

        Raises StateError if it belongs to another location, or can't be used.
        """
        self.directory = directory
        # Refused documents and changes, records that the last build kept from earlier changes, marks of `index hide`.
        self.dead_letters, self.kept_listing = directory / _DEAD_LETTERS, directory / _KEPT
        self.marks = directory / MARKS_FILE
        try:
            known = directory / _LOCATION_FILE
            if make:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                directory.chmod(0o700)
                if not known.exists():
                    known.write_text(location, encoding="utf-8")
                adopt_former_marks(directory)
            owner = known.read_text(encoding="utf-8") if make or known.exists() else location
        except OSError as error:
            raise StateError(f"the state directory {directory} cannot be used: {error.strerror}") from error
        if owner != location:
            raise StateError(f"the state directory {directory} belongs to {owner}: name another one for {location}")

    def path(self, generation: str) -> Path:
        """A generation's state file."""
        return self.directory / f"{generation}{_SUFFIX}"

    def has(self, generation: str) -> bool:
        """Whether a generation's state exists."""
        return self.path(generation).is_file()

    def newest_sealed(self) -> str | None:
        """The last generation whose state is complete; None if there is none."""
        for path in sorted(self.directory.glob(f"*{_SUFFIX}"), reverse=True):
            with suppress(StateError):
                State.open(path).close()
                return path.stem
        return None

    def skipped(self, generation: str) -> Mapping[str, Any] | None:
        """What the build of a generation left out, as `State.skipped`; None if its state is lost or can't be read.

        Changes no file, unlike `open`.
        """
        with suppress(sqlite3.Error, ValueError), closing(read_only(self.path(generation))) as db:
            return State(self.path(generation), db).skipped
        return None

    def create(self, generation: str) -> State:
        """Create an empty state for a new generation."""
        return State.create(self.path(generation))

    def open(self, generation: str) -> State:
        """Open a generation's sealed state."""
        return State.open(self.path(generation))

    def drop(self, generation: str) -> None:
        """Remove a generation's state, if it exists."""
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{self.path(generation)}{suffix}").unlink(missing_ok=True)

    def remove_torn(self, now: datetime) -> None:
        """Remove the files of killed comparisons, recognised by their age, as a comparison holds no lease."""
        for path in self.directory.glob(f"{REREAD_PREFIX}*"):
            if now.timestamp() - path.stat().st_mtime > _READING_S:
                shutil.rmtree(path, ignore_errors=True)

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove the states of all other generations; returns these."""
        found = {path.name.partition(".")[0] for path in self.directory.iterdir()}
        others = sorted(name for name in found if is_generation(name) and name not in keep)
        for name in others:
            self.drop(name)
        return tuple(others)
