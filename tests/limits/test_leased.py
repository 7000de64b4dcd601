"""Units that a process takes ahead: what they spare, whom they are for, and what becomes of them."""

import asyncio

import pytest

from service.limits.fallback import FallbackLimiter
from service.limits.leased import LeasedLimiter
from service.limits.lending import Lent
from service.limits.memory import MemoryLimiter
from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, LimiterUnavailable
from service.under_way import UnderWay, begun, current, working_on
from tests.limits.clocks import HandClock
from tests.limits.leasing import SUGGEST, World, press
from tests.limits.plain import PlainLender


async def test_a_slow_caller_costs_no_more_than_he_uses() -> None:
    world = World()
    for _ in range(20):
        assert (await press(world.limiter)).allowed
        world.clock.pass_seconds(3)
        await world.settle()
    assert (world.lender.asked, world.lender.returned) == ([1] * 20, 0)


async def test_a_quick_caller_waits_twice_and_the_store_is_asked_once_for_many() -> None:
    world = World()
    waited = 0
    for _ in range(600):
        if world.limiter.take("k", SUGGEST) is None:
            waited += 1
            assert (await world.limiter.hit("k", SUGGEST)).allowed
        await world.settle()
        world.clock.pass_seconds(0.05)
    assert waited == 2
    assert len(world.lender.asked) < 600 / 15
    assert max(world.lender.asked) <= SUGGEST.limit // 50


async def test_whoever_types_at_a_constant_pace_has_next_to_nothing_taken_in_vain() -> None:
    world = World()
    for _ in range(300):
        assert (await press(world.limiter)).allowed
        await world.settle()
        world.clock.pass_seconds(0.2)
    assert world.lender.returned < 300 / 20
    assert len(world.lender.asked) < 300 / 5


@pytest.mark.rule("Q2")
async def test_what_is_left_falls_by_one_with_each_press_down_to_nothing() -> None:
    world = World()
    told = []
    for _ in range(SUGGEST.limit + 2):
        told.append(await press(world.limiter))
        await world.settle()
    assert [decision.remaining for decision in told if decision.allowed] == list(range(1_199, -1, -1))
    assert [decision.allowed for decision in told[-3:]] == [True, False, False]


async def test_a_refusal_is_repeated_for_a_second_without_asking_and_then_asked_for() -> None:
    world = World()
    assert (await world.lender.hit("k", SUGGEST, SUGGEST.limit)).allowed
    world.clock.pass_seconds(30)
    refused = [await press(world.limiter)]
    world.lender.away = True
    for _ in range(2):
        world.clock.pass_seconds(0.45)
        refused.append(await press(world.limiter))
    world.clock.pass_seconds(0.1)
    with pytest.raises(LimiterUnavailable):
        await press(world.limiter)
    assert refused == [Decision(False, 1_200, 0, 30, 30)] * 3


async def test_who_waits_as_long_as_a_refusal_says_is_allowed() -> None:
    world = World()
    while (told := await press(world.limiter)).allowed:
        world.clock.pass_seconds(0.001)
        await world.settle()
    assert told.retry_after is not None
    world.clock.pass_seconds(told.retry_after)
    assert (await press(world.limiter)).allowed


async def test_what_a_caller_who_has_stopped_left_is_given_back_by_itself() -> None:
    lender = PlainLender(HandClock())
    limiter = LeasedLimiter(lender, 0.05)
    for _ in range(3):
        await press(limiter)
    assert (len(limiter), lender.used("k", SUGGEST) > 3) == (1, True)
    await asyncio.sleep(0.3)
    assert (len(limiter), lender.used("k", SUGGEST)) == (0, 3)
    await limiter.close()


