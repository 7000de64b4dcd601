"""Looks at a process all the time: what it uses, as a series."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.service_process import Service, Vitals


class Watch:
    """What was seen so far."""

    def __init__(self, service: Service, every_s: float) -> None:
        self.seen: list[Vitals] = []
        self._service = service
        self._every = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    @contextmanager
    def looking(self) -> Iterator["Watch"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def growth(self, of: Callable[[Vitals], int], *, first: int = 1, parts: int = 5) -> float:
        """The last part's median over that of an early one.

        Args:
            of: what is looked at.
            first: the early part; those before it are warming up.
            parts: into how many the series is cut.
        """
        size = len(self.seen) // parts
        early = [of(vitals) for vitals in self.seen[first * size : (first + 1) * size]]
        late = [of(vitals) for vitals in self.seen[-size:]]
        return statistics.median(late) / statistics.median(early)

    def _look(self) -> None:
        while not self._stop.is_set():
            self.seen.append(self._service.vitals())
            time.sleep(self._every)
