"""Verifies the checksums of the files of embedded generations, before the first answer and while serving (E3).

All files are read when they are opened, but those that an earlier stamp had open, and then repeatedly by a slow thread,
through the mapped pages, so that damage in memory and on the disk is found. A file that was cut short reads as zeros,
like an empty list: so files stay open, and their sizes are compared before each answer and twice a second.
"""

import logging
import os
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from os import SEEK_END, lseek
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final
from weakref import WeakValueDictionary

from index_mappings.embedded import FileSum
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.search.failures import GenerationDamaged

# In bytes per second: it takes some half percent of a core, and reads 1.5 GB in six minutes.
RATE: Final = 4 * 1024**2
_CHUNK_BYTES: Final = 256 * 1024
# Opening and closing a file take time too: each counts as this number of bytes.
_OVERHEAD_BYTES: Final = 16 * 1024
# Of `check`: the requests of other workers need processors too.
_MAX_THREADS: Final = 4
PAUSE_SECONDS: Final = 0.5
# Between two comparisons of the sizes of all files.
_SIZES_SECONDS: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of a generation with its expected size and checksum; operators see its name, with the generation."""

    path: Path
    name: str
    expected: FileSum


class OpenFile:
    """A file of a generation that stays open, so that one system call returns its size; links have its identity too."""

    def __init__(self, checked: CheckedFile) -> None:
        self.checked = checked
        self.descriptor = os.open(checked.path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(self.descriptor)
        self.identity = status.st_dev, status.st_ino

    @property
    def sized(self) -> "SizedFile":
        """The descriptor, the size that the file should have in bytes, and the file: fast to unpack."""
        return self.descriptor, self.checked.expected.size, self

    def __del__(self) -> None:
        """Close the file when nothing is mapped of it any more."""
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


SizedFile = tuple[int, int, OpenFile]


class FileChecks:
    """The checks of the files that a process has open.

    A scope is everything that one damaged file makes unreadable. It stays unreadable if a later stamp of the scope does
    not name the file, whose content may have been merged into another one.
    """

    def __init__(self, metrics: Metrics = NO_METRICS, rate: float = RATE, pause: float = PAUSE_SECONDS) -> None:
        """Check nothing yet; later at most `rate` bytes per second, with pauses of `pause` seconds between rounds."""
        self._metrics = metrics
        self._rate = rate
        self._pause = pause
        self._lock = Lock()
        # By owner: the scope and the files that the owner has open.
        self._open: dict[object, tuple[str, tuple[OpenFile, ...]]] = {}
        # Consecutive stamps share most files, as links.
        self._shared: WeakValueDictionary[tuple[tuple[int, int], FileSum], OpenFile] = WeakValueDictionary()
        # By scope: inodes and checksums of verified files; a copy of a file has another inode.
        self._verified: dict[str, set[tuple[int, FileSum]]] = {}
        self._damaged: dict[str, CheckedFile] = {}
        # The completed rounds of the background thread.
        self.rounds = 0
        self._sizes_compared = 0.0
        self._stop = Event()
        self._thread: Thread | None = None

    def refuse_damaged(self, scope: str) -> None:
        """Raise GenerationDamaged, naming the file, if a file of a scope is known to be damaged."""
        if (file := self._damaged.get(scope)) is not None:
            raise GenerationDamaged(f"the file {file.name} is damaged")

    def refuse_cut(self, scope: str, files: Collection[SizedFile]) -> None:
        """Raise GenerationDamaged if a file has lost its end; call it between reading from the files and answering."""
        # A third of the time of `os.fstat`. No reader uses the offset of a descriptor.
        if cut := [file for descriptor, size, file in files if lseek(descriptor, 0, SEEK_END) != size]:
            self._mark_damaged(scope, cut[0].checked)
            self.refuse_damaged(scope)

    def check(self, scope: str, files: Collection[CheckedFile]) -> None:
        """Verify the files of a scope, except those already verified; this blocks, so it must be called in a thread.

        Sizes are compared first, before any file is read. Raises GenerationDamaged, or FileNotFoundError.
        """
        self.refuse_damaged(scope)
        identities = {file: (file.path.stat().st_ino, file.expected) for file in files}
        for file in files:
            if file.path.stat().st_size != file.expected.size:
                self._mark_damaged(scope, file)
        with self._lock:
            unread = [file for file in files if identities[file] not in self._verified.get(scope, ())]
        with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as threads:
            for file, found in zip(unread, threads.map(FileSum.of_file, (file.path for file in unread)), strict=True):
                if found != file.expected:
                    self._mark_damaged(scope, file)
        self.refuse_damaged(scope)
        with self._lock:
            self._verified.setdefault(scope, set()).update(identities.values())

    def watch(self, scope: str, owner: object, files: Collection[CheckedFile]) -> Mapping[CheckedFile, OpenFile]:
        """Open files, and verify them repeatedly until their owner is released. Raises OSError."""
        with self._lock:
            opened = {file: self._opened(file) for file in files}
            self._open[owner] = scope, tuple(opened.values())
        self._start()
        return opened

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

    def _opened(self, checked: CheckedFile) -> OpenFile:
        file = OpenFile(checked)
        return self._shared.setdefault((file.identity, checked.expected), file)

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
        while not self._wait(self._pause):
            for scope, file in list(self._damaged.items()):
                if self._is_restored(scope, file) and not self._stop.is_set():
                    self._damaged.pop(scope, None)
                    self._metrics.index_damaged(len(self._damaged))
                    _LOG.warning("the file %s is intact again", file.name)
            for scope, opened in self._watched():
                if not self._is_intact(opened):
                    self._mark_damaged(scope, opened.checked)
            self.rounds += 1

    def _is_restored(self, scope: str, file: CheckedFile) -> bool:
        """Whether what is mapped of a damaged file is intact again, or the file of that name if nothing is mapped."""
        mapped = [opened for where, opened in self._watched() if (where, opened.checked) == (scope, file)]
        try:
            return all(map(self._is_intact, mapped or [OpenFile(file)]))
        except OSError:
            return False

    def _watched(self) -> set[tuple[str, OpenFile]]:
        with self._lock:
            return {(scope, file) for scope, files in self._open.values() for file in files}

    def _wait(self, seconds: float) -> bool:
        """Wait, and compare the sizes of all files twice a second; returns whether the checks were stopped."""
        end = time.monotonic() + seconds
        while not self._stop.wait(max(0.0, min(end - time.monotonic(), _SIZES_SECONDS))):
            now = time.monotonic()
            if now - self._sizes_compared >= _SIZES_SECONDS:
                self._sizes_compared = now
                for scope, file in self._watched():
                    with suppress(GenerationDamaged):
                        self.refuse_cut(scope, (file.sized,))
            if now >= end:
                return False
        return True

    def _is_intact(self, file: OpenFile) -> bool:
        """Whether a file is as expected, read at the limited rate; True if the checks were stopped meanwhile."""
        digest, size = sha256(), 0
        try:
            while chunk := os.pread(file.descriptor, _CHUNK_BYTES, size):
                digest.update(chunk)
                size += len(chunk)
                self._metrics.index_checked(len(chunk))
                if self._wait(max(len(chunk), _OVERHEAD_BYTES) / self._rate):
                    return True
        except OSError:
            return False
        return self._wait(_OVERHEAD_BYTES / self._rate) or FileSum(size, digest.hexdigest()) == file.checked.expected
