"""Limits the requests in flight: half as many after the engine reports overload, then slowly more."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Throttle:
    """A semaphore with a variable limit of at least one."""

    def __init__(self, highest: int) -> None:
        """Begin with the highest limit."""
        self._highest = highest
        self.limit = highest
        self._occupied = 0
        self._round = 0
        self._successes = 0
        self._changed = Condition()

    @contextmanager
    def slot(self) -> Iterator[int]:
        """Wait for a slot and occupy it; yields the number of its round, for `narrow`."""
        with self._changed:
            self._changed.wait_for(lambda: self._occupied < self.limit)
            self._occupied += 1
            round_number = self._round
        try:
            yield round_number
        finally:
            with self._changed:
                self._occupied -= 1
                self._changed.notify_all()

    def narrow(self, round_number: int) -> None:
        """Halve the limit, once for all slots of a round, as they saw the same overload."""
        with self._changed:
            if round_number == self._round:
                self._round += 1
                self.limit = max(1, self.limit // 2)
                self._successes = 0

    def widen(self) -> None:
        """Record a success; a few in a row for each slot raise the limit by one."""
        with self._changed:
            self._successes += 1
            if self.limit < self._highest and self._successes >= 4 * self.limit:
                self.limit += 1
                self._successes = 0
                self._changed.notify_all()
