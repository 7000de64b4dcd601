"""The counts of queries in Redis, for the workers of any number of machines. All keys share one hash tag."""

import secrets
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from service.insights.protocol import (
    KEPT_DAYS,
    KEY_BYTES,
    LEAST_GROUPS,
    MOST_QUERIES,
    InsightsUnavailable,
    QueryCount,
    Tally,
)
from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection, Script

_CONNECTIONS: Final = 2
_BLOCK: Final = 200
_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600

# KEYS: key, groups, asked, not found, queries of a day. ARGV: the key of a new day; when it is forgotten, in seconds
# since 1970.
_KEY: Final = Script("""
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EXAT', ARGV[2])
return redis.call('GET', KEYS[1])
""")

# KEYS as of _KEY. ARGV: when the hashes are forgotten, when the counts are, the groups that are needed, the most
# queries; then for each tally: mark, query, asked, not found, and its groups as one text of 16 digits each.
_ADD: Final = Script("""
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local width, needed, most = 16, tonumber(ARGV[3]), tonumber(ARGV[4])
for at = 5, #ARGV, 5 do
  local mark, groups = ARGV[at], ARGV[at + 4]
  local known = redis.call('HGET', KEYS[2], mark) or ''
  for from = 1, #groups, width do
    local group = string.sub(groups, from, from + width - 1)
    local is_known = false
    for other = 1, #known, width do
      is_known = is_known or string.sub(known, other, other + width - 1) == group
    end
    if not is_known and #known < needed * width then
      known = known .. group
    end
  end
  redis.call('HSET', KEYS[2], mark, known)
  redis.call('ZINCRBY', KEYS[3], ARGV[at + 2], mark)
  redis.call('ZINCRBY', KEYS[4], ARGV[at + 3], mark)
  if #known >= needed * width then
    redis.call('HSET', KEYS[5], mark, ARGV[at + 1])
  end
end
local over = redis.call('ZCARD', KEYS[3]) - most
if over > 0 then
  for _, mark in ipairs(redis.call('ZRANGE', KEYS[3], 0, over - 1)) do
    redis.call('ZREM', KEYS[3], mark)
    redis.call('ZREM', KEYS[4], mark)
    redis.call('HDEL', KEYS[2], mark)
    redis.call('HDEL', KEYS[5], mark)
  end
end
redis.call('EXPIREAT', KEYS[2], ARGV[1])
for at = 3, 5 do
  redis.call('EXPIREAT', KEYS[at], ARGV[2])
end
return 1
""")

# KEYS as of _KEY. Returns query, asked and not found of each shown query.
_COUNTS: Final = Script("""
local found, shown = {}, redis.call('HGETALL', KEYS[5])
for at = 1, #shown, 2 do
  found[#found + 1] = {
    shown[at + 1], redis.call('ZSCORE', KEYS[3], shown[at]) or '0', redis.call('ZSCORE', KEYS[4], shown[at]) or '0',
  }
end
return found
""")

_ERASE: Final = Script("return redis.call('DEL', unpack(KEYS))")


class RedisInsights:
    """A store in Redis 7.0 or later."""

    def __init__(self, access: RedisAccess, prefix: str = "shopdir", timeout: float = 1.5) -> None:
        """Configure the store; it connects at the first call."""
        self._redis = RedisConnection(
            access, connections=_CONNECTIONS, timeout=timeout, purpose="insights", unavailable=InsightsUnavailable
        )
        self._prefix = f"{{{prefix}}}:insights"

    async def key_of(self, day: str) -> bytes:
        reply = await self._redis.run(
            _KEY, self._keys(day), [secrets.token_hex(KEY_BYTES), _forgotten_at(day)], retry=True
        )
        return bytes.fromhex(reply)

    async def add(self, day: str, tallies: Sequence[Tally]) -> None:
        ends = [_forgotten_at(day), _end_of(day) + KEPT_DAYS * _DAY_S, LEAST_GROUPS, MOST_QUERIES]
        for start in range(0, len(tallies), _BLOCK):
            flat: list[str | int] = []
            for tally in tallies[start : start + _BLOCK]:
                flat += [tally.mark, tally.query, tally.asked, tally.not_found, "".join(tally.groups)]
            await self._redis.run(_ADD, self._keys(day), [*ends, *flat])

    async def counts(self, since: str) -> tuple[QueryCount, ...]:
        sums: dict[str, tuple[int, int]] = {}
        for day in _days(date.fromisoformat(since)):
            for query, asked, not_found in await self._redis.run(_COUNTS, self._keys(day), retry=True):
                known = sums.get(query, (0, 0))
                sums[query] = known[0] + int(float(asked)), known[1] + int(float(not_found))
        found = (QueryCount(query, *counts) for query, counts in sums.items())
        return tuple(sorted(found, key=lambda one: (-one.asked, one.query)))

    async def erase(self) -> None:
        keys = [key for day in _days(_today() - timedelta(days=KEPT_DAYS)) for key in self._keys(day)]
        await self._redis.run(_ERASE, keys, retry=True)

    async def close(self) -> None:
        await self._redis.close()

    def _keys(self, day: str) -> list[str]:
        return [f"{self._prefix}:{day}:{part}" for part in ("key", "groups", "asked", "not-found", "queries")]


def _today() -> date:
    return datetime.now(UTC).date()


def _days(first: date) -> list[str]:
    """The days from one on, today included, and tomorrow's where a clock is ahead; none before what is kept."""
    today = _today()
    first = max(first, today - timedelta(days=KEPT_DAYS))
    return [(first + timedelta(days=number)).isoformat() for number in range((today - first).days + 2)]


def _end_of(day: str) -> int:
    return int(datetime.combine(date.fromisoformat(day), time(), UTC).timestamp()) + _DAY_S


def _forgotten_at(day: str) -> int:
    """When the key and the hashes of a day end: with the day, or in an hour where this clock is behind Redis."""
    return max(_end_of(day), int(datetime.now(UTC).timestamp()) + _HOUR_S)
