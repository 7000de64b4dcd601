"""The lease of a sink in memory, within this process (G4)."""

import threading
from typing import Final

from indexer.sinks.lease import LeaseHeldError, LeaseLostError, acquire_until
from indexer.sinks.lease_holder import LeaseHolder

_PAUSE_S: Final = 0.01


class MemoryLock:
    """The lock that the leases of one sink share."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._owner: object | None = None
        self._holder: LeaseHolder | None = None

    def acquire(self, owner: object, job: str) -> None:
        """Acquire it for an owner.

        Raises:
            LeaseHeldError: it is held, perhaps by the same owner.
        """
        with self._guard:
            if self._owner is not None:
                raise LeaseHeldError(f"another job has the lease: {self._holder}")
            self._owner, self._holder = owner, LeaseHolder.here(job)

    def is_of(self, owner: object) -> bool:
        """Whether the owner holds it."""
        return self._owner is owner

    def release(self, owner: object) -> None:
        """Release it; does nothing if the owner does not hold it."""
        with self._guard:
            if self._owner is owner:
                self._owner = self._holder = None


class MemoryLease:
    """A handle on the lock of a sink."""

    def __init__(self, lock: MemoryLock | None = None) -> None:
        """Use this lock, or a new one."""
        self._lock = lock or MemoryLock()

    def acquire(self, job: str, wait: float) -> None:
        """Acquire the lock, with attempts for `wait` seconds."""
        acquire_until(lambda: self._lock.acquire(self, job), wait, _PAUSE_S)

    def check(self) -> None:
        """Verify that this handle holds the lock."""
        if not self._lock.is_of(self):
            raise LeaseLostError("the lease is not held")

    def release(self) -> None:
        """Release the lock."""
        self._lock.release(self)
