"""The lease of a sink in memory: one asker at a time within this process (G4)."""

import threading
from typing import Final

from indexer.sinks.lease import LeaseHeldError, LeaseLostError, ask_until
from indexer.sinks.lease_holder import LeaseHolder

_PAUSE_S: Final = 0.01


class MemoryLock:
    """What the leases of one sink have in common: which of them holds it, and for what."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._owner: object | None = None
        self._holder: LeaseHolder | None = None

    def take(self, owner: object, job: str) -> None:
        """Make it the owner's.

        Raises:
            LeaseHeldError: somebody has it, the same owner included.
        """
        with self._guard:
            if self._owner is not None:
                raise LeaseHeldError(f"another job has the lease: {self._holder}")
            self._owner, self._holder = owner, LeaseHolder.here(job)

    def is_of(self, owner: object) -> bool:
        """Whether the owner has it."""
        return self._owner is owner

    def give_back(self, owner: object) -> None:
        """Let the next one in; does nothing when it is not the owner's."""
        with self._guard:
            if self._owner is owner:
                self._owner = self._holder = None


class MemoryLease:
    """One asker for the lock of a sink."""

    def __init__(self, lock: MemoryLock | None = None) -> None:
        """Ask for this lock, or for one of its own."""
        self._lock = lock or MemoryLock()

    def acquire(self, job: str, wait: float) -> None:
        """Take the lock, asking again for `wait` seconds."""
        ask_until(lambda: self._lock.take(self, job), wait, _PAUSE_S)

    def check(self) -> None:
        """Whether the lock is this asker's."""
        if not self._lock.is_of(self):
            raise LeaseLostError("the lease is not held")

    def release(self) -> None:
        """Give the lock back."""
        self._lock.give_back(self)
