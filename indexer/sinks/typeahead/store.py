"""Where the files of one generation's typeahead are: a local folder, and for a server of indices its documents."""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from index_mappings.typeahead import manifest, segment

# A file that is being written; it gets its name when it is whole.
PART_SUFFIX: Final = ".part"
# Files younger than this may belong to a writer that has not referred to them yet.
GRACE_S: Final = 60.0
_SUFFIXES: Final = (segment.SUFFIX, manifest.SUFFIX, PART_SUFFIX)


class TypeaheadStore(Protocol):
    """The files of one generation's typeahead. Every method may raise OSError or SinkError."""

    @property
    def directory(self) -> Path:
        """The local folder of the files, each by its name and suffix; it exists."""

    def fetch(self, name: str, suffix: str) -> Path:
        """Return the local path of a file after making sure that it is there and whole.

        Args:
            name: SHA-256 of its bytes, in hexadecimal.
            suffix: of its kind, with the dot.

        Raises:
            OSError, ValueError: it is missing or damaged.
        """

    def put(self, path: Path) -> None:
        """Make a file of `directory` durable where readers find it; after that a stamp may lead to it."""

    def tidy(self, keep: Collection[str]) -> None:
        """Remove the files that no reader can still need.

        Args:
            keep: names, without suffixes, of what must stay; whatever is younger than GRACE_S stays too.
        """


class LocalStore:
    """The folder itself is where readers find the files: the embedded engine's store."""

    def __init__(self, directory: Path) -> None:
        """Name the folder, and make it where it is missing."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory

    def fetch(self, name: str, suffix: str) -> Path:
        """Find a file. Whoever reads it compares its bytes with its name."""
        path = self.directory / f"{name}{suffix}"
        path.stat()
        return path

    def put(self, path: Path) -> None:
        """Do nothing: a file gets its name when it is durable."""

    def tidy(self, keep: Collection[str]) -> None:
        """Remove files of the folder."""
        remove_files(self.directory, keep)


def remove_files(directory: Path, keep: Collection[str], grace: float = GRACE_S) -> None:
    """Remove segments, manifests and what killed writers left in a folder.

    Args:
        directory: the folder.
        keep: names, without suffixes, of what must stay.
        grace: files younger than so many seconds stay as well.
    """
    newest = time.time() - grace
    for path in directory.iterdir():
        if path.suffix in _SUFFIXES and path.stem not in keep:
            with suppress(OSError):  # another one may have removed it
                if path.stat().st_mtime <= newest:
                    path.unlink()


def write_named(directory: Path, part: Path, name: str, suffix: str) -> Path:
    """Give a whole and synchronized file its name, so that it survives a loss of power.

    Args:
        directory: its folder.
        part: what it is called so far.
        name: SHA-256 of its bytes.
        suffix: of its kind.
    """
    path = directory / f"{name}{suffix}"
    part.replace(path)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path
