"""Whether reports can be taken now: checked for /ready, with a short timeout and at most once a second."""

import asyncio
import time
from typing import Final

from service.limits.policy import READINESS_KEY, READINESS_QUOTA
from service.limits.protocol import Limiter, LimiterUnavailable
from service.reports.protocol import Reason, ReportQueue, ReportsUnavailable

_TIMEOUT_SECONDS: Final = 0.5
_CACHE_SECONDS: Final = 1.0
_NOT_COUNTED: Final = "The quotas of reports can't be counted."


class ReportReadiness:
    """Checks the limiter and the queue, both of which a report needs."""

    def __init__(self, limiter: Limiter, queue: ReportQueue) -> None:
        """Prepare the check; nothing is called yet.

        Args:
            limiter: counts reports.
            queue: stores reports.
        """
        self._limiter = limiter
        self._queue = queue
        self._failure: str | None = None
        self._valid_until = float("-inf")
        self._lock = asyncio.Lock()

    async def failure(self) -> str | None:
        """The reason why no report can be taken, without secrets; None when one can.

        The result is cached for a second.
        """
        async with self._lock:
            if time.monotonic() >= self._valid_until:
                self._failure = await self._check()
                self._valid_until = time.monotonic() + _CACHE_SECONDS
            return self._failure

    async def _check(self) -> str | None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await self._limiter.hit(READINESS_KEY, READINESS_QUOTA)
                await self._queue.check()
        except ReportsUnavailable as error:
            return error.reason
        except LimiterUnavailable:
            return _NOT_COUNTED
        except TimeoutError:
            return Reason.NO_ANSWER
        return _NOT_COUNTED if self._limiter.degraded else None
