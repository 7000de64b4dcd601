"""Gives unused units of leases back to the lender, in the background and once each: a second time would take others'.

What can't be given back just then is let go: it comes back with its window.
"""

import asyncio
import time
from collections import deque
from typing import Final

from service.limits.lending import Lender
from service.limits.protocol import LimiterUnavailable
from service.measures import Measures
from service.under_way import for_nobody_in_particular

_AT_ONCE: Final = 8
_CLOSING_SECONDS: Final = 1.0


class Returns:
    """What is on its way back."""

    def __init__(self, lender: Lender, measures: Measures, most: int) -> None:
        """Nothing is yet.

        Args:
            lender: takes it.
            measures: are told of each time that it is asked.
            most: leases that may wait; the oldest are let go.
        """
        self._lender = lender
        self._measures = measures
        self._waiting: deque[tuple[str, str, int]] = deque(maxlen=most)
        self._task: asyncio.Task[None] | None = None

    def add(self, key: str, unused: list[tuple[str, int]]) -> None:
        """Give these back soon: slots and units of a key."""
        if not unused:
            return
        self._waiting.extend((key, slot, units) for slot, units in unused)
        if self._task is None or self._task.done():
            # For no call: neither its deadline nor its trace is this one's.
            with for_nobody_in_particular():
                self._task = asyncio.get_running_loop().create_task(self._all())

    async def settled(self) -> None:
        """Wait until everything was given back or let go."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Give back what can be given back in a second."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_CLOSING_SECONDS)
            self._task.cancel()

    async def _all(self) -> None:
        # Some may have come after the last of these looked, while this one still counts as under way.
        while self._waiting:
            await asyncio.gather(*(self._some() for _ in range(min(_AT_ONCE, len(self._waiting)))))

    async def _some(self) -> None:
        while self._waiting:
            key, slot, units = self._waiting.popleft()
            began, outcome = time.monotonic(), "unavailable"
            try:
                await self._lender.give_back(key, slot, units)
                outcome = "ok"
            except LimiterUnavailable:
                self._waiting.clear()
            finally:
                self._measures.store_call("limiter", "give_back", outcome, time.monotonic() - began)
