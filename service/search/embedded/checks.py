"""Verifies the checksums of the files of embedded generations, before the first answer and while serving (E3).

Files are read completely when they are opened, except those that an earlier stamp of the generation had open.
Afterwards a slow background thread reads them repeatedly. It reads the same pages that are mapped into memory, so it
finds pages that changed in memory or on the disk. The scope of a damaged file is then unreadable, until the file is
restored or another generation is live.
"""

import logging
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from index_mappings.integrity import FileSum
from service.runtime.telemetry import NO_METRICS, Metrics
from service.search.failures import GenerationDamaged

# In bytes per second: it takes some half percent of a core, and reads 1.5 GB in six minutes.
RATE: Final = 4 * 1024**2
_CHUNK_BYTES: Final = 256 * 1024
# Opening and closing a file take time too: each counts as this number of bytes.
_OVERHEAD_BYTES: Final = 16 * 1024
# Of `check`: the requests of other workers need processors too.
_MAX_THREADS: Final = 4
PAUSE_SECONDS: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of a generation with its expected content.

    Attributes:
        path: of the file.
        name: for operators: the file within the generation, and the generation.
        expected: its size and checksum.
    """

    path: Path
    name: str
    expected: FileSum


class FileChecks:
    """The checks of the files that a process has open.

    A scope is everything that one damaged file makes unreadable. It stays unreadable if a later stamp of the scope does
    not name the file, whose content may have been merged into another one.
    """

    def __init__(self, metrics: Metrics = NO_METRICS, rate: float = RATE, pause: float = PAUSE_SECONDS) -> None:
        """Check nothing yet.

        Args:
            metrics: count the bytes read and the damaged files.
            rate: the maximum number of bytes per second that the background thread reads.
            pause: seconds between two rounds of the background thread.
        """
        self._metrics = metrics
        self._rate = rate
        self._pause = pause
        self._lock = Lock()
        # By owner: the scope and the files that the owner has open.
        self._open: dict[object, tuple[str, tuple[CheckedFile, ...]]] = {}
        # By scope: inodes and checksums of verified files; a copy of a file has another inode.
        self._verified: dict[str, set[tuple[int, FileSum]]] = {}
        self._damaged: dict[str, CheckedFile] = {}
        self._rounds = 0
        self._stop = Event()
        self._thread: Thread | None = None

    @property
    def rounds(self) -> int:
        """The number of completed rounds of the background thread."""
        return self._rounds

    def refuse_damaged(self, scope: str) -> None:
        """Raise if a file of a scope is known to be damaged.

        Raises:
            GenerationDamaged: naming the file.
        """
        if (file := self._damaged.get(scope)) is not None:
            raise GenerationDamaged(f"the file {file.name} is damaged")

    def check(self, scope: str, files: Collection[CheckedFile]) -> None:
        """Verify the files of a scope, except those already verified; this blocks, so it must be called in a thread.

        Args:
            scope: of the files.
            files: their sizes are compared first, before any file is read.

        Raises:
            GenerationDamaged: a file differs from what was written.
            FileNotFoundError: a file is missing.
        """
        self.refuse_damaged(scope)
        identities = {file: (file.path.stat().st_ino, file.expected) for file in files}
        for file in files:
            if file.path.stat().st_size != file.expected.size:
                self._mark_damaged(scope, file)
        with self._lock:
            unread = [file for file in files if identities[file] not in self._verified.get(scope, ())]
        with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as threads:
            for file, intact in zip(unread, threads.map(_matches_checksum, unread), strict=True):
                if not intact:
                    self._mark_damaged(scope, file)
        self.refuse_damaged(scope)
        with self._lock:
            self._verified.setdefault(scope, set()).update(identities.values())

    def watch(self, scope: str, owner: object, files: Collection[CheckedFile]) -> None:
        """Verify files repeatedly until their owner is released."""
        with self._lock:
            self._open[owner] = scope, tuple(files)
        self._start()

    def release(self, owner: object) -> None:
        """Stop verifying an owner's files."""
        with self._lock:
            self._open.pop(owner, None)
            scopes = {scope for scope, _ in self._open.values()}
            self._verified = {scope: found for scope, found in self._verified.items() if scope in scopes}

    def close(self) -> None:
        """Stop the background thread."""
        self._stop.set()
        with self._lock:  # until then a check in another thread may be about to start it
            thread = self._thread
        if thread is not None:
            thread.join()

    def _mark_damaged(self, scope: str, file: CheckedFile) -> None:
        if scope not in self._damaged:
            self._damaged[scope] = file
            self._metrics.index_damaged(len(self._damaged))
            _LOG.error("the file %s is damaged: nothing is answered from its generation", file.name)
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="index-checks", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            for scope, file in list(self._damaged.items()):
                if self._is_intact(file):  # it was restored
                    self._damaged.pop(scope, None)
                    self._metrics.index_damaged(len(self._damaged))
                    _LOG.warning("the file %s is intact again", file.name)
            with self._lock:
                watched = {(scope, file) for scope, files in self._open.values() for file in files}
            # Stamps share files as links, which are read once. Another file with the same content is a file of its own.
            opened = {(scope, file.expected, _inode(file.path)): file for scope, file in watched}
            for (scope, *_), file in opened.items():
                # A missing file was removed with its stamp or generation; its mapped pages stay valid.
                if not self._is_intact(file) and file.path.exists():
                    self._mark_damaged(scope, file)
            self._rounds += 1

    def _is_intact(self, file: CheckedFile) -> bool:
        """Whether a file is as expected, read at the limited rate; True if the checks were stopped meanwhile."""
        digest, size = sha256(), 0
        try:
            with file.path.open("rb", buffering=0) as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
                    self._metrics.index_checked(len(chunk))
                    if self._stop.wait(max(len(chunk), _OVERHEAD_BYTES) / self._rate):
                        return True
        except OSError:
            return False
        return self._stop.wait(_OVERHEAD_BYTES / self._rate) or FileSum(size, digest.hexdigest()) == file.expected


def _matches_checksum(file: CheckedFile) -> bool:
    with file.path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest() == file.expected.sha256


def _inode(path: Path) -> int | None:
    """The number that all links to a file share; None if it is missing."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
