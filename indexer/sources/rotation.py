"""The files of a log that is rotated, in the order in which they were written (G3).

Rotation renames the log (`changes.ndjson.1`, `.2`, `-20261124`), and may compress it then. A number grows with the age
of its file, a date falls.
"""

import bz2
import gzip
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, cast

_SUFFIX: Final = re.compile(r"[-._]\d[\dTZ:+._-]*")
_NUMBER: Final = re.compile(r"\.(\d{1,4})")
_YEAR_DIGITS: Final = 4
_OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_COMPRESSED: Final = (*_OPENERS, ".zst", ".lz4", ".Z", ".zip")
_DAMAGE: Final = (EOFError, zlib.error, lzma.LZMAError, OSError)


class UnreadableFileError(Exception):
    """A file of the rotation is damaged, or compressed in a way that can't be read."""


class LogFile:
    """An open file of a log, which stays readable while it is renamed or removed."""

    def __init__(self, path: Path) -> None:
        """Open a regular file, whose `stat` is of that time; OSError if that fails."""
        self._suffix = next((suffix for suffix in _COMPRESSED if path.name.endswith(suffix)), "")
        self._raw = path.open("rb")
        self.stat = os.fstat(self._raw.fileno())

    @cached_property
    def plain(self) -> BinaryIO:
        """The file, decompressed into a private temporary file if necessary; UnreadableFileError."""
        if not self._suffix:
            return self._raw
        if self._suffix not in _OPENERS:
            raise UnreadableFileError
        unpacked = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - `close` closes it
        try:
            self._raw.seek(0)
            with _OPENERS[self._suffix](self._raw) as compressed:
                shutil.copyfileobj(compressed, unpacked)
            unpacked.flush()
        except _DAMAGE as error:
            unpacked.close()
            raise UnreadableFileError from error
        return unpacked

    @property
    def size(self) -> int:
        """The size of its content."""
        return os.fstat(self.plain.fileno()).st_size

    @property
    def modified_ns(self) -> int:
        """The time of its last change, which compression keeps."""
        return os.fstat(self._raw.fileno()).st_mtime_ns

    def close(self) -> None:
        """Close it."""
        self._raw.close()
        if "plain" in self.__dict__:
            self.plain.close()


@dataclass(frozen=True, slots=True)
class Rotated:
    """A file that rotation has renamed: the part of its name that says its age, and what the file system says of it.

    `order` is None for another name that begins with the log's, such as `changes.ndjson.old`.
    """

    path: Path
    order: tuple[int, ...] | None
    is_numbered: bool
    modified_ns: int
    inode: int
    is_compressed: bool

    @property
    def number(self) -> int | None:
        """The number in its name, which is 1 or 0 for the newest file."""
        return -self.order[0] if self.order is not None and self.is_numbered else None

    def open(self) -> LogFile | None:
        """Open it; None if that fails."""
        with suppress(OSError):
            return LogFile(self.path)
        return None


def rotated_files(path: Path) -> list[Rotated]:
    """The files that a rotation of the log made, oldest first; of a file that is being compressed, the former one.

    Where their names have several forms, or a form that does not say the order, the times of their last change decide.
    """
    found = {one.path.name: one for one in _siblings(path) if one.order is not None}
    files = [one for one in found.values() if not (one.is_compressed and one.path.stem in found)]
    forms = {(one.is_numbered, len(one.order or ())) for one in files}
    says_order = len(forms) == 1 and all(one.is_numbered or _is_dated(one.order or ()) for one in files)
    return sorted(files, key=lambda one: (one.order or ()) if says_order else (one.modified_ns,))


def other_copies(path: Path) -> list[Rotated]:
    """Other files whose names begin with the log's."""
    return [one for one in _siblings(path) if one.order is None]


def _is_dated(order: tuple[int, ...]) -> bool:
    """Whether digits begin with a year, or are one number with one, such as 20261124 or seconds since 1970."""
    return bool(order) and order[0] >= 10 ** (_YEAR_DIGITS - 1)


def has_holes(files: Sequence[Rotated]) -> bool:
    """Whether numbers between those of the files, or between the last of them and the log, are missing."""
    numbers = [one.number for one in files if one.number is not None]
    if len(numbers) < len(files) or not numbers:
        return False
    return numbers[-1] > 1 or any(older - newer != 1 for older, newer in pairwise(numbers))


def _siblings(path: Path) -> Iterator[Rotated]:
    for other in sorted(path.parent.glob(f"{escape(path.name)}?*")):
        with suppress(OSError):
            found = other.stat()
            if not other.is_file():
                continue
            compression = next((suffix for suffix in _COMPRESSED if other.name.endswith(suffix)), "")
            suffix = other.name.removeprefix(path.name).removesuffix(compression)
            order: tuple[int, ...] | None = None
            number = _NUMBER.fullmatch(suffix)
            if number is not None:
                order = (-int(number[1]),)
            elif _SUFFIX.fullmatch(suffix):
                order = tuple(map(int, re.findall(r"\d+", suffix)))
            yield Rotated(
                other, order, number is not None, found.st_mtime_ns, found.st_ino, is_compressed=bool(compression)
            )
