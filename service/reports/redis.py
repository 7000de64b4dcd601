"""Reports in Redis Streams, for any number of service processes and workers.

When `append` returns, Redis has run the script and answered. With `appendonly yes` and `appendfsync always` (the store
warns if these are not set) the report is then on the server's disk and survives a kill and a power cut. With
`appendfsync everysec` it survives a kill, but not a power cut within the second. The store does not wait for replicas:
a failover may lose reports that only the old primary had.

Reads and appends are retried once within their deadline when the connection broke. An append may be retried because the
dedup mark stores the id of the attempt: the retry gets the answer of the first attempt. A claim is not retried: entries
of a lost answer are delivered again when they have been idle. Reports are never trimmed. All keys share one hash tag,
and so one slot of a cluster.

A Lua script either completes or writes nothing: keys that could have another type are read before the first write, and
Redis checks memory and write permission at the first write. The scripts need Redis 7.0.
"""

import logging
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection, Script
from service.reports.protocol import (
    RECHECK_GROUP,
    Recheck,
    Report,
    ReportsUnavailable,
    Waiting,
    Worker,
    report_from_texts,
    report_to_texts,
)

_CONNECTIONS: Final = 16
_PAGE: Final = 500
_ENTRY_ID: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_LOG: Final = logging.getLogger(__name__)
# KEYS: mark, reports, rechecks. ARGV: window in ms, the id of this attempt, then the report's fields and values.
# An attempt that is retried, as its answer was lost, gets the same answer again.
_APPEND: Final = Script("""
local existing = redis.call('GET', KEYS[1])
if existing then
  return existing == ARGV[2] and 1 or 0
end
redis.call('XLEN', KEYS[2])
redis.call('XLEN', KEYS[3])
local report = redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
redis.call('XADD', KEYS[3], '*', 'report', report, unpack(ARGV, 3))
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 1
""")

# KEYS: rechecks, dead letters. ARGV: group, worker, count, idle in ms (at least 1, as entries read by this script have
# 0), and how often an entry may be delivered. Returns {id, fields, deliveries} of each entry.
_CLAIM: Final = Script("""
local rechecks, dead, group, worker = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local count, idle, max_deliveries = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
redis.call('XLEN', dead)
redis.pcall('XGROUP', 'CREATE', rechecks, group, '0', 'MKSTREAM')

local from = '-'
repeat
  local held = redis.call('XPENDING', rechecks, group, 'IDLE', idle, from, '+', 100)
  for _, state in ipairs(held) do
    from = '(' .. state[1]
    if state[4] >= max_deliveries then
      local entry = redis.call('XRANGE', rechecks, state[1], state[1])[1]
      if entry then
        redis.call('XADD', dead, '*', 'recheck', state[1], 'worker', state[2], 'deliveries', state[4],
          unpack(entry[2]))
      end
      redis.call('XACK', rechecks, group, state[1])
      redis.call('XDEL', rechecks, state[1])
    end
  end
until #held < 100

local claimed = {}
local new = redis.call('XREADGROUP', 'GROUP', group, worker, 'COUNT', count, 'STREAMS', rechecks, '>')
if new then
  for _, entry in ipairs(new[1][2]) do
    claimed[#claimed + 1] = {entry[1], entry[2], 1}
  end
end
local cursor = '0-0'
while #claimed < count do
  local reply = redis.call('XAUTOCLAIM', rechecks, group, worker, idle, cursor, 'COUNT', count - #claimed)
  cursor = reply[1]
  for _, entry in ipairs(reply[2]) do
    local state = redis.call('XPENDING', rechecks, group, entry[1], entry[1], 1)[1]
    claimed[#claimed + 1] = {entry[1], entry[2], state[4]}
  end
  if cursor == '0-0' then
    break
  end
end
return claimed
""")

# KEYS: rechecks. ARGV: group, worker, then ids. Returns those that the worker held.
_ACKNOWLEDGE: Final = Script("""
local done = {}
for index = 3, #ARGV do
  local held = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[index], ARGV[index], 1)
  if not held.err and held[1] and held[1][2] == ARGV[2] then
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[index])
    redis.call('XDEL', KEYS[1], ARGV[index])
    done[#done + 1] = ARGV[index]
  end
end
return done
""")

