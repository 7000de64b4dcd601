"""Reading files of texts back: for whoever writes the next one, and to see whether they say what they must."""

import mmap
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from index_mappings.typeahead import Moment, Part, Shown, read_table, texts_path

# Ids of shops, ascending, and their numbers.
Ids = tuple[np.ndarray[tuple[int], np.dtype[np.bytes_]], np.ndarray[tuple[int], np.dtype[np.int32]]]

_WORD: Final = 32
# Files whose checksum need not be looked at again.
_KNOWN: Final = 16


class Texts:
    """A file of texts, mapped into memory."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            OSError, ValueError: it is not there, or not as it was written.
        """
        with path.open("rb") as file:
            told = path.stat()
            self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._parts = _parts(path, told.st_ino, told.st_size, told.st_mtime_ns)

    def ids(self) -> Ids:
        """The ids of its shops, ascending, and their numbers."""
        return self._array("ids"), self._array("numbers")

    def notes(self) -> bytes:
        """What was noted in it."""
        return self._array("notes").tobytes()

    def gone(self) -> set[int]:
        """The numbers of the base's shops that it replaces or removes."""
        bits = np.unpackbits(self._array("gone").view(np.uint8), bitorder="little")
        return set(np.flatnonzero(bits).tolist())

    def shown(self, after: str, end: str | None, gone: set[int]) -> dict[str, Shown]:
        """What is shown of the shops after one id up to another, but of those that are gone."""
        ids, numbers = self.ids()
        first = int(np.searchsorted(ids, after.encode(), "right"))
        last = len(ids) if end is None else int(np.searchsorted(ids, end.encode(), "right"))
        ends, start = self._array("shown_ends"), self._parts["shown"].start
        found: dict[str, Shown] = {}
        for number in numbers[first:last].tolist():
            if number not in gone:
                shown = orjson.loads(self._data[start + ends[number] : start + ends[number + 1]])
                found[shown[0]] = tuple(shown)
        return found

    def _array(self, name: str) -> np.ndarray[tuple[int], np.dtype[Any]]:
        part = self._parts[name]
        return np.frombuffer(self._data, part.dtype, part.size, part.start)


def read_shown(directory: Path, moment: Moment, after: str, end: str | None) -> dict[str, Shown]:
    """What key presses show at a moment of the shops after one id up to another; None for all that follow.

    Raises:
        OSError, ValueError: that can't be read.
    """
    base = Texts(texts_path(directory, moment.base))
    if moment.changes is None:
        return base.shown(after, end, set())
    changes = Texts(texts_path(directory, moment.changes))
    return base.shown(after, end, changes.gone()) | changes.shown(after, end, set())


@lru_cache(maxsize=_KNOWN)
def _parts(path: Path, inode: int, size: int, changed_ns: int) -> dict[str, Part]:
    """Where the arrays of a file are; looks at all of it, which a page of a comparison can't do each time."""
    del inode, size, changed_ns  # another one is another file
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        data = memoryview(mapped)
        try:
            return read_table(data)[1]
        finally:
            data.release()
