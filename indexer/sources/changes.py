"""Changes as lines of NDJSON, from a file that grows or from a pipe, with their positions (G3).

No reason of a refusal repeats a value, as the shop may not be public (V1).
"""

import hashlib
import logging
import os
import queue
import select
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

from pydantic import Field, ValidationError

from index_mappings.generations import MissingChanges
from index_mappings.values import microseconds, wire_timestamp
from indexer.records.faults import FieldFault, RefusedRecordError
from indexer.records.hiding import hiding_of_change
from indexer.records.problems import CatalogueError
from indexer.records.related import KEYS, RECORDS
from indexer.records.shop import (
    MAX_VERSION,
    NO_ORDER,
    UPDATED_AT,
    VERSION,
    Order,
    Record,
    StrictModel,
    Timestamp,
    one_of,
    validated,
)
from indexer.sources.lines import MAX_LINE, Line, LineCutter, parsed, parsed_or_bytes
from indexer.sources.protocol import Change, ChangeBatch, ChangeSource, RefusedChange
from indexer.sources.rotation import LogFile, Rotated, UnreadableFileError, has_holes, other_copies, rotated_files

# Two hosts, which people may paste as URLs.
MAX_KEY: Final = 2 * 2_048 + 1
_MAX_BATCH_BYTES: Final = 4 * 1024 * 1024
_LOG: Final = logging.getLogger(__name__)
# Longer than any line, so that each call makes progress.
_FILE_BLOCK: Final = 4 * 1024 * 1024
_MARK_BYTES: Final = 1_024
# Bytes in which unread lines are counted; the lines of a larger backlog are not counted to the end.
_BACKLOG_BYTES: Final = 64 * 1024 * 1024
# Files that were replaced before they were read to their end, the newest one included.
_MAX_OPEN: Final = 64
# Longer than a rotation takes to rename its files, while one of them can be missing.
_ROTATING_S: Final = 0.2

_Count = Annotated[int, Field(ge=0)]
_STREAM_BLOCK: Final = 64 * 1024
_STREAM_BLOCKS: Final = 64


class StatedChange(StrictModel):
    """A line of `changes.ndjson`: a record that was created, replaced or deleted, before its fields are compared."""

    op: Literal["upsert", "delete"]
    type: Annotated[str, one_of(RECORDS, f"must be one of {', '.join(RECORDS)}")]
    record: dict[str, Any] | None = None
    key: Annotated[str, Field(max_length=MAX_KEY)] | None = None
    version: Annotated[int, Field(ge=0, le=MAX_VERSION)] | None = None
    updated_at: Timestamp = None


def read_change(line: Line, name: str, *, lenient: bool = False) -> Change:
    """Read one line of a source of this name; RefusedRecordError says what is wrong with it.

    Lenient reading ignores unknown fields of the change and of its record.
    """
    value = parsed(line)
    if not isinstance(value, dict):
        raise RefusedRecordError((None, "the line must be an object"))
    stated = validated(StatedChange, value, lenient=lenient)
    faults = list(_form_faults(stated))
    record: Record | None = None
    key, order = "", NO_ORDER
    with _collected(faults):
        if stated.op == "upsert" and stated.record is not None:
            record = _record(stated.type, stated.record, lenient=lenient)
        if stated.op == "delete" and stated.key is not None:
            key = _key(stated.type, stated.key)
    with _collected(faults):
        order = _order(stated, record)
    if faults:
        raise RefusedRecordError(*faults)
    return Change(stated.type, key if record is None else record.key, order, record, f"{name}:{line.number}")


@contextmanager
def _collected(faults: list[FieldFault]) -> Iterator[None]:
    """Collect the faults of one part of a change, so that those of all parts are reported together."""
    try:
        yield
    except RefusedRecordError as error:
        faults += error.faults


def gather(
    cutter: LineCutter, refill: Callable[[], bool], name: str, limit: int, *, lenient: bool
) -> tuple[tuple[Change, ...], tuple[RefusedChange, ...]]:
    """Consume lines until none is available, or `limit` lines that are not blank, or a bound on their bytes, are read.

    `refill` feeds the cutter with available bytes, and returns whether there were any.
    """
    changes: list[Change] = []
    refused: list[RefusedChange] = []
    end = cutter.consumed + _MAX_BATCH_BYTES
    while len(changes) + len(refused) < limit and cutter.consumed < end:
        line = cutter.cut()
        if line is None:
            if not refill():
                break
            continue
        try:
            changes.append(read_change(line, name, lenient=lenient))
        except RefusedRecordError as error:
            raw = line.text.decode(errors="backslashreplace")  # escapes for bytes that are not UTF-8
            hiding = hiding_of_change(line.number, parsed_or_bytes(line))
            refused.append(RefusedChange.of(f"{name}:{line.number}", error, raw, hiding))
    return tuple(changes), tuple(refused)


