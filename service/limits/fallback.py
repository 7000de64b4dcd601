"""While the shared limiter is unavailable, a local one decides on reads; reports are refused (Q4).

A call waits for the shared limiter only for the time that its request allows for stores. An unavailable limiter is
retried in the background, at most once in a retry interval; no call waits for that.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from service.limits.policy import Bucket, Decision, Limiter, LimiterUnavailable, Quota
from service.runtime.store_waits import store_answer, store_wait_budget, timed_store_call, wait_for_store
from shop_directory.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import remaining_seconds

_RETRY_SECONDS: Final = 1.0
_LOG: Final = logging.getLogger(__name__)


class FallbackLimiter:
    """A shared limiter with a local one as its fallback."""

    def __init__(
        self,
        shared: Limiter,
        local: Limiter,
        metrics: Metrics = NO_METRICS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Combine two limiters, which `close` closes; `local` decides while that of all workers is unavailable."""
        self._shared = shared
        self._local = local
        self._metrics = metrics
        self._clock = clock
        # Whether the shared limiter was unavailable at the last call.
        self.degraded = False
        self._retry_at = 0.0
        self._tasks: set[asyncio.Task[Decision | None]] = set()
        self._reports = CircuitBreaker("limiter", (LimiterUnavailable,), metrics, clock)

    def take(self, key: str, quota: Quota) -> Decision | None:
        if not self.degraded:
            return self._shared.take(key, quota)
        if quota.bucket is Bucket.REPORTS or self._clock() >= self._retry_at:
            return None
        decision = self._local.take(key, quota)
        if decision is not None:
            self._metrics.quota(quota.bucket, "local")
        return decision

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        if quota.bucket is Bucket.REPORTS:
            return await self._report_hit(key, quota, cost)
        if not self.degraded:
            task = self._start(key, quota, cost)
            if (
                await wait_for_store(task, remaining_seconds(store_wait_budget()))
                and (decision := task.result()) is not None
            ):
                return decision
        elif self._clock() >= self._retry_at:
            # In the background; no other call retries in this interval.
            self._retry_at = self._clock() + _RETRY_SECONDS
            self._start(key, quota, cost)
        decision = await self._local.hit(key, quota, cost)
        self._metrics.quota(quota.bucket, "local")
        return decision

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._shared.close()
        await self._local.close()

    def _start(self, key: str, quota: Quota, cost: int) -> "asyncio.Task[Decision | None]":
        """Call the shared limiter in a task: a call that stops waiting is counted there all the same."""
        task = asyncio.get_running_loop().create_task(self._call_shared(key, quota, cost))
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: "asyncio.Task[Decision | None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("the shared limiter failed unexpectedly: %s", type(error).__name__)

    async def _call_shared(self, key: str, quota: Quota, cost: int) -> Decision | None:
        try:
            decision = await self._shared_hit(key, quota, cost)
        except LimiterUnavailable as error:
            if not error.late:
                self._mark_unavailable(error)
            return None
        self._mark_available()
        return decision

    async def _report_hit(self, key: str, quota: Quota, cost: int) -> Decision:
        """The decision on a report: it waits longer, as there is no fallback, but not behind an open circuit."""
        try:
            decision = await store_answer(self._reports.call(lambda: self._shared_hit(key, quota, cost)))
        except CircuitOpen:
            raise LimiterUnavailable(
                "the shared limiter failed recently and is not called again for a second"
            ) from None
        self._mark_available()
        return decision

    async def _shared_hit(self, key: str, quota: Quota, cost: int) -> Decision:
        with timed_store_call(self._metrics, "limiter", "hit"):
            return await self._shared.hit(key, quota, cost)

    def _mark_unavailable(self, error: LimiterUnavailable) -> None:
        self._retry_at = self._clock() + _RETRY_SECONDS
        if not self.degraded:
            self.degraded = True
            _LOG.warning("the shared limiter is unavailable, quotas are counted in this process: %s", error)

    def _mark_available(self) -> None:
        if self.degraded:
            self.degraded = False
            _LOG.warning("the shared limiter is available again")
