"""That the files of an embedded generation are those that were written: before the first answer and while serving (E3).

Files are read whole when they are opened; what a generation shares with its earlier stamp is not read again. Afterwards
a thread of low cost reads them again and again: what is mapped into memory and what is read here are the same pages, so
a page that changed in memory or on the disk is found. Nothing is answered from a damaged file's scope then, until the
file is as it was or another generation is live.
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
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.search.failures import GenerationDamaged

# Some half percent of a core; 1.5 GB are read once in six minutes.
RATE: Final = 4 * 1024**2
_PIECE_BYTES: Final = 256 * 1024
# A small file costs more than its bytes: opening and closing it count as so many each.
_LEAST_BYTES: Final = 16 * 1024
# Reading at opening: the processors of a machine are for the requests of other workers too.
_MOST_THREADS: Final = 4
PAUSE_SECONDS: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of a generation, and what it must be.

    Attributes:
        path: where it is.
        name: for operators: the generation, and the file within it.
        expected: its size and checksum.
    """

    path: Path
    name: str
    expected: FileSum


class FileChecks:
    """The checks of what a process has open.

    A scope is what one damaged file makes unreadable. It stays so when a later stamp of the scope does not name the
    file any more, as its content may have been merged into another one.
    """

    def __init__(self, metrics: Metrics = NOTHING_MEASURED, rate: float = RATE, pause: float = PAUSE_SECONDS) -> None:
        """Check nothing yet.

        Args:
            metrics: count what is read, and what is damaged.
            rate: bytes that are read again per second, at most.
            pause: seconds between two times that all files are read.
        """
        self._metrics = metrics
        self._rate = rate
        self._pause = pause
        self._lock = Lock()
        # By owner: its scope, and the files that it has open.
        self._open: dict[object, tuple[str, tuple[CheckedFile, ...]]] = {}
        # By scope: files that were found whole, by inode too, as a copy is another file.
        self._whole: dict[str, set[tuple[int, FileSum]]] = {}
        self._damaged: dict[str, CheckedFile] = {}
        self._rounds = 0
        self._stop = Event()
        self._thread: Thread | None = None

    @property
    def rounds(self) -> int:
        """How many times all open files have been read again."""
        return self._rounds

    def refuse_damaged(self, scope: str) -> None:
        """Do nothing, unless a file of a scope is known to be damaged.

        Raises:
            GenerationDamaged: naming the file.
        """
        if (file := self._damaged.get(scope)) is not None:
            raise GenerationDamaged(f"the file {file.name} is damaged")

    def check(self, scope: str, files: Collection[CheckedFile]) -> None:
        """Read files whole, unless that was done for open files of their scope; to be called from a thread.

        Args:
            scope: theirs.
            files: all sizes are compared before anything is read.

        Raises:
            GenerationDamaged: a file is not what it must be.
            FileNotFoundError: a file is not there.
        """
        self.refuse_damaged(scope)
        identities = {file: (file.path.stat().st_ino, file.expected) for file in files}
        for file in files:
            if file.path.stat().st_size != file.expected.size:
                self._note(scope, file)
        with self._lock:
            unread = [file for file in files if identities[file] not in self._whole.get(scope, ())]
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
            for file, is_whole in zip(unread, threads.map(_is_whole, unread), strict=True):
                if not is_whole:
                    self._note(scope, file)
        self.refuse_damaged(scope)
        with self._lock:
            self._whole.setdefault(scope, set()).update(identities.values())

    def watch(self, scope: str, owner: object, files: Collection[CheckedFile]) -> None:
        """Read files again and again until their owner is released."""
        with self._lock:
            self._open[owner] = scope, tuple(files)
        self._start()

    def release(self, owner: object) -> None:
        """Read an owner's files no more."""
        with self._lock:
            self._open.pop(owner, None)
            scopes = {scope for scope, _ in self._open.values()}
            self._whole = {scope: found for scope, found in self._whole.items() if scope in scopes}

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _note(self, scope: str, file: CheckedFile) -> None:
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
                if self._is_still_whole(file):  # it was restored
                    self._damaged.pop(scope, None)
                    self._metrics.index_damaged(len(self._damaged))
                    _LOG.warning("the file %s is whole again", file.name)
            with self._lock:
                opened = {(scope, file.expected): file for scope, files in self._open.values() for file in files}
            for (scope, _), file in opened.items():
                # One that is gone was removed with its stamp or generation; what is mapped of it stays as it is.
                if not self._is_still_whole(file) and file.path.exists():
                    self._note(scope, file)
            self._rounds += 1

    def _is_still_whole(self, file: CheckedFile) -> bool:
        """Whether a file is what it must be, read slowly; True where this was stopped."""
        digest, size = sha256(), 0
        try:
            with file.path.open("rb", buffering=0) as stream:
                while piece := stream.read(_PIECE_BYTES):
                    digest.update(piece)
                    size += len(piece)
                    self._metrics.index_checked(len(piece))
                    if self._stop.wait(max(len(piece), _LEAST_BYTES) / self._rate):
                        return True
        except OSError:
            return False
        return self._stop.wait(_LEAST_BYTES / self._rate) or FileSum(size, digest.hexdigest()) == file.expected


def _is_whole(file: CheckedFile) -> bool:
    with file.path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest() == file.expected.sha256
