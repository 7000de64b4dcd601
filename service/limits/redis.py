"""Quotas in Redis, one count for all workers: the algorithm of the memory limiter as one atomic script (Q2).

The same script grants blocks of units that a worker may use later (`service.limits.blocks`).

A key is a hash from slots to `units:latest`, some sixty at most; it expires when the whole quota is available again.
The script uses the server's time, so that clocks of workers do not matter.
"""

from collections.abc import Callable
from typing import Final

from service.limits.policy import Bucket, Decision, LimiterUnavailable, Quota, slot_milliseconds, whole_seconds
from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection, Script

_CONNECTIONS: Final = 32
_REPORT_CONNECTIONS: Final = 8
_COUNT: Final = Script("""
local limit, window, slot_ms, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local least, now = tonumber(ARGV[5]), tonumber(ARGV[6])
if now == nil then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local entries, expired, used = {}, {}, 0
local slot = string.format('%.0f', math.floor(now / slot_ms))
local in_slot, newest = 0, now
local first, last
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local units, latest = string.match(stored[i + 1], '^(%d+):(%d+)$')
  units, latest = tonumber(units), tonumber(latest)
  -- Units of more than a window ahead were counted before the clock was set back: they would be refused for so long.
  if latest + window > now and latest < now + window then
    used = used + units
    entries[#entries + 1] = {latest, units}
    if stored[i] == slot then
      -- The clock may have been set back: units must not expire sooner for that.
      in_slot, newest = units, math.max(newest, latest)
    else
      first, last = math.min(first or latest, latest), math.max(last or latest, latest)
    end
  else
    expired[#expired + 1] = stored[i]
  end
end

-- When few units remain, no worker takes many of them: other workers may need them.
local units = math.min(cost, math.max(least, math.floor((limit - used) / 8)))
if used + units <= limit then
  first, last = math.min(first or newest, newest), math.max(last or newest, newest)
  -- Before the removal: without free memory Redis refuses a script's first write, but no later one.
  redis.call('HSET', KEYS[1], slot, string.format('%.0f:%.0f', in_slot + units, newest))
  if #expired > 0 then redis.call('HDEL', KEYS[1], unpack(expired)) end
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', last + window - now))
  return {1, limit - used - units, first + window - now, 0, units}
end

table.sort(entries, function(a, b) return a[1] < b[1] end)
local unexpired, retry = used, window
for _, entry in ipairs(entries) do
  unexpired = unexpired - entry[2]
  if unexpired + least <= limit then
    retry = entry[1] + window - now
    break
  end
end
local oldest = entries[1] and entries[1][1] or now
return {0, math.max(0, limit - used), oldest + window - now, retry, 0}
""")


class RedisLimiter:
    """The count of a limiter that any number of workers share."""

    def __init__(
        self,
        access: RedisAccess,
        prefix: str,
        timeout: float = 0.25,
        clock: Callable[[], float] | None = None,
        *,
        report_timeout: float = 1.0,
    ) -> None:
        """A decision may take `timeout` seconds; one on a report, which has no fallback, `report_timeout`.

        `clock` gives seconds since 1970; the server's time by default.
        """
        # Two connections, as the time-out of a call determines how soon a node is given up.
        self._reads, self._reports = (
            RedisConnection(
                access, connections=count, timeout=seconds, purpose="limiter", unavailable=LimiterUnavailable
            )
            for count, seconds in ((_CONNECTIONS, timeout), (_REPORT_CONNECTIONS, report_timeout))
        )
        self._prefix = f"{prefix}:quota:"
        self._clock = clock

    async def count(self, key: str, quota: Quota, units: int, least: int) -> tuple[Decision, int]:
        """Count units: at most an eighth of the remaining ones, but at least `least`."""
        redis = self._reports if quota.bucket is Bucket.REPORTS else self._reads
        now = "" if self._clock is None else round(self._clock() * 1000)
        arguments = [quota.limit, quota.window * 1000, slot_milliseconds(quota), units, least, now]
        # A retry after a lost connection may count the units twice.
        reply = await redis.run(_COUNT, [self._prefix + key], arguments, retry=True)
        allowed, remaining, reset, retry, granted = reply
        retry_after = None if allowed else whole_seconds(retry)
        return Decision(bool(allowed), quota.limit, remaining, whole_seconds(reset), retry_after), granted

    async def close(self) -> None:
        await self._reads.close()
        await self._reports.close()