def _form_faults(stated: StatedChange) -> Iterator[FieldFault]:
    required, other = ("record", "key") if stated.op == "upsert" else ("key", "record")
    if getattr(stated, required) is None:
        yield required, "is missing"
    if getattr(stated, other) is not None:
        yield other, f"must not be given with {stated.op}"
    if stated.op == "upsert" and stated.updated_at is not None:
        yield "updated_at", "must be in the record of an upsert"


def _record(kind: str, value: dict[str, Any], *, lenient: bool) -> Record:
    try:
        return validated(RECORDS[kind], value, lenient=lenient)
    except RefusedRecordError as error:
        faults = [("record" if field == "record" else f"record.{field}", reason) for field, reason in error.faults]
        raise RefusedRecordError(*faults) from None


def _key(kind: str, key: str) -> str:
    """The key that a delete names, in the form of a record of this type, with reduced hosts.

    A key of another form would delete nothing and leave the record visible, so it is refused.
    """
    model = KEYS[kind]
    for parts in _splits(kind, key, len(model.key_fields)):
        with suppress(ValidationError):
            return model.model_validate(dict(zip(model.key_fields, parts, strict=False))).key
    raise RefusedRecordError(("key", f"must be {'/'.join(model.key_fields)} as in a record"))


def _splits(kind: str, key: str, parts: int) -> list[tuple[str, ...]]:
    """The ways to split a key: a name may hold slashes; keys of three parts have none, and may lack the last."""
    if parts != 2:  # noqa: PLR2004 - a pair
        return [tuple(key.split("/", parts - 1))]
    if kind == "redirects" and key.count("/") > 1:
        return []  # a record may state a host as a URL, a key may not
    return [(key[:at], key[at + 1 :]) for at, character in enumerate(key) if character == "/"]


def _order(stated: StatedChange, record: Record | None) -> Order:
    """The order that a change states, itself or in its record; NO_ORDER where that of the record is wrong itself."""
    try:
        own = record or Record.model_validate(stated.record or {}, extra="ignore")
    except ValidationError:
        return NO_ORDER
    if stated.version is not None:
        if own.version not in (None, stated.version):
            raise RefusedRecordError(("version", "must be the same in the change and in its record"))
        return Order(VERSION, stated.version)
    order = own.order
    if stated.updated_at is not None:
        order = Order(UPDATED_AT, microseconds(stated.updated_at))
    if order == NO_ORDER:
        raise RefusedRecordError((None, "the change needs a version or an updated_at"))
    return order


class _Position(StrictModel):
    """The offset and line of a position; `mark`, a digest of the bytes around it, identifies the file.

    `size` and `modified_ns`, the time of its last change, are those of the file when it was read last. At offset 0,
    where no bytes identify a file, `inode` does until it is compressed, and `modified_ns` says which files are newer.
    """

    offset: _Count
    line: _Count
    skipping: bool
    mark: str
    size: _Count
    modified_ns: _Count
    inode: _Count = 0

    @property
    def unread_bytes(self) -> int | None:
        """The bytes of the file that are known to be unread; None if it was read to its end of that time."""
        return self.size - self.offset or None

    @property
    def unread(self) -> str:
        """What is known of the rest of the file, which is gone, as a sentence."""
        if self.unread_bytes is None:
            end = f"The former file was read to its end of that time, {self.size:,} bytes"
            return f"{end}; what was appended later is missing until a full build"
        return f"{self.unread_bytes:,} bytes of the former file were not read, and are missing until a full build"


_BEGINNING: Final = _Position(offset=0, line=0, skipping=False, mark="", size=0, modified_ns=0)


