"""Opens the configured report queue, for the service and for the operator's commands, and guards it for the service.

The store connects at the first call, which raises if it is unavailable. A store is imported when it is opened.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

from service.redis.access import DEFAULT_REDIS, RedisAccess
from service.reports.protocol import Reason, Report, ReportQueue, ReportStore, ReportsUnavailable, Waiting
from service.runtime.store_waits import store_answer, timed_store_call
from shop_directory.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from shop_directory.runtime.metrics import NO_METRICS, Metrics

DAY_SECONDS: Final = 86_400.0

QueueKind = Literal["embedded", "redis"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Where and how reports are stored; within the window a repetition of the same report appends nothing (Q5)."""

    kind: QueueKind = "embedded"
    path: Path = Path("var/reports.sqlite")
    redis: RedisAccess = DEFAULT_REDIS
    prefix: str = "shopdir"
    window_seconds: float = DAY_SECONDS
    timeout: float = 1.5


def open_queue(settings: QueueSettings) -> ReportQueue:
    """Open the queue; the caller closes it."""
    if settings.kind == "redis":
        from service.reports.redis import RedisReports

        return RedisReports(
            settings.redis, settings.prefix, window_seconds=settings.window_seconds, timeout=settings.timeout
        )
    from service.reports.sqlite import SqliteReports

    return SqliteReports(settings.path, window_seconds=settings.window_seconds, timeout=settings.timeout)


class GuardedStore:
    """A store behind a circuit breaker: if Redis hangs, reports are refused immediately, not after a time-out."""

    def __init__(self, store: ReportStore, metrics: Metrics = NO_METRICS) -> None:
        self._store = store
        self._metrics = metrics
        self._circuit = CircuitBreaker("reports", (ReportsUnavailable,), metrics)
        # The reason of the last failure.
        self._reason = Reason.NO_ANSWER

    async def append(self, report: Report) -> bool:
        return await self._call("append", lambda: self._store.append(report))

    async def waiting(self, count: int) -> Waiting:
        return await self._call("waiting", lambda: self._store.waiting(count))

    async def check(self) -> None:
        await self._call("check", self._store.check)

    async def close(self) -> None:
        await self._store.close()

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
