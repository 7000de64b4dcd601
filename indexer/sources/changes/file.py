"""A file of changes that others append to, followed from a place that is kept with what was applied (G3).

Only whole lines are read: one without its line feed is being written. A file that was replaced or cut short is read
from its beginning, which does no harm, as versions decide; what nobody had read of the former one is gone, and found
again by a full build.
"""

import hashlib
import logging
import os
import stat
from pathlib import Path
from typing import Annotated, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, Field

from indexer.records.problems import CatalogueError
from indexer.sources.changes.records import gather
from indexer.sources.lines import MAX_LINE, LineCutter
from indexer.sources.protocol import ChangeBatch

_LOG: Final = logging.getLogger(__name__)
# Longer than any line, so that each call gets on.
_BLOCK: Final = 4 * 1024 * 1024
_SEEN: Final = 1_024
# What is gone through to count the lines that wait: a larger backlog is told as one of so many lines.
_COUNTED: Final = 64 * 1024 * 1024

_Count = Annotated[int, Field(ge=0)]


class _Position(BaseModel):
    """A place in the file.

    Attributes:
        offset: the bytes before it.
        line: the lines before it.
        skipping: whether it is within a line that is too long and was refused.
        mark: of the first and the last bytes before it, by which the file is known again.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    offset: _Count
    line: _Count
    skipping: bool
    mark: str


class ChangeFile:
    """A growing NDJSON file of changes, which need not be there yet.

    Args:
        path: the file.
        lenient: pass over unknown fields.

    Raises:
        CatalogueError: it is gzipped, so that nobody can append to it.
    """

    kind: Final = "file"
    ended: Final = False

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        if path.name.endswith(".gz"):
            raise CatalogueError(f"{path.name} is gzipped and cannot be followed: write the changes as plain NDJSON")
        self._path = path
        self._lenient = lenient
        self._told: str | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return self._path.name

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def read(self, position: str | None, most: int) -> ChangeBatch:
        """The next changes; none while the file is not there.

        Raises:
            CatalogueError: it cannot be read, or is no file.
        """
        try:
            # Asked before it is opened: a pipe would be waited for.
            if not stat.S_ISREG(self._path.stat().st_mode):
                raise CatalogueError(f"{self._path} is no regular file: follow a pipe by standard input")
            with self._path.open("rb") as file:
                return self._read(file, position, most)
        except FileNotFoundError:
            return ChangeBatch((), (), position, more=False)
        except OSError as error:
            raise CatalogueError(f"{self._path} cannot be read: {error.strerror}") from error

    def whereabouts(self, position: str | None) -> str | None:
        """Lines and bytes before it."""
        place = None if position is None else _parsed(position)
        return None if place is None else f"line {place.line}, byte {place.offset}"

    def waiting(self, position: str | None) -> int | None:
        """The whole lines behind it; of a large backlog only the first ones are counted."""
        place = None if position is None else _parsed(position)
        lines, left = 0, _COUNTED
        try:
            with self._path.open("rb") as file:
                file.seek(0 if place is None else place.offset)
                while left > 0 and (block := file.read(min(left, _BLOCK))):
                    lines += block.count(b"\n")
                    left -= len(block)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise CatalogueError(f"{self._path} cannot be read: {error.strerror}") from error
        return lines

    def close(self) -> None:
        """Nothing is held open between two reads."""

    def _read(self, file: BinaryIO, position: str | None, most: int) -> ChangeBatch:
        begun, first, last = self._found_again(file, position)
        cutter = LineCutter(begun.line, skipping=begun.skipping)
        file.seek(begun.offset)
        block = file.read(_BLOCK)
        cutter.feed(block)
        changes, refused = gather(cutter, lambda: False, self.name, most, lenient=self._lenient)
        if not cutter.more and len(block) == _BLOCK:
            cutter.feed(file.read(MAX_LINE + 1))
        # The mark is of the bytes that were read, not of those that may have taken their place meanwhile.
        consumed = block[: cutter.consumed]
        now = _Position(
            offset=begun.offset + len(consumed),
            line=cutter.number,
            skipping=cutter.skipping,
            mark=_mark((first + consumed[:_SEEN])[:_SEEN], (last + consumed[-_SEEN:])[-_SEEN:]),
        )
        return ChangeBatch(changes, refused, now.model_dump_json() if now.offset else None, cutter.more)

    def _found_again(self, file: BinaryIO, position: str | None) -> tuple[_Position, bytes, bytes]:
        """The place with the first and the last bytes before it; the beginning when this is not its file."""
        if position is not None:
            place = _parsed(position)
            if place is not None and place.offset <= os.fstat(file.fileno()).st_size:
                seen = min(place.offset, _SEEN)
                first = file.read(seen)
                file.seek(place.offset - seen)
                last = file.read(seen)
                if _mark(first, last) == place.mark:
                    return place, first, last
            if position != self._told:
                _LOG.warning("%s is not the file that was read before: it is read from its beginning", self.name)
            self._told = position
        return _Position(offset=0, line=0, skipping=False, mark=_mark(b"", b"")), b"", b""


def _parsed(position: str) -> _Position | None:
    try:
        return _Position.model_validate_json(position)
    except ValueError:
        return None


def _mark(first: bytes, last: bytes) -> str:
    return hashlib.blake2b(first + last, digest_size=16).hexdigest()