class ChangeFile(ChangeSource):
    """A growing NDJSON file of changes, which need not exist yet. A last line counts once it ends, or the file does.

    Files stay open until they were read to their end, so that nothing is lost when a file is replaced, even several
    times. After a restart of the process the former file is looked for in the same folder, under a name that begins
    with the new file's, and all files of the rotation that are newer are read as well, in their order. If one of them
    is not there, the others are read from their beginning, which is safe, as versions decide; the batch says so.

    A gzipped file raises CatalogueError, as nothing can be appended to it.
    """

    kind: Final = "file"

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        self._files: list[LogFile] = []  # in the order of their arrival
        if path.name.endswith(".gz"):
            raise CatalogueError(f"{path.name} is gzipped and cannot be followed: write the changes as plain NDJSON")
        self.path = path
        self._lenient = lenient
        # The last position whose file was looked for in the folder.
        self._searched: _Position | None = None
        # What was found to be missing, and the position of the batch that reported it.
        self._missing: MissingChanges | None = None
        self._reported_at: str | None = None
        # The newest file, while too many others are open.
        self._unopened: os.stat_result | None = None

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes; none while the file does not exist, CatalogueError if it is not a regular file."""
        if self._missing is not None and self._reported_at is not None and position == self._reported_at:
            self._missing = None
        with self._readable():
            batch = self._next(position, limit)
        if self._missing is not None:
            self._reported_at = batch.position
            batch = replace(batch, missing=self._missing)
        return batch

    def describe_position(self, position: str | None) -> str | None:
        """The lines and bytes before it."""
        found = _parsed(position)
        return None if found is None or not found.offset else f"line {found.line}, byte {found.offset}"

    def backlog(self, position: str | None) -> int | None:
        """The whole lines after it; only the first ones of a large backlog are counted."""
        stated = _parsed(position)
        lines, remaining = 0, _BACKLOG_BYTES
        with self._readable():
            for file in self._open_from(stated):
                found = stated if stated is not None and _ends_before(stated, file) is not None else _BEGINNING
                with suppress(UnreadableFileError):
                    file.plain.seek(found.offset)
                    while remaining > 0 and (block := file.plain.read(min(remaining, _FILE_BLOCK))):
                        lines += block.count(b"\n")
                        remaining -= len(block)
        return lines

    def hold(self, position: str | None = None) -> None:
        """Open the file that is at the path now, if it replaced the former one; what fails is reported by `read`.

        With a position, also the former file that it is of, where that stays in the folder, and all newer ones.
        """
        with suppress(CatalogueError, OSError):
            self._open_from(_parsed(position))

    def close(self) -> None:
        """Close the files. A later read opens the file then at the path."""
        while self._files:
            self._files.pop().close()
        self._searched = None

    def __del__(self) -> None:
        """Close the files also where a reader of a single batch did not."""
        self.close()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CatalogueError(f"{self.path} cannot be read: {error.strerror}") from error

    def _next(self, position: str | None, limit: int) -> ChangeBatch:
        """The first changes after a position, from the first file that has any."""
        stated = _parsed(position)
        read: list[LogFile] = []
        for file in list(self._open_from(stated)):
            is_last = file is self._files[-1]
            try:
                batch = self._read(file, stated, limit)
            except UnreadableFileError:
                _LOG.warning("a rotated file of %s is damaged or compressed in an unknown way", self.path.name)
                self._note_missing(None, file.stat.st_mtime_ns)
                self._files.remove(file)
                file.close()
                continue
            # While a later file has no lines, an earlier one may still be written.
            if batch.position not in {None, position} or (batch.more and is_last):
                batch = replace(batch, more=batch.more or not is_last)
                # A copy that continues a file has its last line too.
                return batch if _ends_before(stated, file) else self._after(read, stated, batch)
            read.append(file)
        is_known = bool(read) and stated is not None and _ends_before(stated, read[0]) is not None
        is_waiting = not read and position is not None
        unchanged = is_known or is_waiting or (stated is not None and not stated.offset)
        return ChangeBatch((), (), position if unchanged else self._before(read), more=False)

    def _before(self, files: list[LogFile]) -> str:
        """The position before the first line of the newest file, which is empty or not there."""
        if files:
            found = os.fstat(files[-1].plain.fileno())
            start = _BEGINNING.model_copy(update={"modified_ns": found.st_mtime_ns, "inode": found.st_ino})
        else:
            newest = max((one.modified_ns + 1 for one in rotated_files(self.path)), default=0)
            start = _BEGINNING.model_copy(update={"modified_ns": newest})
        return start.model_dump_json()

    def _open_from(self, position: _Position | None) -> list[LogFile]:
        """The open files from the one that a position is of to the newest; those before it are closed."""
        self._open_newest()
        if position is None:
            return self._files
        if position.offset:
            known = next((at for at, file in enumerate(self._files) if _ends_before(position, file) is not None), None)
            if known is not None:
                for file in self._files[:known]:
                    file.close()
                del self._files[:known]
                return self._files
        if position != self._searched:
            self._open_rotated(position)
        return self._files

    def _open_newest(self) -> None:
        with suppress(FileNotFoundError):
            # Checked before opening, which would block on a pipe.
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise CatalogueError(f"{self.path} is no regular file: follow a pipe by standard input")
            if any(os.path.samestat(found, file.stat) for file in self._files):
                return
            if self._unopened is not None and not os.path.samestat(self._unopened, found):
                _LOG.warning(
                    "%s was replaced %s times before it was read to its end: one of the files, with %s bytes, was not"
                    " read and is missing until a full build",
                    self.path.name,
                    _MAX_OPEN,
                    f"{self._unopened.st_size:,}",
                )
                self._note_missing(self._unopened.st_size, found.st_mtime_ns)
            self._unopened = found if len(self._files) >= _MAX_OPEN else None
            if self._unopened is None:
                if self._files:
                    self._open_between(self._files[-1], found)
                self._files.append(LogFile(self.path))

    def _open_between(self, last: LogFile, newest: os.stat_result) -> None:
        """Open files that replaced the last one, and were replaced by the newest, since the path was looked at."""
        rotated = rotated_files(self.path)
        renamed = [at for at, one in enumerate(rotated) if os.path.samestat(one.path.stat(), last.stat)]
        for one in rotated[renamed[-1] + 1 :] if renamed else ():
            if one.inode != newest.st_ino and (file := one.open()) is not None:
                self._files.append(file)

    def _open_rotated(self, position: _Position) -> None:
        """Open the rotation's files from that of a position on, and note missing ones."""
        for attempt in range(2):
            rotated, is_whole = self._from(position)
            if is_whole or not (rotated or self._files):
                break
            if not attempt:
                time.sleep(_ROTATING_S)
        opened = [one.open() for one in rotated if all(one.inode != file.stat.st_ino for file in self._files)]
        self._files[:0] = [file for file in opened if file is not None]
        if not self._files:
            return  # the new file is still to come
        self._searched = position
        if is_whole and None not in opened:
            return
        if position.offset and not any(_ends_before(position, file) for file in self._files[:1]):
            _LOG.warning(
                "%s is not the file that was read before, and its folder does not have that one: it is "
                "read from its beginning. %s",
                self.path.name,
                position.unread,
            )
            self._note_missing(position.unread_bytes, self._files[0].stat.st_mtime_ns)
        else:
            _LOG.warning("a rotated file of %s is missing: its changes are until a full build", self.path.name)
            self._note_missing(None, self._files[-1].stat.st_mtime_ns)

    def _from(self, position: _Position) -> tuple[list[Rotated], bool]:
        """The files of the rotation from the one of a position on, oldest first, and whether none is missing."""
        rotated = rotated_files(self.path)
        newer = [one for one in rotated if one.modified_ns >= position.modified_ns]
        if not position.offset:
            known = {one.inode for one in newer} | {file.stat.st_ino for file in self._files}
            found = not newer or not position.inode or position.inode in known or newer[0].is_compressed
            return newer, found and not has_holes(newer)
        for at in reversed(range(len(rotated))):
            if _is_of(position, rotated[at]):
                return rotated[at:], not has_holes(rotated[at:])
        for one in other_copies(self.path):
            if _is_of(position, one):
                return [one, *(other for other in rotated if other.modified_ns > one.modified_ns)], True
        return newer, False

    def _note_missing(self, size: int | None, following_ns: int) -> None:
        before = wire_timestamp(datetime.fromtimestamp(following_ns / 1e9, UTC))
        self._missing, self._reported_at = MissingChanges(size, before), None

    def _after(self, files: list[LogFile], position: _Position | None, batch: ChangeBatch) -> ChangeBatch:
        """A batch of a later file, after the last line of each of these, which may lack its line feed."""
        batches = *(self._read(file, position, 1, ended=True) for file in files), batch
        return replace(
            batch,
            changes=tuple(chain.from_iterable(one.changes for one in batches)),
            refused=tuple(chain.from_iterable(one.refused for one in batches)),
        )

    def _read(self, file: LogFile, position: _Position | None, limit: int, *, ended: bool = False) -> ChangeBatch:
        """The next changes of a file, which may have `ended`; from its beginning if the position is of another one."""
        ends = _ends_before(position, file)
        start = _BEGINNING if position is None or ends is None else position
        first, last = ends or (b"", b"")
        cutter = LineCutter(start.line, skipping=start.skipping)
        file.plain.seek(start.offset)
        block = file.plain.read(_FILE_BLOCK)
        cutter.feed(block)
        if ended:
            cutter.end()
        changes, refused = gather(cutter, lambda: False, self.path.name, limit, lenient=self._lenient)
        if not cutter.more and len(block) == _FILE_BLOCK:
            cutter.feed(file.plain.read(MAX_LINE + 1))
        # The mark is made of the bytes that were read: those in the file may have been replaced since.
        consumed = block[: cutter.consumed]
        end = _Position(
            offset=start.offset + len(consumed),
            line=cutter.number,
            skipping=cutter.skipping,
            mark=_mark((first + consumed[:_MARK_BYTES])[:_MARK_BYTES], (last + consumed[-_MARK_BYTES:])[-_MARK_BYTES:]),
            size=max(start.offset + len(consumed), file.size) if consumed else start.size,
            modified_ns=file.modified_ns if consumed else start.modified_ns,
        )
        return ChangeBatch(changes, refused, end.model_dump_json() if end.offset else None, cutter.more)


