"""Follows a file of changes that others append to, from a position that is stored with the applied changes (G3).

Only whole lines are read: a line without its line feed is still being written. Files stay open until they were read
to their end, so that nothing is lost when a file is replaced, even several times. After a restart of the process the
former file is looked for in the same folder, under a name that begins with the new file's. If it is not there, the new
file is read from its beginning, which is safe, as versions decide; unread lines of the former file are then missing
until a full build.
"""

import glob
import hashlib
import logging
import os
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, Field

from indexer.records.problems import CatalogueError
from indexer.sources.changes.change_lines import gather
from indexer.sources.lines import MAX_LINE, LineCutter, warn_of_blank_lines
from indexer.sources.protocol import ChangeBatch

_LOG: Final = logging.getLogger(__name__)
# Longer than any line, so that each call makes progress.
_BLOCK: Final = 4 * 1024 * 1024
_MARK_BYTES: Final = 1_024
# Bytes in which unread lines are counted; the lines of a larger backlog are not counted to the end.
_BACKLOG_BYTES: Final = 64 * 1024 * 1024
# Files that were replaced before they were read to their end, the newest one included.
_MAX_OPEN: Final = 64

_Count = Annotated[int, Field(ge=0)]


class _Position(BaseModel):
    """The offset and line of a position; `mark`, a digest of the bytes around it, identifies the file."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    offset: _Count
    line: _Count
    skipping: bool
    mark: str


class ChangeFile:
    """A growing NDJSON file of changes, which need not exist yet.

    A gzipped file raises CatalogueError, as nothing can be appended to it.
    """

    kind: Final = "file"
    ended: Final = False

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        self._files: list[BinaryIO] = []  # in the order of their arrival
        if path.name.endswith(".gz"):
            raise CatalogueError(f"{path.name} is gzipped and cannot be followed: write the changes as plain NDJSON")
        self.path = path
        self._lenient = lenient
        self._warned_of: str | None = None
        self._warned_of_many = False
        self._blank = 0

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes; none while the file does not exist, CatalogueError if it is no regular file."""
        files = self._open_from(position)
        for file in files:
            start = position if file is files[0] or _holds(position, file) else None
            try:
                batch = self._read(file, start, limit)
            except OSError as error:
                raise CatalogueError(f"{self.path} cannot be read: {error.strerror}") from error
            # While a later file has no lines, an earlier one may still be written.
            if batch.position not in {None, position} or (batch.more and file is files[-1]):
                return batch
        return ChangeBatch((), (), position, more=False)

    def describe_position(self, position: str | None) -> str | None:
        """The lines and bytes before it."""
        found = None if position is None else _parsed(position)
        return None if found is None else f"line {found.line}, byte {found.offset}"

    def backlog(self, position: str | None) -> int | None:
        """The whole lines after it; only the first ones of a large backlog are counted."""
        lines, remaining = 0, _BACKLOG_BYTES
        for file in self._open_from(position):
            found = None if position is None else _parsed(position)
            file.seek(found.offset if found is not None and _holds(position, file) else 0)
            try:
                while remaining > 0 and (block := file.read(min(remaining, _BLOCK))):
                    lines += block.count(b"\n")
                    remaining -= len(block)
            except OSError as error:
                raise CatalogueError(f"{self.path} cannot be read: {error.strerror}") from error
        return lines

    def close(self) -> None:
        """Close the files. A later read opens what is then at the path."""
        while self._files:
            self._files.pop().close()

    def __del__(self) -> None:
        """Close the files also where a reader of a single batch did not."""
        self.close()

    def _open_from(self, position: str | None) -> list[BinaryIO]:
        """The open files from the one that a position is of to the newest; those before it are closed."""
        self._open_newest()
        if position is not None:
            if not any(_holds(position, file) for file in self._files) and (rotated := self._rotated(position)):
                self._files.insert(0, rotated)
            if any(_holds(position, file) for file in self._files):
                while not _holds(position, self._files[0]):
                    self._files.pop(0).close()
        return self._files

    def _open_newest(self) -> None:
        """Open the file at the path, unless it is open already."""
        try:
            # Checked before opening, which would block on a pipe.
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise CatalogueError(f"{self.path} is no regular file: follow a pipe by standard input")
            if any(os.path.samestat(found, os.fstat(file.fileno())) for file in self._files):
                return
            if len(self._files) < _MAX_OPEN:
                self._files.append(self.path.open("rb"))
            elif not self._warned_of_many:
                _LOG.warning(
                    "%s was replaced %s times before it was read to its end: changes may be missing until a full build",
                    self.path.name,
                    _MAX_OPEN,
                )
                self._warned_of_many = True
        except FileNotFoundError:
            return
        except OSError as error:
            raise CatalogueError(f"{self.path} cannot be read: {error.strerror}") from error

    def _rotated(self, position: str) -> BinaryIO | None:
        """The file in the same folder that a position is of, opened; None if there is none."""
        for other in sorted(self.path.parent.glob(f"{glob.escape(self.path.name)}?*")):
            with ExitStack() as stack:
                stack.enter_context(suppress(OSError))
                if not other.is_file():
                    continue
                file = stack.enter_context(other.open("rb"))
                if _holds(position, file):
                    stack.pop_all()
                    return file
        return None

    def _read(self, file: BinaryIO, position: str | None, limit: int) -> ChangeBatch:
        start, first, last = self._resume(file, position)
        cutter = LineCutter(start.line, skipping=start.skipping)
        file.seek(start.offset)
        block = file.read(_BLOCK)
        cutter.feed(block)
        changes, refused = gather(cutter, lambda: False, self.path.name, limit, lenient=self._lenient)
        warn_of_blank_lines(self.path.name, self._blank, self._blank + cutter.blank)
        self._blank += cutter.blank
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


def _holds(position: str | None, file: BinaryIO) -> bool:
    """Whether a position is of this file."""
    found = None if position is None else _parsed(position)
    return found is not None and _ends_before(found, file) is not None


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
