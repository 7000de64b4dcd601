"""The Redis limiter by the server's clock, and losing it: reads go on, reports do not, and it is asked again."""

import asyncio
import logging
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from service.limits.blocks import BlockLimiter
from service.limits.fallback import FallbackLimiter
from service.limits.memory import MemoryLimiter
from service.limits.policy import Bucket, Decision, LimiterUnavailable, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from shop_directory.runtime.metrics import Metrics
from tests.rules.limits.clocks import HandClock

READS = Quota(Bucket.READS, 10, 60)


@pytest.mark.redis
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


@pytest.mark.redis
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


@pytest.mark.redis
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


READ_QUOTA = Quota(Bucket.READS, 3, 60)
REPORTS = Quota(Bucket.REPORTS, 3, 3600)


class Counter(Metrics):
    """Counts the local decisions of each bucket, and how the shared limiter answered."""

    def __init__(self) -> None:
        self.local: list[str] = []
        self.asked: list[str] = []

    @property
    def count(self) -> int:
        return len(self.local)

    def quota(self, bucket: str, decision: str, times: int = 1, network: str | None = None) -> None:
        assert (decision, times, network) == ("local", 1, None)
        self.local.append(bucket)

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        assert (store, operation, seconds >= 0) == ("limiter", "hit", True)
        self.asked.append(outcome)


@dataclass
class SwitchedLimiter:
    limiter: MemoryLimiter
    away: bool = False
    asked: int = field(default=0)

    @property
    def degraded(self) -> bool:
        return False

    def take(self, key: str, quota: Quota) -> Decision | None:
        return None if self.away else self.limiter.take(key, quota)

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        self.asked += 1
        if self.away:
            raise LimiterUnavailable("away")
        return await self.limiter.hit(key, quota, cost)

    async def close(self) -> None:
        await self.limiter.close()


@dataclass
class World:
    clock: HandClock = field(default_factory=HandClock)
    counted: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.shared = SwitchedLimiter(MemoryLimiter(self.clock))
        self.limiter = FallbackLimiter(self.shared, MemoryLimiter(self.clock), self.counted, clock=self.clock)


@pytest.mark.rule("Q4")
async def test_reads_go_on_under_a_local_quota_and_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    world = World()
    together = await world.limiter.hit("k", READ_QUOTA)
    degraded = [world.limiter.degraded]
    world.shared.away = True
    alone = [(await world.limiter.hit("k", READ_QUOTA)).allowed for _ in range(4)]
    degraded.append(world.limiter.degraded)
    assert (together.remaining, alone, world.counted.local) == (2, [True, True, True, False], ["reads"] * 4)
    assert world.counted.asked == ["ok", "unavailable"]
    assert degraded == [False, True]
    assert [record.message for record in caplog.records] == [
        "the shared limiter is unavailable, quotas are counted in this process: away"
    ]


@pytest.mark.rule("Q4")
async def test_a_report_is_not_counted_locally_and_asked_for_until_it_is_plain_that_that_is_in_vain() -> None:
    world = World()
    world.shared.away = True
    for _ in range(30):
        with pytest.raises(LimiterUnavailable):
            await world.limiter.hit("k", REPORTS)
    assert (world.counted.count, world.shared.asked) == (0, 10)
    world.shared.away = False
    world.clock.pass_seconds(1)
    assert (await world.limiter.hit("k", REPORTS)).allowed


@pytest.mark.rule("Q4")
async def test_a_read_that_was_counted_locally_takes_no_report_along() -> None:
    world = World()
    world.shared.away = True
    await world.limiter.hit("k", READ_QUOTA)
    world.shared.away = False
    assert (await world.limiter.hit("k", REPORTS)).allowed
    assert not world.limiter.degraded


@pytest.mark.rule("Q4")
async def test_a_lost_limiter_is_asked_once_a_second_and_used_again_when_it_is_back() -> None:
    world = World()
    world.shared.away = True
    for _ in range(30):
        await world.limiter.hit("k", READ_QUOTA)
        await asyncio.sleep(0)
        world.clock.pass_seconds(0.1)
    asked = world.shared.asked
    world.shared.away = False
    world.clock.pass_seconds(1)
    local = world.counted.count
    first = await world.limiter.hit("k", READ_QUOTA)
    await asyncio.sleep(0)
    back = await world.limiter.hit("k", READ_QUOTA)
    # The first one is decided locally, and asks for the others.
    assert (asked, local, first.allowed, back.remaining) == (3, 30, False, 1)
    assert (world.shared.asked, world.counted.count, world.limiter.degraded) == (5, 31, False)


@pytest.mark.rule("Q4")
async def test_what_is_taken_without_waiting_is_decided_locally_while_the_shared_limiter_is_away() -> None:
    world = World()
    together = world.limiter.take("k", READ_QUOTA)
    world.shared.away = True
    unknown = world.limiter.take("k", READ_QUOTA)
    await world.limiter.hit("k", READ_QUOTA)
    alone = [world.limiter.take("k", READ_QUOTA), world.limiter.take("k", REPORTS)]
    world.clock.pass_seconds(1)
    to_ask = world.limiter.take("k", READ_QUOTA)
    world.shared.away = False
    await world.limiter.hit("k", READ_QUOTA)
    await asyncio.sleep(0)
    back = world.limiter.take("k", READ_QUOTA)
    assert (together, unknown) == (Decision(True, 3, 2, 60, None), None)
    assert alone == [Decision(True, 3, 1, 60, None), None]
    assert (to_ask, back) == (None, Decision(True, 3, 0, 59, None))
    assert (world.counted.local, world.counted.asked) == (["reads"] * 3, ["unavailable", "ok"])
