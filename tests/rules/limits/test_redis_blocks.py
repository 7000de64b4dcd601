"""What Redis hands out in blocks: the plain arithmetic, shared by processes within the bound that is documented."""

import asyncio
import secrets
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.limits.blocks import SharedCount
from service.limits.policy import Bucket, Decision, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from tests.rules.limits.clocks import HandClock
from tests.rules.limits.plain import PlainCount

pytestmark = pytest.mark.redis


@dataclass(frozen=True, slots=True)
class Step:
    """How long after the step before it, in milliseconds, and how many units are asked for."""

    gap: int
    units: int


async def played(
    source: SharedCount, clock: HandClock, quota: Quota, steps: list[Step]
) -> list[tuple[tuple[Decision, int], Decision]]:
    """Of each step what was taken, and what the decision on one unit more was."""
    decided = []
    for step in steps:
        clock.pass_seconds(step.gap / 1000)
        taken = await source.count("k", quota, step.units, 1)
        one, _ = await source.count("k", quota, 1, 1)
        decided.append((taken, one))
    await source.close()
    return decided


STEPS = st.lists(
    st.builds(
        Step,
        st.one_of(st.integers(0, 120), st.integers(0, 6_500), st.sampled_from([50, 2_999, 3_000, 3_001])),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=40,
)
QUOTAS = st.builds(Quota, st.just(Bucket.SUGGEST), st.integers(0, 60), st.integers(3, 6))


@pytest.mark.rule("Q2")
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(quota=QUOTAS, steps=STEPS)
def test_redis_hands_out_blocks_exactly_as_the_plain_arithmetic_does(
    redis_url: str, quota: Quota, steps: list[Step]
) -> None:
    async def shared() -> list[tuple[tuple[Decision, int], Decision]]:
        clock = HandClock()
        prefix = f"test-{secrets.token_hex(6)}"
        return await played(RedisLimiter(RedisAccess(redis_url), prefix, timeout=5, clock=clock), clock, quota, steps)

    clock = HandClock()
    assert asyncio.run(shared()) == asyncio.run(played(PlainCount(clock), clock, quota, steps))
