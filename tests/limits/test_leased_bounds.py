"""The bounds of what units taken ahead may do to a quota, whoever presses keys when and where."""

import asyncio
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, slot_milliseconds
from tests.limits.leasing import World, press

LEASE_MS = 2_000
REPEATED_MS = 1_000


@dataclass(frozen=True, slots=True)
class Burst:
    """Some key presses at one moment in one process: how long after the ones before, which process, how many."""

    gap: int
    process: int
    presses: int


BURSTS = st.lists(
    st.builds(
        Burst,
        st.one_of(st.integers(0, 200), st.integers(0, 7_000), st.sampled_from([1_499, 1_500, 1_999, 2_000, 2_001])),
        st.integers(0, 2),
        st.sampled_from([1, 1, 2, 3, 8, 20, 60]),
    ),
    min_size=1,
    max_size=40,
)
QUOTAS = st.builds(Quota, st.just(Bucket.SUGGEST), st.sampled_from([150, 200, 400]), st.integers(3, 6))


async def played(world: World, quota: Quota, bursts: list[Burst], *, prompt: bool) -> list[tuple[int, Decision]]:
    """The time in milliseconds and the decision of each press; what is asked ahead comes at once, or at some time."""
    told = []
    for burst in bursts:
        world.clock.pass_seconds(burst.gap / 1000)
        await world.settle()
        for _ in range(burst.presses):
            told.append((world.clock.milliseconds, await press(world.limiters[burst.process], quota)))
            if prompt:
                await world.settle()
    return told


@pytest.mark.rule("Q2")
@settings(deadline=None, max_examples=200)
@given(quota=QUOTAS, bursts=BURSTS, prompt=st.booleans())
def test_no_window_holds_more_than_the_quota_and_no_more_is_refused_than_the_bound_says(
    quota: Quota, bursts: list[Burst], *, prompt: bool
) -> None:
    world = World(3)
    told = asyncio.run(played(world, quota, bursts, prompt=prompt))
    window = quota.window * 1000
    late = window + slot_milliseconds(quota) + LEASE_MS + REPEATED_MS
    allowed: deque[int] = deque()
    for now, decision in told:
        in_window = sum(at > now - window for at in allowed)
        if decision.allowed:
            assert in_window + 1 <= quota.limit
            assert 0 <= decision.remaining < quota.limit
            assert 1 <= decision.reset_seconds <= quota.window + LEASE_MS // 1000
            allowed.append(now)
        else:
            assert decision.remaining == 0
            assert decision.retry_after is not None
            assert 1 <= decision.reset_seconds <= decision.retry_after <= quota.window + LEASE_MS // 1000
            if prompt:
                assert sum(at > now - late for at in allowed) + len(world.limiters) * (quota.limit // 50) >= quota.limit


@pytest.mark.rule("Q2")
@settings(deadline=None, max_examples=100)
@given(quota=QUOTAS, bursts=BURSTS, prompt=st.booleans())
@example(
    quota=Quota(Bucket.SUGGEST, 400, 3),
    bursts=[Burst(0, 0, 8), Burst(1, 0, 2), Burst(0, 0, 1), Burst(0, 0, 2), Burst(1_999, 0, 2)],
    prompt=False,
)
def test_what_was_not_used_is_given_back_to_the_last_unit(quota: Quota, bursts: list[Burst], *, prompt: bool) -> None:
    async def unused() -> tuple[int, int]:
        world = World(3)
        told = await played(world, quota, bursts, prompt=prompt)
        await world.close()
        return sum(world.lender.asked) - world.lender.returned, sum(decision.allowed for _, decision in told)

    counted, used = asyncio.run(unused())
    assert counted == used
