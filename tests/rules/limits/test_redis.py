"""The Redis limiter: one count for all workers by the server's clock, gone by itself, and never waited for long."""

import asyncio
from pathlib import Path

import pytest
from redis.asyncio import Redis

from service.limits.blocks import BlockLimiter
from service.limits.policy import Bucket, LimiterUnavailable, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from tests.rules.limits.clocks import HandClock
from tests.support.real.redis import RedisServer

pytestmark = pytest.mark.redis
READS = Quota(Bucket.READS, 10, 60)


async def test_a_key_goes_by_itself_when_its_quota_is_whole(redis_url: str) -> None:
    limiter = BlockLimiter(RedisLimiter(RedisAccess(redis_url), "test-gone", timeout=5))
    redis = Redis.from_url(redis_url)
    await limiter.hit("k", Quota(Bucket.READS, 10, 1))
    keys = [key async for key in redis.scan_iter("test-gone:*")]
    left = await redis.pttl("test-gone:quota:k")
    await asyncio.sleep(1.1)
    after = [key async for key in redis.scan_iter("test-gone:*")]
    await redis.aclose()
    await limiter.close()
    assert (keys, after) == ([b"test-gone:quota:k"], [])
    assert 0 < left <= 1000


async def test_a_clock_that_was_set_back_forgets_nothing_early(redis_url: str) -> None:
    clock = HandClock()
    limiter = BlockLimiter(RedisLimiter(RedisAccess(redis_url), "test-back", timeout=5, clock=clock))
    quota = Quota(Bucket.READS, 3, 60)
    decisions = []
    for seconds in (0.5, -0.2, -30.0, 0.0, 59.9, 30.2):
        clock.pass_seconds(seconds)
        decision = await limiter.hit("k", quota)
        decisions.append((decision.allowed, decision.remaining))
    clock.pass_seconds(0.1)
    back = await limiter.hit("k", quota, 2)
    await limiter.close()
    assert decisions == [(True, 2), (True, 1), (True, 0), (False, 0), (False, 0), (True, 0)]
    assert (back.allowed, back.remaining) == (True, 0)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_jumps_by_an_hour_refuses_nobody_for_longer_than_a_window(
    redis_url: str, hours: int
) -> None:
    clock = HandClock()
    limiter = BlockLimiter(RedisLimiter(RedisAccess(redis_url), f"test-jump-{hours}", timeout=5, clock=clock))
    full = [(await limiter.hit("k", READS, 10)).allowed, (await limiter.hit("k", READS)).allowed]
    clock.pass_seconds(hours * 3600)
    jumped = await limiter.hit("k", READS, 10)
    refused = await limiter.hit("k", READS)
    await limiter.close()
    assert (full, jumped.allowed) == ([True, False], True)
    assert (refused.allowed, refused.retry_after) == (False, 60)


@pytest.mark.rule("Q4")
async def test_with_no_memory_left_a_key_with_something_to_forget_is_refused_like_any_other(
    redis_program: str, tmp_path: Path
) -> None:
    clock = HandClock()
    with RedisServer(redis_program, tmp_path, options=("--maxmemory-policy", "noeviction")) as server:
        limiter, redis = (
            BlockLimiter(RedisLimiter(RedisAccess(server.url), "t", timeout=5, clock=clock)),
            Redis.from_url(server.url),
        )
        assert (await limiter.hit("k", READS)).allowed
        clock.pass_seconds(70)
        await redis.config_set("maxmemory", 1)
        for key in ("k", "new"):
            with pytest.raises(LimiterUnavailable):
                await limiter.hit(key, READS)
        await limiter.close()
        await redis.aclose()
