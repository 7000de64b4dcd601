"""What Redis lends: the plain arithmetic, for as long as it may be used, and shared by processes to the last unit."""

import asyncio
import secrets
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from service.limits.leased import LeasedLimiter
from service.limits.lending import Lender, Lent
from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision
from service.limits.redis import RedisLimiter
from service.redis_access import RedisAccess
from tests.limits.clocks import HandClock
from tests.limits.plain import PlainLender

pytestmark = pytest.mark.redis
SUGGEST = Quota(Bucket.SUGGEST, 1_200, 60)


@dataclass(frozen=True, slots=True)
class Step:
    """A moment of a game: how long after the one before it, what is asked for, and how much of it is given back."""

    gap: int
    units: int
    seconds: float
    unused: int


async def played(lender: Lender, clock: HandClock, quota: Quota, steps: list[Step]) -> list[tuple[Lent, Decision]]:
    """Of each moment what was lent, and what one unit more was told after some was given back."""
    told = []
    for step in steps:
        clock.pass_seconds(step.gap / 1000)
        lent = await lender.lend("k", quota, step.units, step.seconds)
        if unused := min(step.unused, lent.units):
            await lender.give_back("k", lent.slot, unused)
        told.append((lent, await lender.hit("k", quota)))
    await lender.close()
    return told


STEPS = st.lists(
    st.builds(
        Step,
        st.one_of(st.integers(0, 120), st.integers(0, 6_500), st.sampled_from([50, 2_999, 3_000, 3_001])),
        st.integers(1, 9),
        st.sampled_from([0.5, 2.0]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=40,
)
QUOTAS = st.builds(Quota, st.just(Bucket.SUGGEST), st.integers(0, 60), st.integers(3, 6))


@pytest.mark.rule("Q2")
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(quota=QUOTAS, steps=STEPS)
def test_redis_lends_and_takes_back_exactly_as_the_plain_arithmetic_does(
    redis_url: str, quota: Quota, steps: list[Step]
) -> None:
    async def shared() -> list[tuple[Lent, Decision]]:
        clock = HandClock()
        prefix = f"test-{secrets.token_hex(6)}"
        return await played(RedisLimiter(RedisAccess(redis_url), prefix, timeout=5, clock=clock), clock, quota, steps)

    clock = HandClock()
    assert asyncio.run(shared()) == asyncio.run(played(PlainLender(clock), clock, quota, steps))


@pytest.mark.rule("Q2")
async def test_what_may_still_be_used_is_remembered_a_window_longer_than_that_whatever_comes_meanwhile(
    redis_url: str,
) -> None:
    prefix = f"test-{secrets.token_hex(6)}"
    limiter = RedisLimiter(RedisAccess(redis_url), prefix, timeout=5)
    redis = Redis.from_url(redis_url)
    await limiter.lend("k", SUGGEST, 5, 5.0)
    await limiter.hit("k", SUGGEST)
    left = await redis.pttl(f"{prefix}:quota:k")
    await redis.aclose()
    await limiter.close()
    assert 64_000 < left <= 65_000


@pytest.mark.rule("Q2")
async def test_processes_that_borrow_share_one_quota_and_give_back_what_they_did_not_use(redis_url: str) -> None:
    access, prefix = RedisAccess(redis_url), f"test-{secrets.token_hex(6)}"
    quota = Quota(Bucket.SUGGEST, 400, 60)
    processes = [LeasedLimiter(RedisLimiter(access, prefix, timeout=5)) for _ in range(3)]

    async def press_often(process: LeasedLimiter) -> int:
        decisions = [process.take("k", quota) or await process.hit("k", quota) for _ in range(200)]
        return sum(decision.allowed for decision in decisions)

    allowed = sum(await asyncio.gather(*map(press_often, processes)))
    for process in processes:
        await process.close()
    fresh = RedisLimiter(access, prefix, timeout=5)
    left = (await fresh.hit("k", quota, quota.limit - allowed)).remaining if allowed < quota.limit else 0
    refused = await fresh.hit("k", quota)
    await fresh.close()
    assert quota.limit - 3 * (quota.limit // 50) <= allowed <= quota.limit
    assert (left, refused.allowed) == (0, False)
