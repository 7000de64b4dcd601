"""The memory limiter stays small, whatever keys come."""

import secrets

import pytest

from service.limits.memory import MemoryLimiter
from service.limits.policy import Bucket, Quota
from tests.rules.limits.clocks import HandClock

READS = Quota(Bucket.READS, 2, 60)
REPORTS = Quota(Bucket.REPORTS, 2, 3600)


def keys_in(limiter: MemoryLimiter) -> int:
    return sum(len(window.counts) for window in limiter._windows.values())


@pytest.mark.slow
@pytest.mark.rule("Q4")
async def test_a_million_random_keys_leave_no_more_than_the_bound() -> None:
    limiter = MemoryLimiter(HandClock(), max_keys=1000)
    most = 0
    for _ in range(1_000_000):
        await limiter.hit(secrets.token_hex(8), READS)
        most = max(most, keys_in(limiter))
    assert most == 1000


async def test_a_key_is_forgotten_when_its_quota_is_whole_again() -> None:
    clock = HandClock()
    limiter = MemoryLimiter(clock)
    for key in ("a", "b", "c"):
        await limiter.hit(key, READS)
        clock.pass_seconds(20)
    await limiter.hit("r", REPORTS)
    sizes = [keys_in(limiter)]
    await limiter.hit("d", READS)
    sizes.append(keys_in(limiter))
    clock.pass_seconds(60)
    await limiter.hit("d", READS)
    sizes.append(keys_in(limiter))
    assert sizes == [4, 4, 2]


async def test_when_there_are_too_many_keys_the_longest_idle_one_starts_again() -> None:
    limiter = MemoryLimiter(HandClock(), max_keys=2)
    for key in ("busy", "idle", "busy", "new"):
        await limiter.hit(key, READS)
    left = {key: (await limiter.hit(key, READS, 0)).remaining for key in ("busy", "new")}
    idle = await limiter.hit("idle", READS)
    assert (left, idle.remaining, keys_in(limiter)) == ({"busy": 0, "new": 1}, 1, 2)


async def test_a_busy_key_holds_a_bounded_number_of_entries() -> None:
    clock = HandClock()
    limiter = MemoryLimiter(clock)
    for _ in range(10_000):
        await limiter.hit("k", Quota(Bucket.SUGGEST, 12_000, 60))
        clock.pass_seconds(0.007)
    assert len(limiter._windows[60].counts["k"].slots) <= 61
