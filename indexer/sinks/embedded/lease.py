"""The embedded engine's lease: an exclusive lock on a file of the index directory, which ends with its process (G4).

The file is never removed: otherwise two jobs could each lock a file of their own.
"""

import fcntl
import json
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseHolder, LeaseLostError, acquire_until

LOCK_FILE: Final = "indexer.lock"
_PAUSE_S: Final = 0.1
_MODE: Final = 0o600
_HOLDER_BYTES: Final = 4096


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
        """Unlock the file."""
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
            _write(file, json.dumps(LeaseHolder.here(job).as_wire()).encode())
            failing.pop_all()
        self._file = file


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is the one at the path."""
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
    """The holder, as it wrote itself."""
    try:
        return str(LeaseHolder.from_wire(json.loads(os.pread(file, _HOLDER_BYTES, 0))))
    except (OSError, ValueError):
        return "it has only just begun or ended"
