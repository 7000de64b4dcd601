"""The cost of a quota decision: in memory, in Redis one by one, and in Redis by blocks; `python -m bench.quotas`.

The three limiters alternate, so that other work on the machine affects all of them. A second table has the cost of
Redis alone: for callers with few requests and for one with many, by the setting `appendfsync`.
"""

import asyncio
import statistics
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.commands import processor_seconds
from service.limits.blocks import BlockLimiter
from service.limits.memory import MemoryLimiter
from service.limits.policy import Bucket, Limiter, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from tests.support.real.redis import RedisServer
from tests.support.real.sources import Missing, find_redis_program

_DECISIONS: Final = 8_000
_CONCURRENT: Final = 8
_CALLERS: Final = 1_000
_QUOTA: Final = Quota(Bucket.SUGGEST, 1_000_000_000, 60)
_ADDRESS: Final = Quota(Bucket.SUGGEST, 1_200, 60)
_WITH_TOKEN: Final = Quota(Bucket.SUGGEST, 12_000, 60)
_ROUNDS: Final = 5
_REQUESTS: Final = 1_200
_SESSIONS: Final = 2


@dataclass(frozen=True, slots=True)
class Cost:
    """The processor time of a suggest request in microseconds, and the share of requests that waited for Redis."""

    service: float
    redis: float
    waited: float


async def suggest_requests(limiter: Limiter, redis: RedisServer, quota: Quota, callers: str) -> Cost:
    """Send as many suggest requests as the quota of an address allows, caller after caller.

    `callers` is the prefix of their keys.
    """
    waited = 0
    before, began = processor_seconds(redis.process.pid), time.process_time()
    for caller in range(_SESSIONS):
        key = f"{callers}-{caller}"
        for _ in range(_REQUESTS):
            if limiter.take(key, quota) is None:
                waited += 1
                await limiter.hit(key, quota)
    spent, of_redis = time.process_time() - began, processor_seconds(redis.process.pid) - before
    done = _REQUESTS * _SESSIONS
    return Cost(spent * 1e6 / done, of_redis * 1e6 / done, waited / done)


async def compared(redis: RedisServer, quota: Quota) -> dict[str, Cost]:
    """The medians over rounds in which the limiters alternate."""
    access = RedisAccess(redis.url)
    limiters: dict[str, Limiter] = {
        "memory": MemoryLimiter(),
        "Redis, one by one": BlockLimiter(RedisLimiter(access, "bench-single", 10.0), max_keys=0),
        "Redis, by blocks": BlockLimiter(RedisLimiter(access, "bench-blocks", 10.0)),
    }
    rounds: dict[str, list[Cost]] = {name: [] for name in limiters}
    for number in range(_ROUNDS):
        for name, limiter in limiters.items():
            rounds[name].append(await suggest_requests(limiter, redis, quota, f"caller-{number}"))
    for limiter in limiters.values():
        await limiter.close()
    parts = {name: zip(*map(astuple, found), strict=True) for name, found in rounds.items()}
    return {name: Cost(*map(statistics.median, of_costs)) for name, of_costs in parts.items()}


async def decisions_ms(redis: RedisServer, callers: int, slots: int) -> float:
    """Milliseconds of Redis's processor time for one decision.

    The callers alternate; each has sent a request in each of the `slots` seconds before.
    """
    now = time.time()
    limiter = RedisLimiter(RedisAccess(redis.url), f"bench-{slots}", 10.0, lambda: now)

    async def ask(first: int, count: int) -> None:
        for number in range(first, count, _CONCURRENT):
            await limiter.count(f"caller-{number % callers}", _QUOTA, 1, 1)

    for _ in range(slots):
        await asyncio.gather(*(ask(first, callers) for first in range(_CONCURRENT)))
        now += 1
    before = processor_seconds(redis.process.pid)
    await asyncio.gather(*(ask(first, _DECISIONS) for first in range(_CONCURRENT)))
    found = (processor_seconds(redis.process.pid) - before) * 1000 / _DECISIONS
    await limiter.close()
    return found


def main() -> None:
    """Measure and print."""
    program = find_redis_program()
    if isinstance(program, Missing):
        raise SystemExit(f"no Redis: {program.reason}")
    table = Table("quota", "counted in", "service, us", "Redis, us", "waited", title="One suggest request")
    with TemporaryDirectory() as folder, RedisServer(str(program), Path(folder)) as redis:
        for quota in (_ADDRESS, _WITH_TOKEN):
            for name, cost in asyncio.run(compared(redis, quota)).items():
                row = (f"{cost.service:.2f}", f"{cost.redis:.2f}", f"{cost.waited:.2%}")
                table.add_row(f"{quota.limit:,} a minute", name, *row)
    Console().print(table)
    table = Table("appendfsync", "seconds of the minute with requests", "Redis, ms", title="One decision on a quota")
    for sync in ("always", "everysec", "none"):
        options = () if sync == "none" else ("--appendfsync", sync)
        with (
            TemporaryDirectory() as folder,
            RedisServer(str(program), Path(folder), appendonly=sync != "none", options=options) as redis,
        ):
            for callers, slots in ((_CALLERS, 2), (1, 59)):
                table.add_row(sync, str(slots + 1), f"{asyncio.run(decisions_ms(redis, callers, slots)):.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
