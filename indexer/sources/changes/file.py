"""Follows a file of changes that others append to, from a position that is stored with the applied changes (G3).

Only whole lines are read: a line without its line feed is still being written. After a rotation the rotated file is
read to its end first, if it is in the same folder and its name begins with the new file's. Any other file that replaces
the former one is read from its beginning, which is safe, as versions decide; unread lines of the former file are then
missing until a full build.
"""

import glob
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
        rotated = self._rotated(position)
        if rotated is None:
            return self._read_from(self.path, position, limit)
        unread = self._read_from(rotated, position, limit)
        if unread.more or unread.position != position:
            return unread
        following = self._read_from(self.path, None, limit)
        # While the new file has no lines, the rotated one may still be written.
        return unread if following.position is None else following

    def describe_position(self, position: str | None) -> str | None:
        """The lines and bytes before it."""
        found = None if position is None else _parsed(position)
        return None if found is None else f"line {found.line}, byte {found.offset}"

    def backlog(self, position: str | None) -> int | None:
        """The whole lines after it; only the first ones of a large backlog are counted."""
        found = None if position is None else _parsed(position)
        offset = 0 if found is None else found.offset
        rotated = self._rotated(position)
        unread = ((self.path, offset),) if rotated is None else ((rotated, offset), (self.path, 0))
        lines, remaining = 0, _BACKLOG_BYTES
        for path, start in unread:
            try:
                with path.open("rb") as file:
                    file.seek(start)
                    while remaining > 0 and (block := file.read(min(remaining, _BLOCK))):
                        lines += block.count(b"\n")
                        remaining -= len(block)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
        return lines

    def close(self) -> None:
        """Do nothing: the file is closed after each read."""

    def _rotated(self, position: str | None) -> Path | None:
        """The file in the same folder that a position is of; None if it is of the followed one, or of neither."""
        found = None if position is None else _parsed(position)
        if found is None or _is_of(found, self.path):
            return None
        others = sorted(self.path.parent.glob(f"{glob.escape(self.path.name)}?*"))
        return next((other for other in others if _is_of(found, other)), None)

    def _read_from(self, path: Path, position: str | None, limit: int) -> ChangeBatch:
        try:
            # Checked before opening, which would block on a pipe.
            if not stat.S_ISREG(path.stat().st_mode):
                raise CatalogueError(f"{path} is no regular file: follow a pipe by standard input")
            with path.open("rb") as file:
                return self._read(file, path.name, position, limit)
        except FileNotFoundError:
            return ChangeBatch((), (), position, more=False)
        except OSError as error:
            raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error

    def _read(self, file: BinaryIO, name: str, position: str | None, limit: int) -> ChangeBatch:
        start, first, last = self._resume(file, position)
        cutter = LineCutter(start.line, skipping=start.skipping)
        file.seek(start.offset)
        block = file.read(_BLOCK)
        cutter.feed(block)
        changes, refused = gather(cutter, lambda: False, name, limit, lenient=self._lenient)
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
            if found is not None and (ends := _ends_before(found, file)) is not None:
                return found, *ends
            if position != self._warned_of:
                _LOG.warning(
                    "%s is not the file that was read before, and its folder does not have that one: it is "
                    "read from its beginning. Changes of the former file that were not read "
                    "are missing until a full build",
                    self.path.name,
                )
            self._warned_of = position
        return _Position(offset=0, line=0, skipping=False, mark=_mark(b"", b"")), b"", b""


def _is_of(position: _Position, path: Path) -> bool:
    """Whether a position is of this file; not if it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            return _ends_before(position, file) is not None
    except OSError:
        return False


def _ends_before(position: _Position, file: BinaryIO) -> tuple[bytes, bytes] | None:
    """The first and the last bytes before a position; None if it is of another file."""
    if position.offset > os.fstat(file.fileno()).st_size:
        return None
    size = min(position.offset, _MARK_BYTES)
    file.seek(0)
    first = file.read(size)
    file.seek(position.offset - size)
    last = file.read(size)
    return (first, last) if _mark(first, last) == position.mark else None


def _parsed(position: str) -> _Position | None:
    try:
        return _Position.model_validate_json(position)
    except ValueError:
        return None


def _mark(first: bytes, last: bytes) -> str:
    return hashlib.blake2b(first + last, digest_size=16).hexdigest()
