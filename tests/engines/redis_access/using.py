"""All that the service does with Redis, once, over one way to it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from service.auth.protocol import Token, TokensUnavailable
from service.auth.redis import RedisTokenStore
from service.auth.secrets import hash_of
from service.limits.blocks import BlockLimiter
from service.limits.policy import Bucket, LimiterUnavailable, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from tests.rules.reports.stores import exported, report

T = TypeVar("T")

WIDGET: Final = Token("a1", "widget", "default", None)
READS: Final = Quota(Bucket.READS, 100, 60)
UNAVAILABLE: Final = (ReportsUnavailable, TokensUnavailable, LimiterUnavailable)
# What `use` answers where all is as it should be.
USED: Final = ("stored, claimed and done", "issued, found and revoked", "counted")
_BOUND_S: Final = 15.0
# Seconds for a command where what is done counts, and not how fast.
PATIENCE_S: Final = 5.0
_AGAIN_AFTER_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Stores:
    reports: RedisReports
    tokens: RedisTokenStore
    limiter: BlockLimiter


@asynccontextmanager
async def opened(
    access: RedisAccess, prefix: str = "shopdir", *, max_deliveries: int = 5, timeout: float | None = None
) -> AsyncIterator[Stores]:
    """The three, with the service's own deadlines unless another is given; closed at the end."""
    stated: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    stores = Stores(
        RedisReports(access, prefix, max_deliveries=max_deliveries, **stated),
        RedisTokenStore(access, prefix, **stated),
        BlockLimiter(RedisLimiter(access, prefix, **stated)),
    )
    try:
        yield stores
    finally:
        await stores.reports.close()
        await stores.tokens.close()
        await stores.limiter.close()


async def use(access: RedisAccess, prefix: str = "shopdir") -> tuple[str, str, str]:
    """Do everything; errors are those of the stores."""
    # What is done is looked at here, and how fast in tests of their own.
    async with opened(access, prefix, max_deliveries=1, timeout=PATIENCE_S) as stores:
        return await _reported(stores.reports), await _trusted(stores.tokens), await _counted(stores.limiter)


async def _reported(reports: RedisReports) -> str:
    appended = [await reports.append(report(shop)) for shop in ("s1", "s2", "s1")]
    done, left = await reports.claim("w1", 2, 60)
    acknowledged = await reports.acknowledge("w1", [done.id])
    held = await reports.waiting(5)
    await asyncio.sleep(0.01)
    again = await reports.claim("w2", 2, 0.001)
    waiting = await reports.waiting(5)
    await reports.check()
    stored = [one.shop_id for one in await exported(reports)]
    right = (
        (appended, acknowledged, again, stored, waiting.depth) == ([True, True, False], (done.id,), (), ["s1", "s2"], 0)
        and ([worker.name for worker in held.workers], held.pending) == (["w1"], 1)
        and [one.id for one in waiting.dead_letters] == [left.id]
    )
    return USED[0] if right else "reports went wrong"


async def _trusted(tokens: RedisTokenStore) -> str:
    await tokens.issue(WIDGET, hash_of("text"))
    seen = (await tokens.find(hash_of("text")), await tokens.all(), await tokens.revoke("a1"), await tokens.all())
    return USED[1] if seen == (WIDGET, (WIDGET,), True, ()) else "tokens went wrong"


async def _counted(limiter: BlockLimiter) -> str:
    quota = Quota(Bucket.READS, 2, 1)
    first = [(await limiter.hit("k", quota)).remaining for _ in range(2)]
    refused = await limiter.hit("k", quota)
    await asyncio.sleep(1.05)
    after = await limiter.hit("k", quota)
    return USED[2] if (first, refused.allowed, after.remaining) == ([1, 0], False, 1) else "the limiter went wrong"


async def soon(ask: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """The first answer that is none of a Redis away, and the seconds until it came."""
    began = time.monotonic()
    while True:
        try:
            return await ask(), time.monotonic() - began
        except UNAVAILABLE:
            assert time.monotonic() - began < _BOUND_S, "it never goes on"
            await asyncio.sleep(_AGAIN_AFTER_S)
