"""Whether reports could be taken now: looked at for who asks for readiness, briefly and at most once a second."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from service.limits.policy import READINESS_KEY, READINESS_QUOTA
from service.limits.protocol import Limiter, LimiterUnavailable
from service.reports.protocol import Reason, ReportQueue, ReportsUnavailable

_BOUND_S: Final = 0.5
_KEPT_S: Final = 1.0
_NOT_COUNTED: Final = "The quotas of reports can't be counted."


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
        self._known: str | None = None
        self._until = float("-inf")
        self._turn = asyncio.Lock()

    async def failure(self) -> str | None:
        """Why no report could be taken, without anything that is secret; None when one could.

        What was found is kept for a second.
        """
        async with self._turn:
            if self._clock() >= self._until:
                self._known = await self._asked()
                self._until = self._clock() + _KEPT_S
            return self._known

    async def _asked(self) -> str | None:
        try:
            async with asyncio.timeout(_BOUND_S):
                await self._limiter.hit(READINESS_KEY, READINESS_QUOTA)
                await self._queue.check()
        except ReportsUnavailable as error:
            return error.reason
        except LimiterUnavailable:
            return _NOT_COUNTED
        except TimeoutError:
            return Reason.NO_ANSWER
        return _NOT_COUNTED if self._limiter.degraded else None
