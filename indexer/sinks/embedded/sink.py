"""The embedded sink: a directory for each generation, published by replacing one small file, and its lease.

Readers keep their generation open while it is replaced. Of two publishers the later one fails (G1).

The lease is an exclusive lock on a file of the index directory, which ends with its process (G4). The file is never
removed: otherwise each of two jobs could lock a different file.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import (
    RETIRED_FILE,
    generation_directory,
    index_directory,
    pointer_path,
    pointer_text,
    stamp_path,
)
from index_mappings.generations import STAMP, Stamp, is_generation
from indexer.sinks.embedded.files import (
    CommittedFiles,
    StampDamagedError,
    publisher_lock,
    read_any_stamp,
    read_pointer,
    read_stamp,
    remove_torn,
    write_stamp,
    write_whole,
)
from indexer.sinks.embedded.generation import (
    EmbeddedEditor,
    EmbeddedReader,
    EmbeddedWriter,
    generation_store,
)
from indexer.sinks.failures import SinkError
from indexer.sinks.generation_typeahead import rebuilt
from indexer.sinks.lease import LeaseHeldError, LeaseHolder, LeaseLostError, acquire_until
from indexer.sinks.protocol import STAMP_DRIFT, Generation, GenerationRole, renewed, with_roles
from shop_directory.typeahead.writing.merging import BackgroundMerging

LOCK_FILE: Final = "indexer.lock"
_PAUSE_S: Final = 0.1
_MODE: Final = 0o600
_HOLDER_BYTES: Final = 4096


class EmbeddedSink:
    """Generations in one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._merging = BackgroundMerging()

    @property
    def location(self) -> str:
        return f"the embedded index {self._root.resolve()}"

    def live(self) -> Stamp | None:
        """The stamp of the generation that the pointer names; None also if it is lost: a build replaces it."""
        live, _ = read_pointer(self._root)
        return read_stamp(self._root, live) if live is not None and stamp_path(self._root, live).exists() else None

    def generations(self) -> tuple[Generation, ...]:
        """The existing directories."""
        live, previous = read_pointer(self._root)
        directory = self._root / "generations"
        # Not by `glob`, which takes a directory that can't be read for an empty one.
        found = directory.iterdir() if directory.is_dir() else ()
        names = sorted(path.name for path in found if is_generation(path.name))
        return with_roles(map(self._generation, names), live, previous)

    def begin(self, generation: str) -> EmbeddedWriter:
        """Create the generation's directory, and remove the partial files of killed jobs."""
        remove_torn((self._root, *self._root.glob("generations/*"), *self._root.glob("generations/*/*")))
        try:
            generation_directory(self._root, generation).mkdir(parents=True)
        except OSError as error:
            raise SinkError(f"{self._root} cannot be written: {error.strerror}") from error
        return EmbeddedWriter(self._root, generation)

    def reader(self, generation: str) -> EmbeddedReader:
        read_stamp(self._root, generation)
        return EmbeddedReader(self._root, generation)

    def edit(self, generation: str) -> EmbeddedEditor:
        stamp = read_stamp(self._root, generation)
        editor = EmbeddedEditor(self._root, stamp, self._merging)
        editor.remove_remains()
        return editor

    def publish(self, generation: str, replaced: str | None) -> None:
        """Replace the pointer by one rename, unless another publisher was faster."""
        with publisher_lock(self._root):
            live, _ = read_pointer(self._root)
            # To a build a live generation whose stamp is lost is none.
            is_lost = live is not None and not stamp_path(self._root, live).exists()
            if live != replaced and (replaced is not None or not is_lost):
                raise SinkError("the generation could not be published: another one has been meanwhile")
            read_stamp(self._root, generation)  # raises SinkError if it is another generation's
            (generation_directory(self._root, generation) / RETIRED_FILE).unlink(missing_ok=True)
            write_whole(pointer_path(self._root), pointer_text(generation, live))

    def retire(self, generation: str, at: datetime) -> None:
        write_whole(generation_directory(self._root, generation) / RETIRED_FILE, at.isoformat())

    def alias_drift(self) -> Mapping[str, str]:
        """`stamp`, if the stamp in the live directory names another generation; there are no other aliases."""
        live, _ = read_pointer(self._root)
        if live is None or read_any_stamp(self._root, live).generation == live:
            return {}
        return {STAMP: STAMP_DRIFT.format(live)}

    def repair_stamp(self) -> None:
        live, _ = read_pointer(self._root)
        if live is None or not self.alias_drift():
            return
        reader = EmbeddedReader(self._root, live)
        counts = {kind: reader.count(kind) for kind in DOCUMENTS}
        typeahead = rebuilt(reader, generation_store(self._root, live))
        files = CommittedFiles(self._root, live).commit("")
        stamp = replace(renewed(read_any_stamp(self._root, live), live, counts, typeahead), files=files)
        write_stamp(self._root, stamp)

    def drop(self, generation: str) -> None:
        shutil.rmtree(generation_directory(self._root, generation), ignore_errors=True)

    def lease(self) -> "EmbeddedLease":
        return EmbeddedLease(self._root)

    def close(self) -> None:
        """End background merges of typeahead segments."""
        self._merging.close()

    def _generation(self, name: str) -> Generation:
        path = generation_directory(self._root, name) / RETIRED_FILE
        try:
            retired_at = datetime.fromisoformat(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            retired_at = None
        stamp = None
        with suppress(StampDamagedError):  # it is not whole, and others can be rolled back to
            stamp = read_stamp(self._root, name) if stamp_path(self._root, name).exists() else None
        whole = (
            stamp is not None
            and CommittedFiles(self._root, name).has_all(stamp.files)
            and all(index_directory(self._root, name, kind).is_dir() for kind in DOCUMENTS)
        )
        return Generation(name, GenerationRole.UNFINISHED, stamp, retired_at, whole)


class EmbeddedLease:
    """A handle on the lock of one index directory."""

    def __init__(self, root: Path) -> None:
        self._path = root / LOCK_FILE
        self._file: int | None = None

    def acquire(self, job: str, wait: float) -> None:
        """Lock the file, with attempts for `wait` seconds; a missing directory is created."""
        acquire_until(lambda: self._lock(job), wait, _PAUSE_S)

    def check(self) -> None:
        """Verify that the file is locked, and still at its path."""
        if self._file is None:
            raise LeaseLostError("the lease is not held")
        if not _is_at(self._file, self._path):
            raise LeaseLostError(f"the lease was lost: {self._path} was removed or replaced")

    def release(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            _write(file, b"")
            # Closing would not unlock it while a process that was just forked has a copy.
            fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            os.close(file)

    def _lock(self, job: str) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        except OSError as error:
            raise SinkError(f"{self._path} cannot be opened: {error.strerror}") from error
        with ExitStack() as failing:
            failing.callback(os.close, file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LeaseHeldError(f"another job has the lease of {self._path.parent}: {_holder(file)}") from None
            except OSError as error:
                raise SinkError(f"{self._path} cannot be locked: {error.strerror}") from error
            if not _is_at(file, self._path):
                raise LeaseHeldError(f"{self._path} was removed while it was being locked")
            _write(file, json.dumps(asdict(LeaseHolder.here(job))).encode())
            failing.pop_all()
        self._file = file


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat(follow_symlinks=False))
    except OSError:
        return False


def _write(file: int, text: bytes) -> None:
    """Write the holder. A full disk does not prevent the lease, which pruning needs."""
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, text, 0)


def _holder(file: int) -> str:
    try:
        return str(LeaseHolder.from_wire(json.loads(os.pread(file, _HOLDER_BYTES, 0))))
    except (OSError, ValueError):
        return "it has only just begun or ended"
