"""What one decision on a quota costs Redis alone: of callers who ask now and then, and of one who asks all the time.

`python -m bench.quotas`; with and without an append-only file that is synced before each answer.
"""

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.spent import processor
from service.limits.policy import Bucket, Quota
from service.limits.redis import RedisLimiter
from service.redis_access import RedisAccess
from tests.real.redis import RedisServer
from tests.real.sources import Missing, find_redis_program

_DECISIONS: Final = 8_000
_AT_ONCE: Final = 8
_CALLERS: Final = 1_000
_QUOTA: Final = Quota(Bucket.SUGGEST, 1_000_000_000, 60)


async def decisions_ms(redis: RedisServer, callers: int, slots: int) -> float:
    """Milliseconds of Redis's processor time for one decision.

    Args:
        redis: the server.
        callers: how many take turns.
        slots: seconds before, in each of which every caller has asked.
    """
    moment = time.time()
    limiter = RedisLimiter(RedisAccess(redis.url), f"bench-{slots}", 10.0, lambda: moment)

    async def ask(first: int, count: int) -> None:
        for number in range(first, count, _AT_ONCE):
            await limiter.hit(f"caller-{number % callers}", _QUOTA)

    for _ in range(slots):
        await asyncio.gather(*(ask(first, callers) for first in range(_AT_ONCE)))
        moment += 1
    before = processor(redis.process.pid)
    await asyncio.gather(*(ask(first, _DECISIONS) for first in range(_AT_ONCE)))
    found = (processor(redis.process.pid) - before) * 1000 / _DECISIONS
    await limiter.close()
    return found


def main() -> None:
    """Measure and print."""
    program = find_redis_program()
    if isinstance(program, Missing):
        raise SystemExit(f"no Redis: {program.reason}")
    table = Table("appendfsync", "asked in so many seconds of the minute", "Redis, ms", title="One decision on a quota")
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
