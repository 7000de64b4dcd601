"""The directory of states: one file a generation, named like it, so that what is live says which state is current.

A rollback finds the state of the generation that it goes back to. The directory is its owner's alone, and belongs to
one place that generations are written to.
"""

import shutil
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Final

from index_mappings.generations import is_generation
from indexer.state.state import State, StateError

_PLACE_FILE: Final = "place"
_DEAD_LETTERS: Final = "dead-letters.ndjson"
_ENDING: Final = ".sqlite"
# What the directories begin with in which a source is read anew to be compared.
READ_ANEW: Final = "read-anew-"
# No reading takes as long.
_READING_S: Final = 24 * 3_600


class States:
    """State files below one directory."""

    def __init__(self, directory: Path, place: str, *, make: bool = True) -> None:
        """Open or make the directory.

        Args:
            directory: made with mode 0700 where it is missing.
            place: of the sink; a directory that belongs to another one is refused.
            make: whether it is made where it is missing, and marked as the place's; else nothing is written.

        Raises:
            StateError: it is another place's, or can't be used.
        """
        self.directory = directory
        try:
            known = directory / _PLACE_FILE
            if make:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                directory.chmod(0o700)
                if not known.exists():
                    known.write_text(place, encoding="utf-8")
            owner = known.read_text(encoding="utf-8") if make or known.exists() else place
        except OSError as error:
            raise StateError(f"the state directory {directory} cannot be used: {error.strerror}") from error
        if owner != place:
            raise StateError(f"the state directory {directory} belongs to {owner}: name another one for {place}")

    @property
    def dead_letters(self) -> Path:
        """Where refused documents and changes are kept."""
        return self.directory / _DEAD_LETTERS

    def path(self, generation: str) -> Path:
        """A generation's state file."""
        return self.directory / f"{generation}{_ENDING}"

    def has(self, generation: str) -> bool:
        """Whether a generation's state is there."""
        return self.path(generation).is_file()

    def create(self, generation: str) -> State:
        """An empty state for a new generation."""
        return State.create(self.path(generation))

    def open(self, generation: str) -> State:
        """A generation's sealed state."""
        return State.open(self.path(generation))

    def drop(self, generation: str) -> None:
        """Remove a generation's state, as far as it is there."""
        for exit_code in ("", "-journal", "-wal", "-shm"):
            Path(f"{self.path(generation)}{exit_code}").unlink(missing_ok=True)

    def remove_torn(self, now: datetime) -> None:
        """Remove what a reading anew that was killed has left; one at work has no lease, so the age tells."""
        for path in self.directory.glob(f"{READ_ANEW}*"):
            if now.timestamp() - path.stat().st_mtime > _READING_S:
                shutil.rmtree(path, ignore_errors=True)

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove the states of all other generations; returns these."""
        found = {path.name.partition(".")[0] for path in self.directory.iterdir()}
        others = sorted(name for name in found if is_generation(name) and name not in keep)
        for name in others:
            self.drop(name)
        return tuple(others)
