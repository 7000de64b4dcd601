"""The folder of a machine in which processes share the files of typeaheads that they fetched.

A file is written by one process at a time, under another name, and renamed when it is whole and has the SHA-256 that
its name says. So what has a file's name is that file, unless the disk or somebody else changed it later.
"""

import fcntl
import os
import stat
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, ENOSPC, EPERM
from hashlib import file_digest
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from types import TracebackType
from typing import Final, Self

from index_mappings.typeahead.chunks import CHUNK_BYTES
from index_mappings.typeahead.manifest import is_name

_PART: Final = ".part"
_LOCK: Final = ".lock"
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
# A process whose stamp is two seconds behind still opens files that others need no more.
GRACE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class FolderLocation:
    """Where the files of typeaheads are, and how large they may be.

    Attributes:
        path: the folder; None is one below the system's folder for temporary files.
        most_bytes: what the files of one typeahead may take together.
    """

    path: Path | None = None
    most_bytes: int = 8 * 1024**3

    def folder(self, prefix: str) -> Path:
        """The folder for a prefix, private to this user."""
        if self.path is not None:
            return self.path
        # One level, as others may write in the system's folder: what they make there is not taken.
        return Path(gettempdir()) / f"shop-directory-typeahead-{os.geteuid()}-{prefix}"


DEFAULT_PLACE: Final = FolderLocation()


@dataclass(frozen=True, slots=True)
class Usage:
    """What lies in a folder: whole files, and their sizes together in bytes."""

    files: int
    bytes: int


class TypeaheadFolder:
    """A folder that only this user writes; its methods block, and raise OSError where the disk does not take part."""

    def __init__(self, path: Path) -> None:
        """Name the folder; it is made when something is written.

        Args:
            path: the folder, private to this user.
        """
        self.path = path

    def has(self, name: str, suffix: str, size: int | None = None) -> bool:
        """Whether a file is there.

        Args:
            name: SHA-256 of its bytes, in hexadecimal.
            suffix: of the file's name.
            size: in bytes, where it is known; a file of another size does not count.
        """
        try:
            found = (self.path / f"{name}{suffix}").stat()
        except OSError:
            return False
        return size is None or found.st_size == size

    def missing(self, files: Mapping[str, int], suffix: str) -> dict[str, int]:
        """Those of some files, given with their sizes, that are not there."""
        return {name: size for name, size in files.items() if not self.has(name, suffix, size)}

    def try_lock(self, name: str) -> int | None:
        """Get the right to write a file, until `unlock` or the process's end; None while another process has it."""
        self._make()
        path = self.path / f"{name}{_LOCK}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed it between the two calls: then nobody else looks at this one.
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    @staticmethod
    def unlock(descriptor: int) -> None:
        """Give the right to write a file back."""
        os.close(descriptor)

    def begin(self, name: str, suffix: str, size: int) -> "PartialFile":
        """Begin to write a file; its lock must be held.

        Raises:
            OSError: ENOSPC where the disk has no room for it, among others.
        """
        there = os.statvfs(self.path)
        if there.f_bavail * there.f_frsize < size:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        return PartialFile(self.path / f"{name}{suffix}", size)

    def remove_damaged(self, files: Mapping[str, int], suffix: str) -> bool:
        """Remove those of some files, given with their sizes, that are not what their names say; whether any was."""
        damaged = [path for name in files if (path := self.path / f"{name}{suffix}").exists() and _sum(path) != name]
        for path in damaged:
            path.unlink(missing_ok=True)
        return bool(damaged)

    def tidy(self, needed: Collection[str], grace: float = GRACE_SECONDS) -> None:
        """Remove files that nobody needs any more.

        Args:
            needed: names of files that stay.
            grace: seconds for which other files stay as well, since they came or were needed.
        """
        now = time.time()
        with suppress(OSError):
            for path in list(self.path.iterdir()):
                if not is_name(path.stem):
                    continue
                with suppress(OSError):  # read-only, or another process was faster
                    if path.stem in needed:
                        os.utime(path)
                    elif path.stat().st_mtime + grace < now:
                        self._remove(path)

    def usage(self) -> Usage:
        """What lies there now; nothing where it can't be read."""
        sizes: list[int] = []
        with suppress(OSError):
            for path in list(self.path.iterdir()):
                if is_name(path.stem) and path.suffix not in {_PART, _LOCK}:
                    with suppress(OSError):
                        sizes.append(path.stat().st_size)
        return Usage(len(sizes), sum(sizes))

    def _remove(self, path: Path) -> None:
        if path.suffix in {_PART, _LOCK}:
            lock = self.try_lock(path.stem)
            if lock is None:
                return
            try:
                path.unlink(missing_ok=True)
            finally:
                self.unlock(lock)
        else:
            path.unlink(missing_ok=True)

    def _make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.path.lstat()
        # What lies there is mapped and given to machine code: whoever could change it could do anything.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(EACCES, "the folder belongs to another user")
        if found.st_mode & _OTHERS_MAY_WRITE:
            raise OSError(EPERM, "other users can write the folder")


class PartialFile:
    """A file that is being written; as a context it is gone at the end unless it was finished."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._part = path.with_suffix(_PART)
        self._part.unlink(missing_ok=True)  # of a process that was killed
        self._descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # A thread may still write when the caller gave up: the descriptor must not be another file's by then.
        self._lock = Lock()
        self._open = True

    def write(self, place: int, data: bytes) -> None:
        """Write the chunk of this place, in any order; nothing once the context has ended."""
        offset = place * CHUNK_BYTES
        with self._lock:
            while data and self._open:
                written = os.pwrite(self._descriptor, data, offset)
                data, offset = data[written:], offset + written

    def finish(self) -> None:
        """Give it its name.

        Raises:
            ValueError: it is not what its name says.
        """
        if self._part.stat().st_size != self._size or _sum(self._part) != self._path.stem:
            raise ValueError("a file of the typeahead is not what its name says")
        self._part.replace(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._open = False
            os.close(self._descriptor)
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


def _sum(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
