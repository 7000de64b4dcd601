"""How many requests may be in flight: half as many after the engine said that it has too much, then slowly more."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Throttle:
    """Lets a varying number of threads through at a time, never fewer than one."""

    def __init__(self, most: int) -> None:
        """Begin with all.

        Args:
            most: how many at a time when all goes well.
        """
        self._most = most
        self._limit = most
        self._inside = 0
        self._round = 0
        self._successes = 0
        self._changed = Condition()

    @property
    def limit(self) -> int:
        """How many may be inside now."""
        return self._limit

    @contextmanager
    def turn(self) -> Iterator[int]:
        """Wait for a turn and hold it; yields its round, for `narrow`."""
        with self._changed:
            self._changed.wait_for(lambda: self._inside < self._limit)
            self._inside += 1
            begun = self._round
        try:
            yield begun
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def narrow(self, begun: int) -> None:
        """Halve the limit, once for all turns that began in the same round: they met the same crowd."""
        with self._changed:
            if begun == self._round:
                self._round += 1
                self._limit = max(1, self._limit // 2)
                self._successes = 0

    def widen(self) -> None:
        """Note that a turn went well; after a few in a row for each that may be inside, one more may."""
        with self._changed:
            self._successes += 1
            if self._limit < self._most and self._successes >= 4 * self._limit:
                self._limit += 1
                self._successes = 0
                self._changed.notify_all()
