"""Reports in Redis Streams, for any number of service processes and workers.

An acknowledgement means: Redis has run the append and answered. With `appendonly yes` and `appendfsync always`, which
this store wants and without which it warns, the report is then on the server's disk: neither a kill nor a power cut
takes it away. With `appendfsync everysec` it outlives the kill of a process, not a power cut within the
second. A replica is not waited for: a failover may lose what only the old primary had.

Nothing is retried unseen: the client's own retries are off. What only reads, and an append, is sent once more within
the same deadline when its connection broke. For an append that is safe by the dedup mark, which holds the attempt's
name: the second sending is told what the first was. A claim is not sent again: what a lost answer held is handed out
when it has been idle. No report is ever trimmed. All keys share one hash tag, one slot of a cluster.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLostError
from redis.exceptions import RedisError

from service.reports.failures import ReportsUnavailable
from service.reports.protocol import Recheck, Report, Waiting
from service.reports.redis_replies import claimed_from_reply, waiting_from_reply
from service.reports.redis_scripts import ACKNOWLEDGE, APPEND, CLAIM, WAITING
from service.reports.wire import report_from_texts, report_to_texts

GROUP: Final = "workers"

_CONNECTIONS: Final = 16
_PAGE: Final = 500
_ENTRY_ID: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_LOG: Final = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class RedisReports:
    """The report queue of a Redis server, version 7.0 or later."""

    def __init__(
        self,
        url: str,
        prefix: str = "shopdir",
        *,
        window_seconds: float = 86_400.0,
        timeout: float = 1.5,
        max_deliveries: int = 5,
    ) -> None:
        """Connect lazily.

        Args:
            url: `redis://`, `rediss://` or `unix://`.
            prefix: what all keys begin with, in braces: one hash tag.
            window_seconds: how long the same report appends nothing more (Q5).
            timeout: seconds for a whole call: waiting for a connection, connecting, asking again and all.
            max_deliveries: how often a re-check is handed out before it becomes a dead letter.

        Raises:
            ValueError: the URL is none that Redis has.
        """
        pool = ConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            # The client would ask again unseen, three times and more: here it is decided what may be asked again.
            retry=Retry(NoBackoff(), 0),
            # With 3 the pool takes maintenance messages, and no longer sees that a waiting connection was closed.
            protocol=2,
            decode_responses=True,
        )
        self._client: Redis = Redis.from_pool(pool)
        self._under_way: set[asyncio.Task[Any]] = set()
        self._turn = asyncio.Semaphore(_CONNECTIONS)
        self._timeout = timeout
        self._window_ms = max(1, round(window_seconds * 1000))
        self._max_deliveries = max_deliveries
        tag = f"{{{prefix}}}"
        self._marks = f"{tag}:reports:mark:"
        self._reports = f"{tag}:reports"
        self._rechecks = f"{tag}:rechecks"
        self._dead = f"{tag}:rechecks:dead"
        self._append, self._claim, self._acknowledge, self._waiting = map(
            self._client.register_script, (APPEND, CLAIM, ACKNOWLEDGE, WAITING)
        )
        self._durability_told = False

    async def append(self, report: Report) -> bool:
        """Keep a report and queue its re-check in one script: mark, report and re-check, or none of them."""
        texts = report_to_texts(report)
        flat = [part for field in texts.items() for part in field]
        keys = [f"{self._marks}{report.mark}", self._reports, self._rechecks]
        arguments: list[str | int] = [self._window_ms, secrets.token_hex(8), *flat]

        appended = bool(await self._asked(lambda: self._append(keys, arguments), twice=True))
        if not self._durability_told:
            self._durability_told = True
            await self._tell_durability()
        return appended

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Take re-checks, new ones first, then abandoned ones; those delivered too often become dead letters."""
        idle_ms = max(1, round(idle_seconds * 1000))
        arguments: list[str | int] = [GROUP, worker, count, idle_ms, self._max_deliveries]
        reply = await self._asked(lambda: self._claim([self._rechecks, self._dead], arguments))
        return claimed_from_reply(reply, worker)

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Take the entries that the worker holds off the queue; the others are left as they are."""
        arguments: list[str] = [GROUP, worker, *filter(_ENTRY_ID.fullmatch, ids)]
        return tuple(await self._asked(lambda: self._acknowledge([self._rechecks], arguments)))

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue, as of one moment."""
        reply = await self._asked(lambda: self._waiting([self._rechecks, self._dead], [GROUP, count]), twice=True)
        return waiting_from_reply(reply)

    async def export(self) -> AsyncIterator[Report]:
        """All reports ever, in the order in which they were appended; a page is read at a time."""
        page = await self._page("-")
        while page:
            for _, texts in page:
                yield report_from_texts(texts)
            page = await self._page(f"({page[-1][0]}")

    async def depth(self) -> int:
        """How many re-checks nobody has acknowledged."""
        return int(await self._asked(lambda: self._client.xlen(self._rechecks), twice=True))

    async def close(self) -> None:
        """Close the connections; what is under way is given up."""
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)
        await self._client.aclose()
        await self._client.connection_pool.disconnect()

    async def _page(self, start: str) -> list[tuple[str, dict[str, str]]]:
        found: Any = await self._asked(lambda: self._client.xrange(self._reports, start, "+", _PAGE), twice=True)
        return list(found)

    async def _asked(self, ask: Callable[[], Awaitable[_Answer]], *, twice: bool = False) -> _Answer:
        """The answer, within the deadline, or our own failure; where `twice`, a lost connection is not the end."""
        # Not by a time-out around it: the client's own time-outs now and then take such a cancellation for theirs, and
        # go on for as long again.
        task = asyncio.create_task(self._in_turn(ask, twice=twice))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait({task}, timeout=self._timeout)
        finally:
            task.cancel()
        if not task.done():
            raise ReportsUnavailable("Redis did not confirm in time")
        try:
            return task.result()
        except (RedisError, OSError) as error:
            raise ReportsUnavailable(f"Redis did not confirm: {type(error).__name__}") from error

    async def _in_turn(self, ask: Callable[[], Awaitable[_Answer]], *, twice: bool) -> _Answer:
        async with self._turn:
            try:
                return await ask()
            except ConnectionLostError:
                if not twice:
                    raise
            return await ask()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # Looked at, so that one that ended after its deadline is not complained of.
            task.exception()

    async def _tell_durability(self) -> None:
        """Warn once when an acknowledgement is worth less than it should be; a server that won't say is left alone."""
        try:
            stated: Any = await self._asked(lambda: self._client.config_get("append*"))
        except ReportsUnavailable:
            _LOG.info("Redis does not tell whether it syncs before it answers")
            return
        if (stated.get("appendonly"), stated.get("appendfsync")) != ("yes", "always"):
            _LOG.warning("Redis answers before a report is on disk: set appendonly yes and appendfsync always")
