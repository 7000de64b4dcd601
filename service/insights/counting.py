"""Counts queries in memory, and adds them to the store of all workers now and then.

A suggest request counts when no other one of its address follows within two seconds: letters on the way to a word are
not queries. What is in memory between two flushes is bounded; the rarest queries are dropped where there are more.
"""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from index_mappings.text import fold
from service.insights.protocol import LEAST_GROUPS, MOST_QUERIES, InsightStore, InsightsUnavailable, Tally, mark_of
from service.limits.policy import address_group

_REST_S: Final = 2.0
_FLUSH_S: Final = 30.0
_LEAST_CHARACTERS: Final = 2
_MOST_CHARACTERS: Final = 100
# The share that is dropped at a time, so that a flood of queries costs one pass for many.
_DROPPED: Final = MOST_QUERIES // 10
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    asked: int = 0
    not_found: int = 0
    groups: set[str] = field(default_factory=set)


class InsightCounter:
    """Counts what callers of one process ask. Nothing is counted before `run` has the key of the day."""

    def __init__(
        self,
        store: InsightStore,
        text_of: Callable[[bytes], str],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Count into a store, which `close` closes. `text_of` reads the text of a valid query string of /suggest."""
        self.store = store
        self._text_of = text_of
        self._clock, self._now = clock, now
        self._day = ""
        self._key: bytes | None = None
        # By address: the last suggest request's query string, when it came, and whether it found nothing.
        self._resting: dict[str, tuple[bytes, float, bool]] = {}
        self._seen: dict[str, _Seen] = {}
        self._flushed_at = clock()

    def suggested(self, address: str, raw: bytes, *, nothing: bool) -> None:
        """Note a suggest request that was answered; it counts if the address rests now."""
        now = self._clock()
        former = self._resting.get(address)
        if former is not None and now - former[1] >= _REST_S:
            self.found(address, self._text_of(former[0]), nothing=former[2])
        if former is not None or len(self._resting) < MOST_QUERIES:
            self._resting[address] = raw, now, nothing

    def found(self, address: str, query: str, *, nothing: bool) -> None:
        """Count a call of find_shop."""
        text = fold(query)
        if self._key is None or not _LEAST_CHARACTERS <= len(text) <= _MOST_CHARACTERS:
            return
        seen = self._seen.get(text)
        if seen is None:
            if len(self._seen) >= MOST_QUERIES:
                for rarest in heapq.nsmallest(_DROPPED, self._seen, key=lambda one: self._seen[one].asked):
                    del self._seen[rarest]
            seen = self._seen[text] = _Seen()
        seen.asked += 1
        seen.not_found += nothing
        if len(seen.groups) < LEAST_GROUPS:
            seen.groups.add(mark_of(self._key, address_group(address)))

    async def run(self) -> None:
        """Count what rests, and flush, until the task is cancelled."""
        while True:
            await self.tick()
            await asyncio.sleep(_REST_S / 2)

    async def tick(self) -> None:
        """Count what rests; flush at an interval and at the end of a day, whose key is then replaced."""
        now = self._clock()
        self._count_resting(before=now - _REST_S)
        day = f"{self._now():%Y-%m-%d}"
        if day != self._day or now - self._flushed_at >= _FLUSH_S:
            self._flushed_at = now
            await self.flush()
            if day != self._day or self._key is None:
                await self._begin(day)

    async def flush(self) -> None:
        """Add to the store what was counted; it stays for the next time if the store does not answer."""
        if self._key is None or not self._seen:
            return
        seen, self._seen = self._seen, {}
        tallies = [
            Tally(query, mark_of(self._key, query), one.asked, one.not_found, tuple(one.groups))
            for query, one in seen.items()
        ]
        try:
            await self.store.add(self._day, tallies)
        except InsightsUnavailable as error:
            _LOG.warning("the counts of queries could not be stored: %s", error)
            for query, one in seen.items():
                known = self._seen.setdefault(query, one)
                if known is not one:
                    known.asked, known.not_found = known.asked + one.asked, known.not_found + one.not_found
                    known.groups |= one.groups

    async def close(self) -> None:
        """Count what is resting, flush, and close the store."""
        self._count_resting(before=self._clock())
        await self.flush()
        await self.store.close()

    async def _begin(self, day: str) -> None:
        # What was counted with the former key can't be added any more.
        self._seen.clear()
        self._day, self._key = day, None
        try:
            self._key = await self.store.key_of(day)
        except InsightsUnavailable as error:
            _LOG.warning("queries are not counted: %s", error)

    def _count_resting(self, before: float) -> None:
        rested = [address for address, (_, at, _) in self._resting.items() if at <= before]
        for address in rested:
            raw, _, nothing = self._resting.pop(address)
            self.found(address, self._text_of(raw), nothing=nothing)
