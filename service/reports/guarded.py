"""A report queue behind a circuit breaker: if Redis hangs, reports are refused immediately, not after a time-out."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from service.reports.protocol import Reason, Recheck, Report, ReportQueue, ReportsUnavailable, Waiting
from service.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from service.runtime.store_waits import store_answer, timed_store_call
from service.runtime.telemetry import NO_METRICS, Metrics

T = TypeVar("T")


class GuardedQueue:
    """A queue that is not called while it fails."""

    def __init__(self, queue: ReportQueue, metrics: Metrics = NO_METRICS) -> None:
        """Guard a queue; `close` closes it."""
        self._queue = queue
        self._metrics = metrics
        self._circuit = CircuitBreaker("reports", (ReportsUnavailable,), metrics)
        # The reason of the last failure.
        self._reason = Reason.NO_ANSWER

    async def append(self, report: Report) -> bool:
        """Store a report and queue its re-check, atomically."""
        return await self._call("append", lambda: self._queue.append(report))

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Claim re-checks."""
        return await self._call("claim", lambda: self._queue.claim(worker, count, idle_seconds))

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove finished entries from the queue."""
        return await self._call("acknowledge", lambda: self._queue.acknowledge(worker, ids))

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue."""
        return await self._call("waiting", lambda: self._queue.waiting(count))

    def export(self) -> AsyncIterator[Report]:
        """All reports ever stored; not guarded, as only operators export."""
        return self._queue.export()

    async def depth(self) -> int:
        """How many re-checks are not acknowledged."""
        return await self._call("depth", self._queue.depth)

    async def check(self) -> None:
        """Check that a report could be stored now."""
        await self._call("check", self._queue.check)

    async def close(self) -> None:
        """Close the queue."""
        await self._queue.close()

    async def _call(self, operation: str, command: Callable[[], Awaitable[T]]) -> T:
        try:
            return await store_answer(self._circuit.call(lambda: self._measured(operation, command)))
        except CircuitOpen:
            text = "the queue failed recently and is not called again for a second"
            raise ReportsUnavailable(text, self._reason) from None
        except ReportsUnavailable as error:
            self._reason = error.reason
            raise

    async def _measured(self, operation: str, command: Callable[[], Awaitable[T]]) -> T:
        with timed_store_call(self._metrics, "reports", operation):
            return await command()
