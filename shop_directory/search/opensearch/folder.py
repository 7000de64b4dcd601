"""The folder in which the processes of a machine share fetched files of typeaheads.

One process at a time writes a file, and gives it its final name, its SHA-256, once it is complete and verified.
"""

import fcntl
import os
import stat
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, ENOSPC, EPERM
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from types import TracebackType
from typing import Final, Self

from index_mappings.opensearch import CHUNK_BYTES
from shop_directory.typeahead.manifest import TypeaheadManifest, file_hash, is_name

_PART: Final = ".part"
_LOCK: Final = ".lock"
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
# A process whose stamp is two seconds old still opens files that other processes no longer need.
GRACE_SECONDS: Final = 30.0
# Files are needed for the live stamp and the previous one, which still answers, of the live generation and, for a
# rollback, of the previous one.
_STAMPS: Final = 2
_GENERATIONS: Final = 2


@dataclass(frozen=True, slots=True)
class FolderLocation:
    """Where files of typeaheads are, by default in a temporary folder, and the most bytes of one typeahead."""

    path: Path | None = None
    most_bytes: int = 64 * 1024**3

    def folder(self, prefix: str) -> Path:
        """The folder for a prefix, private to this user."""
        if self.path is not None:
            return self.path
        # Only one level below the system's folder: a parent folder that another user made must not be used.
        return Path(gettempdir()) / f"shop-directory-typeahead-{os.geteuid()}-{prefix}"


DEFAULT_FOLDER: Final = FolderLocation()


class TypeaheadFolder:
    """A folder that only this user writes; its methods block, and raise OSError if the disk fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, name: str, suffix: str, size: int | None = None) -> bool:
        """Whether the folder has a file, named by the SHA-256 of its bytes; one of another size does not count."""
        try:
            found = (self.path / f"{name}{suffix}").stat()
        except OSError:
            return False
        return size is None or found.st_size == size

    def try_lock(self, name: str) -> int | None:
        """Lock a file until the descriptor is closed, or the process ends; None while another one holds the lock."""
        self._make()
        path = self.path / f"{name}{_LOCK}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the lock file between the two calls; such a lock excludes no process.
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def last_written(self, name: str) -> int | None:
        """When a file that is being fetched was last written, in nanoseconds; None if it is not begun or complete."""
        try:
            return (self.path / f"{name}{_PART}").stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def begin(self, name: str, suffix: str, size: int) -> "PartialFile":
        """Start writing a file; its lock must be held. OSError, ENOSPC for example, if the disk has no space for it."""
        disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize < size:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        return PartialFile(self.path / f"{name}{suffix}", size)

    def remove_damaged(self, names: Iterable[str], suffix: str) -> None:
        """Remove those of some files whose hash differs from their name."""
        for name in names:
            path = self.path / f"{name}{suffix}"
            if path.exists() and file_hash(path) != name:
                path.unlink(missing_ok=True)

    def tidy(self, needed: Collection[str], grace: float = GRACE_SECONDS) -> None:
        """Remove files that are no longer needed, and were not for `grace` seconds."""
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

    def usage(self) -> tuple[int, int]:
        """The number of complete files, and their total size in bytes; zero if the folder can't be read."""
        sizes: list[int] = []
        with suppress(OSError):
            for path in list(self.path.iterdir()):
                if is_name(path.stem) and path.suffix not in {_PART, _LOCK}:
                    with suppress(OSError):
                        sizes.append(path.stat().st_size)
        return len(sizes), sum(sizes)

    def _remove(self, path: Path) -> None:
        if path.suffix in {_PART, _LOCK}:
            lock = self.try_lock(path.stem)
            if lock is None:
                return
            try:
                path.unlink(missing_ok=True)
            finally:
                os.close(lock)
        else:
            path.unlink(missing_ok=True)

    def _make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.path.lstat()
        # The kernel reads mapped files without bounds checks, so no other user may be able to change them.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(EACCES, "the folder belongs to another user")
        if found.st_mode & _OTHERS_MAY_WRITE:
            raise OSError(EPERM, "other users can write the folder")


class PartialFile:
    """A file that is being written; the context removes it at the end unless it was finished."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._part = path.with_suffix(_PART)
        self._part.unlink(missing_ok=True)  # of a process that was killed
        self._descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # A thread may still write after its caller was cancelled; the descriptor may be another file's by then.
        self._lock = Lock()
        self._open = True

    def write(self, number: int, data: bytes) -> None:
        """Write the chunk of this number, in any order; does nothing once the context has ended."""
        offset = number * CHUNK_BYTES
        with self._lock:
            while data and self._open:
                written = os.pwrite(self._descriptor, data, offset)
                data, offset = data[written:], offset + written

    def finish(self) -> None:
        """Rename the file to its final name; ValueError if its size or hash is another one."""
        if self._part.stat().st_size != self._size or file_hash(self._part) != self._path.stem:
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


class NeededManifests:
    """The manifests of the newest stamps and of what is announced, whose files are retained."""

    def __init__(self) -> None:
        # By generation and name, the most recently needed one last in both.
        self._manifests: dict[str, dict[str, TypeaheadManifest]] = {}
        self._announced: tuple[str, TypeaheadManifest] | None = None

    def add(self, generation: str, name: str, manifest: TypeaheadManifest) -> None:
        """Add a manifest that is needed now; older stamps and generations than the newest two are dropped."""
        of_generation = self._manifests.pop(generation, {})
        of_generation.pop(name, None)
        of_generation[name] = manifest
        self._manifests[generation] = dict(list(of_generation.items())[-_STAMPS:])
        self._manifests = dict(list(self._manifests.items())[-_GENERATIONS:])

    def announce(self, name: str, manifest: TypeaheadManifest) -> None:
        """Replace the announced manifest, which will be needed next."""
        self._announced = name, manifest

    def names(self) -> frozenset[str]:
        """The names of all needed files, manifests included."""
        manifests = [item for of_generation in self._manifests.values() for item in of_generation.items()]
        if self._announced is not None:
            manifests.append(self._announced)
        return frozenset(name for own_name, manifest in manifests for name in (own_name, *manifest.files()))
