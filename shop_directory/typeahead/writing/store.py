"""Storage of the files of a generation's typeahead: a local folder, and with OpenSearch also documents of an index."""

import itertools
import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from shop_directory.durable_files import synchronise
from shop_directory.typeahead import manifest, segment
from shop_directory.typeahead.manifest import TypeaheadManifest, file_hash

# The suffix of a file that is being written; it is renamed when it is complete.
PART_SUFFIX: Final = ".part"
# Younger files may belong to a writer whose manifest does not name them yet.
GRACE_S: Final = 60.0
_SUFFIXES: Final = (segment.SUFFIX, manifest.SUFFIX, PART_SUFFIX)
_COUNTER: Final = itertools.count()
# A segment of this weight (`merging.weight`) has ten to sixteen million shops. Shops are numbered by the 24 bits of an
# int32 above a posting's marks, and the items of all lists by an int32. Each segment adds its own cost to a request
# (docs/scale.md), so this is close to these limits.
_SEGMENT_TEXTS: Final = 128_000_000


class TypeaheadStore:
    """The files of a generation's typeahead in a local folder, which readers of the embedded engine use themselves.

    Methods may raise OSError, or what another store does. `segment_texts` is the maximum weight of a written segment.
    """

    segment_texts: int = _SEGMENT_TEXTS

    def __init__(self, directory: Path) -> None:
        """Create the folder if it is missing; the path of a file is its name and suffix."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory

    def fetch(self, name: str, suffix: str) -> Path:
        """Return the local path of a file, whose reader checks its hash.

        Raises OSError or ValueError if it is missing or damaged.
        """
        path = self.directory / f"{name}{suffix}"
        path.stat()
        return path

    def put(self, path: Path) -> None:
        """Make a file of `directory` durable where readers find it, so that a stamp may refer to it."""

    def tidy(self, needed: Collection[str]) -> None:
        """Remove segments, manifests and temporary files of killed writers from the local folder.

        Those younger than GRACE_S stay, and those of the names `needed`, without suffixes.
        """
        newest = time.time() - GRACE_S
        for path in self.directory.iterdir():
            if path.suffix in _SUFFIXES and path.stem not in needed:
                with suppress(OSError):  # another process may have removed it
                    if path.stat().st_mtime <= newest:
                        path.unlink()

    def manifest(self, name: str) -> TypeaheadManifest:
        """Read a manifest. Raises OSError or ValueError if it is missing or damaged."""
        return TypeaheadManifest.from_bytes(self.fetch(name, manifest.SUFFIX).read_bytes(), name)

    def damaged(self, manifest_name: str, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """The files of a manifest, itself included, that are missing or damaged where readers find them.

        Reads all of them. `check` is called often; its errors are raised.
        """
        try:
            path = self._verified(manifest_name, manifest.SUFFIX, check)
            files = TypeaheadManifest.from_bytes(path.read_bytes(), manifest_name).files()
        except (OSError, ValueError):
            return (f"{manifest_name}{manifest.SUFFIX}",)
        found: list[str] = []
        for name in files:
            try:
                self._verified(name, segment.SUFFIX, check)
            except (OSError, ValueError):
                found.append(f"{name}{segment.SUFFIX}")
        return tuple(found)

    def _verified(self, name: str, suffix: str, check: Callable[[], None]) -> Path:
        """The path of a whole copy of a file as readers find it; OSError or ValueError if it is missing or damaged."""
        check()
        path = self.fetch(name, suffix)
        if file_hash(path) != name:
            raise ValueError("a file of the typeahead is damaged")
        return path


def write_file(directory: Path, suffix: str, write: Callable[[IO[bytes]], object]) -> Path:
    """Write a durable file, completely or not at all; it is named by the SHA-256 of what `write` writes."""
    part = directory / f"{os.getpid()}-{next(_COUNTER)}{PART_SUFFIX}"
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        return write_named(directory, part, file_hash(part), suffix)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_named(directory: Path, part: Path, name: str, suffix: str) -> Path:
    """Rename a complete and synchronized file to its final name, so that it survives a loss of power."""
    path = directory / f"{name}{suffix}"
    part.replace(path)
    synchronise(directory)
    return path
