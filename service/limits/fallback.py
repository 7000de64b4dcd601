"""With the shared limiter away, reads go on under a local one; reports do not (Q4).

A call waits for the shared limiter no longer than its request has patience for stores, and is decided locally then. A
lost limiter is asked again once a retry time, in the background: no call waits for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, Limiter, LimiterNotWaitedFor, LimiterUnavailable
from service.runtime.circuit_breaker import Circuit, CircuitOpen
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import time_left
from service.runtime.store_waits import store_answer, store_wait_budget, wait_for_store

_RETRY_SECONDS: Final = 1.0
_LOG: Final = logging.getLogger(__name__)


class FallbackLimiter:
    """A shared limiter with a local one behind it."""

    def __init__(
        self,
        shared: Limiter,
        local: Limiter,
        metrics: Metrics = NOTHING_MEASURED,
        *,
        retry_seconds: float = _RETRY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put one limiter behind another; both belong to this one.

        Args:
            shared: the one that counts for all workers.
            local: decides while the shared one is away.
            metrics: are told of each time that the shared one is asked, and of each decision that the local one made.
            retry_seconds: how long a lost limiter is left alone.
            clock: seconds that never go back.
        """
        self._shared = shared
        self._local = local
        self._metrics = metrics
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._away = False
        self._retry_at = 0.0
        self._tasks: set[asyncio.Task[Decision | None]] = set()
        self._reports = Circuit("limiter", (LimiterUnavailable,), metrics, clock)

    @property
    def degraded(self) -> bool:
        """Whether the shared limiter was away when it was last asked."""
        return self._away

    def take(self, key: str, quota: Quota) -> Decision | None:
        """Take one unit at once from whichever limiter decides now; None when only `hit` can tell."""
        if not self._away:
            return self._shared.take(key, quota)
        if quota.bucket is Bucket.REPORTS or self._clock() >= self._retry_at:
            return None
        decision = self._local.take(key, quota)
        if decision is not None:
            self._metrics.quota(quota.bucket, "local")
        return decision

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there.

        Raises:
            LimiterUnavailable: the shared limiter is away and it is a report: that can't be acknowledged either.
        """
        if quota.bucket is Bucket.REPORTS:
            return await self._report_hit(key, quota, cost)
        if not self._away:
            task = self._start(key, quota, cost)
            if await wait_for_store(task, time_left(store_wait_budget())) and (decision := task.result()) is not None:
                return decision
        elif self._clock() >= self._retry_at:
            # Nobody waits for it, and nobody else asks meanwhile.
            self._retry_at = self._clock() + self._retry_seconds
            self._start(key, quota, cost)
        decision = await self._local.hit(key, quota, cost)
        self._metrics.quota(quota.bucket, "local")
        return decision

    async def close(self) -> None:
        """Close both; what is asked of the shared one is given up."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._shared.close()
        await self._local.close()

    def _start(self, key: str, quota: Quota, cost: int) -> "asyncio.Task[Decision | None]":
        """Ask the shared limiter; a caller who stops waiting for it is counted there all the same."""
        task = asyncio.get_running_loop().create_task(self._asked(key, quota, cost))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Decision | None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("the shared limiter failed in an unforeseen way: %s", type(error).__name__)

    async def _asked(self, key: str, quota: Quota, cost: int) -> Decision | None:
        """The shared limiter's decision; None when it made none."""
        try:
            decision = await self._shared_hit(key, quota, cost)
        except LimiterNotWaitedFor:
            return None
        except LimiterUnavailable as error:
            self._lost(error)
            return None
        self._found()
        return decision

    async def _report_hit(self, key: str, quota: Quota, cost: int) -> Decision:
        """Nobody else can decide on a report: it is worth a longer wait, unless waiting has been in vain just now."""
        try:
            decision = await store_answer(self._reports.call(lambda: self._shared_hit(key, quota, cost)))
        except CircuitOpen:
            raise LimiterUnavailable("the shared limiter failed just now and is left alone for a second") from None
        self._found()
        return decision

    async def _shared_hit(self, key: str, quota: Quota, cost: int) -> Decision:
        began, outcome = time.monotonic(), "unavailable"
        try:
            decision = await self._shared.hit(key, quota, cost)
            outcome = "ok"
            return decision
        finally:
            self._metrics.store_call("limiter", "hit", outcome, time.monotonic() - began)

    def _lost(self, error: LimiterUnavailable) -> None:
        self._retry_at = self._clock() + self._retry_seconds
        if not self._away:
            self._away = True
            _LOG.warning("the shared limiter is away, quotas are counted locally: %s", error)

    def _found(self) -> None:
        if self._away:
            self._away = False
            _LOG.warning("the shared limiter is back")
