"""The directory of states: one file for each generation, with the generation's name.

A rollback thus finds the state of its generation. Only the owner can read the directory, which belongs to one location
of generations.
"""

import shutil
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Final

from index_mappings.generations import is_generation
from indexer.state.state import State, StateError

_LOCATION_FILE: Final = "place"
_DEAD_LETTERS: Final = "dead-letters.ndjson"
_KEPT: Final = "kept-from-changes.ndjson"
_SUFFIX: Final = ".sqlite"
# The prefix of the directories in which a source is read again for a comparison.
REREAD_PREFIX: Final = "reread-"
# Longer than any reading takes.
_READING_S: Final = 24 * 3_600


class States:
    """The state files in one directory."""

    def __init__(self, directory: Path, location: str, *, make: bool = True) -> None:
        """Open or create the directory.

        Args:
            directory: created with mode 0700 if it is missing.
            location: of the sink; a directory that belongs to another one is refused.
            make: whether the directory is created and marked with the location; else nothing is written.

        Raises:
            StateError: it belongs to another location, or can't be used.
        """
        self.directory = directory
        try:
            known = directory / _LOCATION_FILE
            if make:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                directory.chmod(0o700)
                if not known.exists():
                    known.write_text(location, encoding="utf-8")
            owner = known.read_text(encoding="utf-8") if make or known.exists() else location
        except OSError as error:
            raise StateError(f"the state directory {directory} cannot be used: {error.strerror}") from error
        if owner != location:
            raise StateError(f"the state directory {directory} belongs to {owner}: name another one for {location}")

    @property
    def dead_letters(self) -> Path:
        """The file of refused documents and changes."""
        return self.directory / _DEAD_LETTERS

    @property
    def kept_listing(self) -> Path:
        """The file that names the records which the last build kept from earlier changes."""
        return self.directory / _KEPT

    def path(self, generation: str) -> Path:
        """A generation's state file."""
        return self.directory / f"{generation}{_SUFFIX}"

    def has(self, generation: str) -> bool:
        """Whether a generation's state exists."""
        return self.path(generation).is_file()

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
