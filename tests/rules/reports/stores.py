"""Both stores behind one face for tests: opened as often as a test likes, emptied and closed at its end.

Time passes by a clock of the test's own in SQLite, and by waiting in Redis, whose clock is the server's.
"""

import asyncio
import secrets
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from redis.asyncio import Redis

from service.redis.access import RedisAccess
from service.reports.protocol import Report, ReportKind, ReportQueue
from service.reports.redis import RedisReports
from service.reports.sqlite import SqliteReports
from tests.support.real.redis import RedisServer

REPORTED_AT: Final = datetime(2026, 11, 21, 9, 30, 0, 250_000, tzinfo=UTC)


def report(
    shop_id: str = "s1",
    *,
    source: str = "token-a",
    kind: ReportKind = "code",
    code: str | None = "SAVE10",
    reason: str = "invalid",
    reported_at: datetime = REPORTED_AT,
) -> Report:
    return Report(source, kind, shop_id, code if kind == "code" else None, reason, reported_at)


async def exported(queue: ReportQueue) -> list[Report]:
    return [one async for one in queue.export()]


async def executed(server: RedisServer, *command: str) -> object:
    async with Redis.from_url(server.url, decode_responses=True) as client:
        return await client.execute_command(*command)  # type: ignore[no-untyped-call]  # the client leaves it out


class Store(Protocol):
    def open(self, **options: Any) -> ReportQueue:  # noqa: ANN401 - those of the queue's class
        """One more queue on it; each has connections of its own, as another process would."""

    async def elapse(self, seconds: float) -> None:
        """Let that much time pass in the store."""


class SqliteStore:
    def __init__(self, folder: Path, closing: AsyncExitStack) -> None:
        self.path = folder / "reports" / "reports.sqlite"
        self._closing = closing
        self._now = REPORTED_AT.timestamp()

    def open(self, **options: Any) -> SqliteReports:  # noqa: ANN401 - as above
        queue = SqliteReports(self.path, clock=lambda: self._now, **{"timeout": 10.0, **options})
        self._closing.push_async_callback(queue.close)
        return queue

    async def elapse(self, seconds: float) -> None:
        self._now += seconds


class RedisStore:
    def __init__(self, url: str, closing: AsyncExitStack, cluster_nodes: tuple[str, ...] = ()) -> None:
        self.url = url
        self.access = RedisAccess(url, cluster_nodes=cluster_nodes)
        self.prefix = f"test-{secrets.token_hex(6)}"
        self._closing = closing

    def open(self, **options: Any) -> RedisReports:  # noqa: ANN401 - as above
        queue = RedisReports(self.access, self.prefix, **{"timeout": 10.0, **options})
        self._closing.push_async_callback(queue.close)
        return queue

    async def elapse(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def clear(self) -> None:
        async with Redis.from_url(self.url) as client:
            keys = [key async for key in client.scan_iter(f"{{{self.prefix}}}:*")]
            if keys:
                await client.delete(*keys)
