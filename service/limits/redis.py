"""Quotas in Redis, one count for all workers: the arithmetic of the memory limiter as one atomic script (Q2).

The same script hands out blocks of units that a worker may use later (`service.limits.blocks`).

A key is a hash from slots to `units:latest`, some sixty at most, and goes by itself when its quota is whole again. The
time is the server's, so that workers with different clocks count alike.
"""

from collections.abc import Callable
from typing import Final

from service.limits.blocks import Taken
from service.limits.policy import Bucket, Quota
from service.limits.protocol import (
    Decision,
    LimiterNotWaitedFor,
    LimiterUnavailable,
    slot_milliseconds,
    whole_seconds,
)
from service.redis.access import RedisAccess
from service.redis.connection import RedisAway, RedisConnection

_CONNECTIONS: Final = 32
_CONNECTIONS_OF_REPORTS: Final = 8
_HIT: Final = """
local limit, window, slot_ms, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local least, now = tonumber(ARGV[5]), tonumber(ARGV[6])
if now == nil then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local entries, gone, used = {}, {}, 0
local slot = string.format('%.0f', math.floor(now / slot_ms))
local in_slot, newest = 0, now
local first, last
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local units, latest = string.match(stored[i + 1], '^(%d+):(%d+)$')
  units, latest = tonumber(units), tonumber(latest)
  if latest + window > now then
    used = used + units
    entries[#entries + 1] = {latest, units}
    if stored[i] == slot then
      -- The clock may have been set back: what is counted is never forgotten sooner for that.
      in_slot, newest = units, math.max(newest, latest)
    else
      first, last = math.min(first or latest, latest), math.max(last or latest, latest)
    end
  else
    gone[#gone + 1] = stored[i]
  end
end

-- Of the last units no worker takes many ahead: others may have callers for them.
local units = math.min(cost, math.max(least, math.floor((limit - used) / 8)))
if used + units <= limit then
  first, last = math.min(first or newest, newest), math.max(last or newest, newest)
  -- Before anything is removed: with no memory left Redis refuses a script's first write, and none after one.
  redis.call('HSET', KEYS[1], slot, string.format('%.0f:%.0f', in_slot + units, newest))
  if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', last + window - now))
  return {1, limit - used - units, first + window - now, 0, units}
end

table.sort(entries, function(a, b) return a[1] < b[1] end)
local left, retry = used, window
for _, entry in ipairs(entries) do
  left = left - entry[2]
  if left + least <= limit then
    retry = entry[1] + window - now
    break
  end
end
local oldest = entries[1] and entries[1][1] or now
return {0, math.max(0, limit - used), oldest + window - now, retry, 0}
"""


class RedisLimiter:
    """A limiter that any number of workers share."""

    def __init__(
        self,
        access: RedisAccess,
        prefix: str,
        timeout: float = 0.25,
        clock: Callable[[], float] | None = None,
        *,
        report_timeout: float = 1.0,
    ) -> None:
        """Name the server; nothing is asked of it yet.

        Args:
            access: the way to Redis.
            prefix: what all keys begin with.
            timeout: seconds that one decision may take.
            clock: seconds since 1970; the server's own without it.
            report_timeout: seconds that one on a report may take, for which nobody else can decide.
        """
        # Of their own: how soon a node is given up goes by how long a call may take.
        self._reads = RedisConnection(access, connections=_CONNECTIONS, timeout=timeout, purpose="limiter")
        self._reports = RedisConnection(
            access, connections=_CONNECTIONS_OF_REPORTS, timeout=report_timeout, purpose="limiter"
        )
        self._scripts = {redis: redis.script(_HIT) for redis in (self._reads, self._reports)}
        self._prefix = f"{prefix}:quota:"
        self._clock = clock

    @property
    def degraded(self) -> bool:
        """Never: it decides by Redis or not at all."""
        return False

    def take(self, key: str, quota: Quota) -> Decision | None:  # noqa: ARG002 - as `Limiter` has it
        """None: nothing is at hand."""
        return None

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there."""
        return (await self._counted(key, quota, cost, cost)).decision

    async def take_block(self, key: str, quota: Quota, units: int) -> Taken:
        """Count units that may be used later: of what is left at most an eighth, but one at least."""
        return await self._counted(key, quota, units, 1)

    async def close(self) -> None:
        """Close the connections."""
        await self._reads.close()
        await self._reports.close()

    async def _counted(self, key: str, quota: Quota, units: int, least: int) -> Taken:
        redis = self._reports if quota.bucket is Bucket.REPORTS else self._reads
        now = "" if self._clock is None else round(self._clock() * 1000)
        arguments = [quota.limit, quota.window * 1000, slot_milliseconds(quota), units, least, now]
        try:
            # Twice: units that were counted before their connection died count twice.
            allowed, remaining, reset, retry, taken = await redis.execute(
                lambda: self._scripts[redis]([self._prefix + key], arguments), retry=True
            )
        except RedisAway as away:
            kind = LimiterNotWaitedFor if away.late else LimiterUnavailable
            raise kind(f"Redis: {away}") from None
        retry_after = None if allowed else whole_seconds(retry)
        return Taken(Decision(bool(allowed), quota.limit, remaining, whole_seconds(reset), retry_after), taken)
