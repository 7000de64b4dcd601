"""Blocks of units that a process takes: what they spare, and the bounds of what they may do to a quota."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.limits.blocks import SHARE, BlockLimiter
from service.limits.fallback import FallbackLimiter
from service.limits.memory import MemoryLimiter
from service.limits.policy import (
    Bucket,
    Decision,
    Limiter,
    LimiterUnavailable,
    Quota,
    QuotaClass,
    slot_milliseconds,
    whole_seconds,
)
from tests.rules.limits.clocks import HandClock
from tests.support.rounds import rounds
from tests.support.served import get
from tests.support.worlds import limited


@dataclass
class Taken:
    slot: int
    latest: int
    units: int


@dataclass
class PlainCount:
    """Counts in lists, looks at all of them each time; `asked` has the units of each question that it answered."""

    clock: HandClock
    away: bool = False
    asked: list[int] = field(default_factory=list)
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    async def close(self) -> None:
        """What was counted stays, as in a server."""

    def used(self, key: str, quota: Quota) -> int:
        return sum(taken.units for taken in self._counting(key, quota))

    def _counting(self, key: str, quota: Quota) -> list[Taken]:
        horizon = self.clock.milliseconds - quota.window * 1000
        return sorted(
            (taken for taken in self.taken.get(key, []) if taken.latest > horizon), key=lambda taken: taken.latest
        )

    async def count(self, key: str, quota: Quota, units: int, least: int) -> tuple[Decision, int]:
        if self.away:
            raise LimiterUnavailable("away")
        now, window = self.clock.milliseconds, quota.window * 1000
        slot = now // slot_milliseconds(quota)
        counting = self._counting(key, quota)
        used = sum(taken.units for taken in counting)
        units = min(units, max(least, (quota.limit - used) // 8))
        if used + units <= quota.limit:
            self.asked.append(units)
            if counting and counting[-1].slot == slot:
                counting[-1] = Taken(slot, now, counting[-1].units + units)
            else:
                counting.append(Taken(slot, now, units))
            self.taken[key] = counting
            reset = counting[0].latest + window - now
            return Decision(True, quota.limit, quota.limit - used - units, whole_seconds(reset), None), units
        reset = min((taken.latest for taken in counting), default=now) + window - now
        retry, left = window, used
        for taken in counting:
            left -= taken.units
            if left + least <= quota.limit:
                retry = taken.latest + window - now
                break
        refused = Decision(False, quota.limit, max(0, quota.limit - used), whole_seconds(reset), whole_seconds(retry))
        return refused, 0


SUGGEST: Final = Quota(Bucket.SUGGEST, 1_200, 60)
BLOCK: Final = 24


async def suggest(limiter: Limiter, quota: Quota = SUGGEST, key: str = "k") -> Decision:
    return limiter.take(key, quota) or await limiter.hit(key, quota)


@dataclass
class World:
    processes: int = 1
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.store = PlainCount(self.clock)
        self.limiters = [BlockLimiter(self.store, clock=self.clock) for _ in range(self.processes)]

    @property
    def limiter(self) -> BlockLimiter:
        return self.limiters[0]


async def test_the_store_is_asked_once_for_a_block_however_slow_its_caller_is() -> None:
    for pause in (0.0, 2.0):
        world = World()
        for _ in range(BLOCK + 1):
            assert (await suggest(world.limiter)).allowed
            world.clock.pass_seconds(pause)
        assert world.store.asked == [BLOCK, BLOCK]


@pytest.mark.rule("Q2")
async def test_what_is_left_falls_by_one_with_each_request_down_to_nothing() -> None:
    world = World()
    decided = [await suggest(world.limiter) for _ in range(SUGGEST.limit + 2)]
    assert [decision.remaining for decision in decided if decision.allowed] == list(range(1_199, -1, -1))
    assert [decision.allowed for decision in decided[-3:]] == [True, False, False]


@pytest.mark.rule("Q2")
async def test_a_unit_is_used_for_a_window_after_it_was_counted_and_no_longer() -> None:
    world = World()
    await suggest(world.limiter)
    world.clock.pass_seconds(SUGGEST.window - 0.001)
    assert world.limiter.take("k", SUGGEST) == Decision(True, 1_200, 1_198, 1, None)
    world.clock.pass_seconds(0.001)
    assert world.limiter.take("k", SUGGEST) is None
    assert (await suggest(world.limiter)).remaining == 1_199


async def test_a_refusal_is_repeated_for_a_second_without_asking_and_then_asked_for() -> None:
    world = World()
    await world.store.count("k", SUGGEST, SUGGEST.limit, SUGGEST.limit)
    world.clock.pass_seconds(30)
    refused = [await suggest(world.limiter)]
    world.store.away = True
    for _ in range(2):
        world.clock.pass_seconds(0.45)
        refused.append(await suggest(world.limiter))
    world.clock.pass_seconds(0.1)
    with pytest.raises(LimiterUnavailable):
        await suggest(world.limiter)
    assert refused == [Decision(False, 1_200, 0, 30, 30)] * 3


async def test_who_waits_as_long_as_a_refusal_says_is_allowed() -> None:
    world = World()
    while (decision := await suggest(world.limiter)).allowed:
        world.clock.pass_seconds(0.001)
    assert decision.retry_after is not None
    world.clock.pass_seconds(decision.retry_after)
    assert (await suggest(world.limiter)).allowed


@pytest.mark.rule("Q4")
async def test_with_the_store_away_a_block_is_used_up_and_then_quotas_are_local() -> None:
    world = World()
    limiter = FallbackLimiter(world.limiter, MemoryLimiter(world.clock), clock=world.clock)
    await suggest(limiter)
    world.store.away = True
    decided = [await suggest(limiter) for _ in range(BLOCK)]
    assert [decision.remaining for decision in decided[-2:]] == [1_176, 1_199]
    assert limiter.degraded
    world.store.away = False
    world.clock.pass_seconds(1)
    await suggest(limiter)
    await asyncio.sleep(0)
    back = await suggest(limiter)
    assert (back.remaining, limiter.degraded) == (1_174, False)


@pytest.mark.parametrize(
    ("quota", "cost"),
    [
        (Quota(Bucket.READS, 1_200, 60), 1),
        (Quota(Bucket.REPORTS, 1_200, 3_600), 1),
        (Quota(Bucket.SUGGEST, 99, 60), 1),
        (SUGGEST, 3),
    ],
)
async def test_reads_reports_small_quotas_and_more_than_one_unit_are_asked_for_as_they_come(
    quota: Quota, cost: int
) -> None:
    world = World()
    taken, decided = [], []
    for _ in range(10):
        taken.append(world.limiter.take("k", quota))
        decided.append(await world.limiter.hit("k", quota, cost))
    assert (taken, world.store.asked, len(world.limiter._blocks)) == ([None] * 10, [cost] * 10, 0)
    assert [decision.remaining for decision in decided] == [quota.limit - cost * (n + 1) for n in range(10)]


async def test_callers_beyond_the_bound_are_asked_for_one_by_one_until_others_have_ended() -> None:
    store = PlainCount(HandClock())
    limiter = BlockLimiter(store, max_keys=2, clock=store.clock)
    for key in ("a", "b", "c", "c"):
        assert (await suggest(limiter, key=key)).allowed
    assert (len(limiter._blocks), store.asked, limiter.take("c", SUGGEST)) == (2, [BLOCK, BLOCK, 1, 1], None)
    store.clock.pass_seconds(SUGGEST.window)
    await suggest(limiter, key="c")
    assert (len(limiter._blocks), store.asked[-1]) == (1, BLOCK)


async def test_a_quota_that_was_changed_is_asked_for_again() -> None:
    world = World()
    await suggest(world.limiter)
    smaller = Quota(Bucket.SUGGEST, 600, 60)
    decision = await suggest(world.limiter, smaller)
    assert (decision.limit, decision.remaining, world.store.asked) == (600, 600 - BLOCK - 1, [BLOCK, 12])


@pytest.mark.rule("Q2", "F15")
async def test_tokens_of_two_classes_of_one_subject_do_not_discard_each_others_blocks() -> None:
    world = World()
    larger = Quota(Bucket.SUGGEST, 12_000, 60)
    decided = [await suggest(world.limiter, quota) for _ in range(10) for quota in (SUGGEST, larger)]
    assert all(decision.allowed for decision in decided)
    assert world.store.asked == [BLOCK, larger.limit // SHARE]


async def test_requests_at_the_same_time_do_not_wait_for_each_other_nor_take_two_blocks() -> None:
    world = World()
    decided = await asyncio.gather(*(suggest(world.limiter) for _ in range(10)))
    assert all(decision.allowed for decision in decided)
    assert sorted(world.store.asked) in ([BLOCK], [*[1] * 9, BLOCK])


async def test_closing_forgets_what_was_not_used() -> None:
    world = World()
    await suggest(world.limiter)
    await world.limiter.close()
    assert (len(world.limiter._blocks), world.store.used("k", SUGGEST)) == (0, BLOCK)


@pytest.mark.rule("Q2")
def test_suggest_requests_in_the_application_share_the_requests_to_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    monkeypatch.setattr("service.parts.open_limiter", lambda *_, **__: world.limiter)
    statuses = set()
    with limited(tmp_path, quota_anonymous=QuotaClass(reads=1, suggest=SUGGEST.limit, reports=0)) as base:
        for _ in range(100):
            # The last request of a connection does not take the fast path.
            statuses.add(get(base, "/suggest?q=harb", connection="close").status)
            world.clock.pass_seconds(0.05)
    assert (statuses, len(world.store.asked) < 10) == ({200}, True)


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
@settings(max_examples=rounds(200))
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