# KEYS: rechecks, dead letters. ARGV: group, count. The group does not exist before the first claim.
_WAITING: Final = Script("""
local function or_empty(reply)
  return reply.err and {} or reply
end
return {
  redis.call('XLEN', KEYS[1]),
  redis.call('XLEN', KEYS[2]),
  or_empty(redis.pcall('XPENDING', KEYS[1], ARGV[1]))[1] or 0,
  or_empty(redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])),
  redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[2]),
  or_empty(redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[2])),
  redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', ARGV[2]),
}
""")


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
        """All keys have the prefix, in braces as their hash tag; the other options are those of `SqliteReports`."""
        self._redis = RedisConnection(
            access,
            connections=_CONNECTIONS,
            timeout=timeout,
            purpose="reports",
            unavailable=ReportsUnavailable,
            message="Redis did not confirm",
        )
        self._window_ms = max(1, round(window_seconds * 1000))
        self._max_deliveries = max_deliveries
        tag = f"{{{prefix}}}"
        self._marks = f"{tag}:reports:mark:"
        self._reports = f"{tag}:reports"
        self._rechecks = f"{tag}:rechecks"
        self._dead = f"{tag}:rechecks:dead"
        self._durability_checked = False

    async def append(self, report: Report) -> bool:
        """Store a report and queue its re-check in one script: mark, report and re-check, or none of them."""
        texts = report_to_texts(report)
        flat = [part for field in texts.items() for part in field]
        keys = [f"{self._marks}{report.mark}", self._reports, self._rechecks]
        arguments: list[str | int] = [self._window_ms, secrets.token_hex(8), *flat]

        appended = bool(await self._redis.run(_APPEND, keys, arguments, retry=True))
        if not self._durability_checked:
            self._durability_checked = True
            await self._check_durability()
        return appended

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Claim re-checks, new ones first, then abandoned ones; those delivered too often become dead letters."""
        idle_ms = max(1, round(idle_seconds * 1000))
        arguments: list[str | int] = [RECHECK_GROUP, worker, count, idle_ms, self._max_deliveries]
        reply = await self._redis.run(_CLAIM, [self._rechecks, self._dead], arguments)
        return tuple(
            Recheck(entry_id, report_from_texts(_as_dict(fields)), int(deliveries), worker, 0.0)
            for entry_id, fields, deliveries in reply
        )

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        arguments = [RECHECK_GROUP, worker, *filter(_ENTRY_ID.fullmatch, ids)]
        return tuple(await self._redis.run(_ACKNOWLEDGE, [self._rechecks], arguments))

    async def waiting(self, count: int) -> Waiting:
        reply = await self._redis.run(_WAITING, [self._rechecks, self._dead], [RECHECK_GROUP, count], retry=True)
        return _waiting(reply)

    async def export(self) -> AsyncIterator[Report]:
        """All reports ever stored, in the order of appending, read page by page."""
        page = await self._page("-")
        while page:
            for _, texts in page:
                yield report_from_texts(texts)
            page = await self._page(f"({page[-1][0]}")

    async def check(self) -> None:
        """Write a mark of no report, as only a write shows that Redis has room and takes writes."""
        await self._redis.execute(lambda: self._redis.client.set(f"{self._marks}check", "", px=1), retry=True)

    async def close(self) -> None:
        await self._redis.close()

    async def _page(self, start: str) -> list[tuple[str, dict[str, str]]]:
        client = self._redis.client
        return list(await self._redis.execute(lambda: client.xrange(self._reports, start, "+", _PAGE), retry=True))

    async def _check_durability(self) -> None:
        """Warn if Redis answers before a report is on disk; a server may refuse to show its settings."""
        settings = await self._redis.settings("append*", self._reports)
        if not settings:
            _LOG.info("Redis does not show whether it syncs before it answers")
            return
        if (settings.get("appendonly"), settings.get("appendfsync")) != ("yes", "always"):
            _LOG.warning("Redis answers before a report is on disk: set appendonly yes and appendfsync always")


# The replies of the scripts are nested lists, in which fields and values alternate.


def _waiting(reply: Sequence[Any]) -> Waiting:
    """The state of the queue: [depth, dead, pending, consumers, entries, their states, dead letters]."""
    depth, dead, pending, consumers, entries, states, dead_letters = reply
    held = {entry_id: (deliveries, worker, idle_ms / 1000) for entry_id, worker, idle_ms, deliveries in states}
    workers = [Worker(one["name"], int(one["pending"]), one["idle"] / 1000) for one in map(_as_dict, consumers)]
    return Waiting(
        depth=depth,
        lag=depth - pending,
        pending=pending,
        dead=dead,
        workers=tuple(sorted((worker for worker in workers if worker.pending), key=lambda worker: worker.name)),
        rechecks=tuple(
            Recheck(entry_id, report_from_texts(_as_dict(fields)), *held.get(entry_id, (0, None, None)))
            for entry_id, fields in entries
        ),
        dead_letters=tuple(
            Recheck(texts["recheck"], report_from_texts(texts), int(texts["deliveries"]), texts["worker"], None)
            for texts in (_as_dict(fields) for _, fields in dead_letters)
        ),
    )


def _as_dict(flat: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
