"""Reports in Redis Streams, for any number of service processes and workers.

An acknowledgement means: Redis has run the append and answered. With `appendonly yes` and `appendfsync always`, which
this store wants and without which it warns, the report is then on the server's disk: neither a kill nor a power cut
takes it away. With `appendfsync everysec` it outlives the kill of a process, not a power cut within the
second. A replica is not waited for: a failover may lose what only the old primary had.

What only reads, and an append, is sent once more within the same deadline when its connection broke. For an append
that is safe by the dedup mark, which holds the attempt's name: the second sending is told what the first was. A claim
is not sent again: what a lost answer held is handed out when it has been idle. No report is ever trimmed. All keys
share one hash tag, one slot of a cluster.
"""

import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from service.redis.access import RedisAccess
from service.redis.connection import RedisAway, RedisConnection
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
        access: RedisAccess,
        prefix: str = "shopdir",
        *,
        window_seconds: float = 86_400.0,
        timeout: float = 1.5,
        max_deliveries: int = 5,
    ) -> None:
        """Connect lazily.

        Args:
            access: the way to Redis.
            prefix: what all keys begin with, in braces: one hash tag.
            window_seconds: how long the same report appends nothing more (Q5).
            timeout: seconds for a whole call: waiting for a connection, connecting, asking again and all.
            max_deliveries: how often a re-check is handed out before it becomes a dead letter.
        """
        self._redis = RedisConnection(access, connections=_CONNECTIONS, timeout=timeout, purpose="reports")
        self._client: Any = self._redis.client
        self._window_ms = max(1, round(window_seconds * 1000))
        self._max_deliveries = max_deliveries
        tag = f"{{{prefix}}}"
        self._marks = f"{tag}:reports:mark:"
        self._reports = f"{tag}:reports"
        self._rechecks = f"{tag}:rechecks"
        self._dead = f"{tag}:rechecks:dead"
        self._append, self._claim, self._acknowledge, self._waiting = map(
            self._redis.script, (APPEND, CLAIM, ACKNOWLEDGE, WAITING)
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

    async def check(self) -> None:
        """Whether it answers. One that takes no writes is found out by the limiter, which is in Redis too then."""
        await self.depth()

    async def close(self) -> None:
        """Close the connections; what is under way is given up."""
        await self._redis.close()

    async def _page(self, start: str) -> list[tuple[str, dict[str, str]]]:
        found: Any = await self._asked(lambda: self._client.xrange(self._reports, start, "+", _PAGE), twice=True)
        return list(found)

    async def _asked(self, ask: Callable[[], Awaitable[_Answer]], *, twice: bool = False) -> _Answer:
        """The answer, within the deadline, or our own failure; where `twice`, a lost connection is not the end."""
        try:
            return await self._redis.execute(ask, retry=twice)
        except RedisAway as away:
            raise ReportsUnavailable(f"Redis did not confirm: {away}") from None

    async def _tell_durability(self) -> None:
        """Warn once when an acknowledgement is worth less than it should be; a server that won't say is left alone."""
        stated = await self._redis.settings("append*", self._reports)
        if not stated:
            _LOG.info("Redis does not tell whether it syncs before it answers")
            return
        if (stated.get("appendonly"), stated.get("appendfsync")) != ("yes", "always"):
            _LOG.warning("Redis answers before a report is on disk: set appendonly yes and appendfsync always")