def _is_of(position: _Position, one: Rotated) -> bool:
    """Whether a position is in a file; compressed files keep the time of the file's last change."""
    if one.is_compressed and one.modified_ns < position.modified_ns:
        return False
    file = one.open()
    if file is None:
        return False
    with closing(file):
        return _ends_before(position, file) is not None


def _ends_before(position: _Position | None, file: LogFile) -> tuple[bytes, bytes] | None:
    """The first and the last bytes before a position; None if it is of another file, or that can't be read."""
    if position is None or not position.offset:
        return None
    with suppress(UnreadableFileError):
        if position.offset > file.size:
            return None
        size = min(position.offset, _MARK_BYTES)
        file.plain.seek(0)
        first = file.plain.read(size)
        file.plain.seek(position.offset - size)
        last = file.plain.read(size)
        return (first, last) if _mark(first, last) == position.mark else None
    return None


def _parsed(position: str | None) -> _Position | None:
    try:
        return None if position is None else _Position.model_validate_json(position)
    except ValueError:
        return None


def _mark(first: bytes, last: bytes) -> str:
    return hashlib.blake2b(first + last, digest_size=16).hexdigest()


class ChangeStream(ChangeSource):
    """Changes from standard input or another pipe, without positions: nothing is read twice.

    A thread reads blocks into a bounded queue: while it is full, the producer blocks and memory does not grow. It reads
    the descriptor itself, as a thread that holds the lock of sys.stdin would break the interpreter's shutdown; bytes
    that the caller's buffer already holds are not read. A last line without its line feed counts as a line. The thread
    ends with the stream or the process; the caller closes the stream.
    """

    kind: Final = "stdin"

    def __init__(self, stream: BinaryIO, name: str, *, lenient: bool = False) -> None:
        self._name = name
        self._lenient = lenient
        self._cutter = LineCutter()
        self._blocks: queue.Queue[bytes | OSError] = queue.Queue(_STREAM_BLOCKS)
        self._eof = False
        self._failure: OSError | None = None
        # A descriptor of the thread's own: the caller may close the stream, and another file get its number.
        own = os.dup(stream.fileno())
        threading.Thread(target=self._fill, args=(own,), name=f"changes of {name}", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the stream was closed and read to its end."""
        return self._eof and not self._cutter.more

    def read(self, position: str | None, limit: int) -> ChangeBatch:  # noqa: ARG002 - a stream has no positions
        """The changes that are available; a failure is raised as CatalogueError after all changes before it."""
        changes, refused = gather(self._cutter, self._pull, self._name, limit, lenient=self._lenient)
        while not self._cutter.more and self._pull():
            pass
        if self._failure is not None and not (changes or refused or self._cutter.more):
            raise CatalogueError(f"{self._name} cannot be read: {self._failure.strerror}") from self._failure
        return ChangeBatch(changes, refused, None, self._cutter.more)

    def close(self) -> None:
        """Nothing: the stream is the caller's."""

    def _pull(self) -> bool:
        """Feed an available block to the cutter; returns whether there was one."""
        try:
            block = self._blocks.get_nowait()
        except queue.Empty:
            return False
        if isinstance(block, OSError):
            self._failure = block
        elif block:
            self._cutter.feed(block)
        else:
            self._eof = True
            self._cutter.end()
        return True

    def _fill(self, descriptor: int) -> None:
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        block: bytes | OSError = b"..."
        while block and isinstance(block, bytes):
            try:
                ready.poll()  # the descriptor may not block, if another program has set that
                block = os.read(descriptor, _STREAM_BLOCK)
            except OSError as error:
                block = error
            self._blocks.put(block)
        os.close(descriptor)
