"""Follows a file of changes that others append to, from a position that is stored with the applied changes (G3).

Only whole lines are read: a line without its line feed is still being written. A file that was replaced or truncated is
read from its beginning, which is safe, as versions decide; unread lines of the former file are lost until a full build.
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
# Longer than any line, so that each call makes progress.
_BLOCK: Final = 4 * 1024 * 1024
_MARK_BYTES: Final = 1_024
# Bytes in which unread lines are counted; the lines of a larger backlog are not counted to the end.
_BACKLOG_BYTES: Final = 64 * 1024 * 1024

_Count = Annotated[int, Field(ge=0)]


class _Position(BaseModel):
    """A position in the file.

    Attributes:
        offset: the bytes before it.
        line: the lines before it.
        skipping: whether it is within a line that is too long and was refused.
        mark: a digest of the first and the last bytes before it, which identifies the file.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    offset: _Count
    line: _Count
    skipping: bool
    mark: str


class ChangeFile:
    """A growing NDJSON file of changes, which need not exist yet.

    Args:
        path: the file.
        lenient: ignore unknown fields.

    Raises:
        CatalogueError: it is gzipped, so that nothing can be appended.
    """

    kind: Final = "file"
    ended: Final = False

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        if path.name.endswith(".gz"):
            raise CatalogueError(f"{path.name} is gzipped and cannot be followed: write the changes as plain NDJSON")
        self.path = path
        self._lenient = lenient
        self._warned_of: str | None = None

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes; none while the file does not exist.

        Raises:
            CatalogueError: it cannot be read, or is not a regular file.
        """
        try:
            # Checked before opening, which would block on a pipe.
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise CatalogueError(f"{self.path} is no regular file: follow a pipe by standard input")
            with self.path.open("rb") as file:
                return self._read(file, position, limit)
        except FileNotFoundError:
            return ChangeBatch((), (), position, more=False)
        except OSError as error:
            raise CatalogueError(f"{self.path} cannot be read: {error.strerror}") from error

    def describe_position(self, position: str | None) -> str | None:
        """The lines and bytes before it."""
        found = None if position is None else _parsed(position)
        return None if found is None else f"line {found.line}, byte {found.offset}"

    def backlog(self, position: str | None) -> int | None:
        """The whole lines after it; only the first ones of a large backlog are counted."""
        found = None if position is None else _parsed(position)
        lines, remaining = 0, _BACKLOG_BYTES
        try:
            with self.path.open("rb") as file:
                file.seek(0 if found is None else found.offset)
                while remaining > 0 and (block := file.read(min(remaining, _BLOCK))):
                    lines += block.count(b"\n")
                    remaining -= len(block)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise CatalogueError(f"{self.path} cannot be read: {error.strerror}") from error
        return lines

    def close(self) -> None:
        """Do nothing: the file is closed after each read."""

    def _read(self, file: BinaryIO, position: str | None, limit: int) -> ChangeBatch:
        start, first, last = self._resume(file, position)
        cutter = LineCutter(start.line, skipping=start.skipping)
        file.seek(start.offset)
        block = file.read(_BLOCK)
        cutter.feed(block)
        changes, refused = gather(cutter, lambda: False, self.path.name, limit, lenient=self._lenient)
        if not cutter.more and len(block) == _BLOCK:
            cutter.feed(file.read(MAX_LINE + 1))
        # The mark is made of the bytes that were read: those in the file may have been replaced meanwhile.
        consumed = block[: cutter.consumed]
        end = _Position(
            offset=start.offset + len(consumed),
            line=cutter.number,
            skipping=cutter.skipping,
            mark=_mark((first + consumed[:_MARK_BYTES])[:_MARK_BYTES], (last + consumed[-_MARK_BYTES:])[-_MARK_BYTES:]),
        )
        return ChangeBatch(changes, refused, end.model_dump_json() if end.offset else None, cutter.more)

    def _resume(self, file: BinaryIO, position: str | None) -> tuple[_Position, bytes, bytes]:
        """The position with the first and last bytes before it; the beginning if the position is of another file."""
        if position is not None:
            found = _parsed(position)
            if found is not None and found.offset <= os.fstat(file.fileno()).st_size:
                size = min(found.offset, _MARK_BYTES)
                first = file.read(size)
                file.seek(found.offset - size)
                last = file.read(size)
                if _mark(first, last) == found.mark:
                    return found, first, last
            if position != self._warned_of:
                _LOG.warning("%s is not the file that was read before: it is read from its beginning", self.path.name)
            self._warned_of = position
        return _Position(offset=0, line=0, skipping=False, mark=_mark(b"", b"")), b"", b""


def _parsed(position: str) -> _Position | None:
    try:
        return _Position.model_validate_json(position)
    except ValueError:
        return None


def _mark(first: bytes, last: bytes) -> str:
    return hashlib.blake2b(first + last, digest_size=16).hexdigest()
