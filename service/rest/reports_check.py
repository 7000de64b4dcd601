"""Whether reports could be taken now: looked at for who asks for readiness, briefly and at most once a second."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from service.limits.policy import Bucket, Quota
from service.limits.protocol import Limiter, LimiterUnavailable
from service.reports.failures import ReportsUnavailable
from service.reports.protocol import ReportQueue

_BOUND_S: Final = 0.5
_KEPT_S: Final = 1.0
# A count that nobody reads: a Redis that answers but takes no writes is found out by it.
_KEY: Final = "readiness"
_QUOTA: Final = Quota(Bucket.READS, 1_000_000, 60)


class ReportsCheck:
    """Asks the limiter and the queue, which a report needs both."""

    def __init__(self, limiter: Limiter, queue: ReportQueue, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep the parts; nothing is asked yet.

        Args:
            limiter: counts reports.
            queue: keeps them.
            clock: seconds that never go back.
        """
        self._limiter = limiter
        self._queue = queue
        self._clock = clock
        self._known = False
        self._until = float("-inf")
        self._turn = asyncio.Lock()

    async def passes(self) -> bool:
        """Whether both answer; what was found is kept for a second."""
        async with self._turn:
            if self._clock() >= self._until:
                self._known = await self._asked()
                self._until = self._clock() + _KEPT_S
            return self._known

    async def _asked(self) -> bool:
        try:
            async with asyncio.timeout(_BOUND_S):
                await self._limiter.hit(_KEY, _QUOTA)
                await self._queue.depth()
        except (LimiterUnavailable, ReportsUnavailable, TimeoutError):
            return False
        return not self._limiter.degraded
