"""A report queue behind a circuit breaker: with Redis hanging, a report is refused at once, not after its time-out."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from service.reports.failures import Reason, ReportsUnavailable
from service.reports.protocol import Recheck, Report, ReportQueue, Waiting
from service.runtime.circuit_breaker import Circuit, CircuitOpen
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.store_waits import store_answer

T = TypeVar("T")


class GuardedQueue:
    """A queue that is not asked while it fails."""

    def __init__(self, queue: ReportQueue, metrics: Metrics = NOTHING_MEASURED) -> None:
        """Guard a queue; it belongs to this one."""
        self._queue = queue
        self._metrics = metrics
        self._circuit = Circuit("reports", (ReportsUnavailable,), metrics)
        # Of the last failure.
        self._reason = Reason.NO_ANSWER

    async def append(self, report: Report) -> bool:
        """Keep a report and queue its re-check, in one step."""
        return await self._asked("append", lambda: self._queue.append(report))

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Take re-checks."""
        return await self._asked("claim", lambda: self._queue.claim(worker, count, idle_seconds))

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Take entries off the queue."""
        return await self._asked("acknowledge", lambda: self._queue.acknowledge(worker, ids))

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue."""
        return await self._asked("waiting", lambda: self._queue.waiting(count))

    def export(self) -> AsyncIterator[Report]:
        """All reports ever; an operator who asks for them waits."""
        return self._queue.export()

    async def depth(self) -> int:
        """How many re-checks nobody has acknowledged."""
        return await self._asked("depth", self._queue.depth)

    async def check(self) -> None:
        """Whether a report could be kept now."""
        await self._asked("check", self._queue.check)

    async def close(self) -> None:
        """Close the queue."""
        await self._queue.close()

    async def _asked(self, operation: str, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await store_answer(self._circuit.call(lambda: self._measured(operation, ask)))
        except CircuitOpen:
            text = "the queue failed just now and is left alone for a second"
            raise ReportsUnavailable(text, self._reason) from None
        except ReportsUnavailable as error:
            self._reason = error.reason
            raise

    async def _measured(self, operation: str, ask: Callable[[], Awaitable[T]]) -> T:
        began, outcome = time.monotonic(), "unavailable"
        try:
            answer = await ask()
            outcome = "ok"
            return answer
        finally:
            self._metrics.store_call("reports", operation, outcome, time.monotonic() - began)
