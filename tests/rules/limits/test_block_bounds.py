"""The bounds of what blocks may do to a quota, whichever process asks and when: quota + W * B and quota - W * B."""

import asyncio
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.limits.blocks import SHARE, BlockLimiter
from service.limits.policy import Bucket, Decision, Quota, slot_milliseconds
from tests.rules.limits.block_world import World, suggest

REPEATED_MS = 1_000
PROCESSES = 3


@dataclass(frozen=True, slots=True)
class Burst:
    """Some requests at one time in one process, `gap` milliseconds since the ones before.

    A `killed` process was killed and replaced before.
    """

    gap: int
    process: int
    requests: int
    killed: bool = False


BURSTS = st.lists(
    st.builds(
        Burst,
        st.one_of(st.integers(0, 200), st.integers(0, 7_000), st.sampled_from([2_999, 3_000, 3_001])),
        st.integers(0, PROCESSES - 1),
        st.sampled_from([1, 1, 2, 3, 8, 20, 60]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=40,
)
QUOTAS = st.builds(Quota, st.just(Bucket.SUGGEST), st.sampled_from([100, 150, 400]), st.integers(3, 6))


async def played(world: World, quota: Quota, bursts: list[Burst]) -> list[tuple[int, bool, Decision]]:
    """Of each request the time in milliseconds, whether a process was killed before it, and the decision."""
    decided = []
    killed = False
    for burst in bursts:
        world.clock.pass_seconds(burst.gap / 1000)
        if burst.killed:
            world.limiters[burst.process] = BlockLimiter(world.store, clock=world.clock)
            killed = True
        for _ in range(burst.requests):
            decision = await suggest(world.limiters[burst.process], quota)
            decided.append((world.clock.milliseconds, killed, decision))
    return decided


@pytest.mark.rule("Q2")
@settings(deadline=None, max_examples=200)
@given(quota=QUOTAS, bursts=BURSTS)
@example(
    # All of the quota again a window later, and what was held before on top.
    quota=Quota(Bucket.SUGGEST, 100, 3),
    bursts=[Burst(0, 0, 1), Burst(0, 1, 1), Burst(2_990, 0, 1), Burst(0, 1, 1), Burst(10, 2, 60), Burst(0, 2, 60)],
)
def test_no_window_holds_more_than_the_bound_and_no_more_is_refused_than_it_says(
    quota: Quota, bursts: list[Burst]
) -> None:
    world = World(PROCESSES)
    decided = asyncio.run(played(world, quota, bursts))
    window, held = quota.window * 1000, PROCESSES * (quota.limit // SHARE)
    late = 2 * window + slot_milliseconds(quota) + REPEATED_MS
    allowed: deque[int] = deque()
    for now, killed, decision in decided:
        if decision.allowed:
            assert sum(at > now - window for at in allowed) + 1 <= quota.limit + held
            assert 0 <= decision.remaining < quota.limit
            assert 1 <= decision.reset_seconds <= quota.window
            allowed.append(now)
        else:
            assert decision.remaining == 0
            assert decision.retry_after is not None
            assert 1 <= decision.reset_seconds <= decision.retry_after <= quota.window
            if not killed:
                assert sum(at > now - late for at in allowed) + held >= quota.limit
