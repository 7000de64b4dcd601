"""With the shared limiter away, reads go on under a local one; reports do not (Q4).

A lost limiter is asked again once a retry time, by one call only: the others are decided locally without waiting.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, Limiter, LimiterUnavailable

_RETRY_SECONDS: Final = 1.0
_LOG: Final = logging.getLogger(__name__)


class FallbackLimiter:
    """A shared limiter with a local one behind it."""

    def __init__(
        self,
        shared: Limiter,
        local: Limiter,
        on_local: Callable[[], None],
        *,
        retry_seconds: float = _RETRY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put one limiter behind another; both belong to this one.

        Args:
            shared: the one that counts for all workers.
            local: decides while the shared one is away.
            on_local: called for each decision that the local one made; what a metric counts.
            retry_seconds: how long a lost limiter is left alone.
            clock: seconds that never go back.
        """
        self._shared = shared
        self._local = local
        self._on_local = on_local
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._away = False
        self._retry_at = 0.0

    @property
    def degraded(self) -> bool:
        """Whether the shared limiter was away when it was last asked."""
        return self._away

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there.

        Raises:
            LimiterUnavailable: the shared limiter is away and it is a report: that can't be acknowledged either.
        """
        if not self._away or self._clock() >= self._retry_at:
            # Before it is asked: whoever comes meanwhile must not wait for it as well.
            self._retry_at = self._clock() + self._retry_seconds
            try:
                decision = await self._shared.hit(key, quota, cost)
            except LimiterUnavailable as error:
                self._lost(error)
            else:
                self._found()
                return decision
        if quota.bucket is Bucket.REPORTS:
            raise LimiterUnavailable("the shared limiter is away")
        decision = await self._local.hit(key, quota, cost)
        self._on_local()
        return decision

    async def close(self) -> None:
        """Close both."""
        await self._shared.close()
        await self._local.close()

    def _lost(self, error: LimiterUnavailable) -> None:
        self._retry_at = self._clock() + self._retry_seconds
        if not self._away:
            self._away = True
            _LOG.warning("the shared limiter is away, quotas are counted locally: %s", error)

    def _found(self) -> None:
        if self._away:
            self._away = False
            _LOG.warning("the shared limiter is back")