@pytest.mark.rule("Q4")
async def test_with_the_store_away_what_is_at_hand_is_used_up_and_then_quotas_are_local() -> None:
    world = World()
    local = MemoryLimiter(world.clock)
    limiter = FallbackLimiter(world.limiter, local, clock=world.clock)
    for _ in range(3):
        await press(limiter)
    world.lender.away = True
    told = [await press(limiter) for _ in range(3)]
    await world.settle()
    assert ([decision.remaining for decision in told], limiter.degraded) == ([1_196, 1_195, 1_199], True)
    world.lender.away = False
    world.clock.pass_seconds(1)
    back = await press(limiter)
    assert (back.remaining, limiter.degraded) == (1_194, False)


@pytest.mark.rule("Q4")
async def test_a_store_that_fails_is_asked_by_nobody_who_does_not_wait_for_it_for_a_second() -> None:
    world = World()
    asked = 0

    class Away(PlainLender):
        async def lend(self, key: str, quota: Quota, units: int, seconds: float) -> Lent:
            nonlocal asked
            asked += self.away
            return await super().lend(key, quota, units, seconds)

    lender = Away(world.clock)
    limiter = LeasedLimiter(lender, clock=world.clock)
    for key in ("a", "b"):
        for _ in range(3):
            await press(limiter, key=key)
    lender.away = True
    for key in ("a", "b", "a"):
        limiter.take(key, SUGGEST)
        await limiter.settled()
    assert asked == 1
    world.clock.pass_seconds(1)
    limiter.take("b", SUGGEST)
    await limiter.settled()
    assert asked == 2


@pytest.mark.parametrize(
    ("quota", "cost"),
    [
        (Quota(Bucket.READS, 1_200, 60), 1),
        (Quota(Bucket.REPORTS, 1_200, 3_600), 1),
        (Quota(Bucket.SUGGEST, 149, 60), 1),
        (SUGGEST, 3),
    ],
)
async def test_reads_reports_small_quotas_and_more_than_one_unit_are_asked_for_as_they_come(
    quota: Quota, cost: int
) -> None:
    world = World()
    taken, told = [], []
    for _ in range(10):
        taken.append(world.limiter.take("k", quota))
        told.append(await world.limiter.hit("k", quota, cost))
    assert (taken, world.lender.asked, len(world.limiter)) == ([None] * 10, [cost] * 10, 0)
    assert [decision.remaining for decision in told] == [quota.limit - cost * (number + 1) for number in range(10)]


async def test_callers_beyond_the_bound_are_asked_for_one_by_one() -> None:
    lender = PlainLender(HandClock())
    limiter = LeasedLimiter(lender, max_keys=2, clock=lender.clock)
    for key in ("a", "b", "c", "c", "c", "c"):
        assert (await press(limiter, key=key)).allowed
    assert (len(limiter), lender.asked, limiter.take("c", SUGGEST)) == (2, [1] * 6, None)


async def test_a_quota_that_was_changed_is_counted_anew_and_the_old_units_are_given_back() -> None:
    world = World()
    for _ in range(3):
        await press(world.limiter)
    smaller = Quota(Bucket.SUGGEST, 600, 60)
    told = await press(world.limiter, smaller)
    await world.settle()
    assert (told.limit, told.allowed, world.lender.used("k", smaller)) == (600, True, 4)


async def test_presses_at_the_same_moment_do_not_wait_for_each_other_nor_take_too_much() -> None:
    world = World()
    told = await asyncio.gather(*(press(world.limiter) for _ in range(200)))
    await world.close()
    assert all(decision.allowed for decision in told)
    assert sum(world.lender.asked) - world.lender.returned == 200


async def test_what_is_asked_ahead_is_no_matter_of_the_call_that_set_it_off() -> None:
    requests: list[UnderWay | None] = []

    class Watching(PlainLender):
        async def lend(self, key: str, quota: Quota, units: int, seconds: float) -> Lent:
            requests.append(current())
            return await super().lend(key, quota, units, seconds)

    lender = Watching(HandClock())
    limiter = LeasedLimiter(lender, clock=lender.clock)
    request = begun("r1", 1.0)
    with working_on(request):
        for _ in range(5):
            await press(limiter)
        await limiter.settled()
    assert requests == [request, None]
