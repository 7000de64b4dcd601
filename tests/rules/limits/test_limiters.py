"""The limiters decide alike and stay small; which quota a call falls under, and the headers that say so."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.auth.protocol import Token
from service.limits.blocks import BlockLimiter, SharedCount
from service.limits.memory import MemoryLimiter
from service.limits.policy import (
    WITH_TOKEN,
    Account,
    Bucket,
    Decision,
    Limiter,
    NamedNetwork,
    NamedNetworks,
    Quota,
    QuotaClass,
    QuotaPolicy,
    address_group,
    slot_milliseconds,
)
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from tests.rules.limits.clocks import HandClock
from tests.rules.limits.conftest import MakeLimiter
from tests.rules.limits.test_blocks import PlainCount
from tests.support.rounds import rounds

READS = Quota(Bucket.READS, 3, 60)


@asynccontextmanager
async def opened(make_limiter: MakeLimiter, clock: HandClock) -> AsyncIterator[Limiter]:
    limiter = make_limiter(clock)
    try:
        yield limiter
    finally:
        await limiter.close()


@dataclass(frozen=True, slots=True)
class Hit:
    """One hit of a game: how long after the one before it, and how much it asks for."""

    gap: int
    cost: int


async def play(make_limiter: MakeLimiter, quota: Quota, hits: list[Hit]) -> list[tuple[int, Decision]]:
    """Each hit's time in milliseconds, and its decision."""
    clock = HandClock()
    played = []
    async with opened(make_limiter, clock) as limiter:
        for hit in hits:
            clock.pass_seconds(hit.gap / 1000)
            played.append((clock.milliseconds, await limiter.hit("k", quota, hit.cost)))
    return played


QUOTAS = st.builds(Quota, st.just(Bucket.READS), st.integers(0, 12), st.integers(3, 6))
GAPS = st.one_of(st.integers(0, 120), st.integers(0, 6500), st.sampled_from([0, 1, 50, 51, 2999, 3000, 3001, 6000]))
GAMES = st.lists(st.builds(Hit, GAPS, st.sampled_from([1, 1, 1, 2, 5])), min_size=1, max_size=60)
PLAYING = settings(max_examples=rounds(150), suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.rule("Q2")
@PLAYING
@given(quota=QUOTAS, hits=GAMES)
def test_no_stretch_of_a_window_holds_more_than_the_quota_and_no_hit_is_refused_without_need(
    make_limiter: MakeLimiter, quota: Quota, hits: list[Hit]
) -> None:
    window, slack = quota.window * 1000, slot_milliseconds(quota)
    allowed: list[tuple[int, int]] = []
    for hit, (now, decision) in zip(hits, asyncio.run(play(make_limiter, quota, hits)), strict=True):
        surely = sum(cost for at, cost in allowed if at > now - window)
        perhaps = sum(cost for at, cost in allowed if at > now - window - slack)
        if decision.allowed:
            assert surely + hit.cost <= quota.limit
            allowed.append((now, hit.cost))
        else:
            assert perhaps + hit.cost > quota.limit


@pytest.mark.rule("Q2")
@PLAYING
@given(quota=QUOTAS, hits=GAMES)
def test_who_waits_for_retry_after_is_allowed(make_limiter: MakeLimiter, quota: Quota, hits: list[Hit]) -> None:
    async def waited() -> tuple[Decision, Decision]:
        clock = HandClock()
        async with opened(make_limiter, clock) as limiter:
            for hit in hits:
                clock.pass_seconds(hit.gap / 1000)
                last = await limiter.hit("k", quota, hit.cost)
            clock.pass_seconds(last.retry_after or 0)
            return last, await limiter.hit("k", quota, hits[-1].cost)

    last, after = asyncio.run(waited())
    possible = hits[-1].cost <= quota.limit
    assert last.allowed or after.allowed == possible


@dataclass(frozen=True, slots=True)
class Step:
    """How long after the step before it, in milliseconds; how many units are asked for, and how many at least."""

    gap: int
    units: int
    least: int


async def counted(source: SharedCount, clock: HandClock, quota: Quota, steps: list[Step]) -> list[tuple[Decision, int]]:
    taken = []
    for step in steps:
        clock.pass_seconds(step.gap / 1000)
        taken.append(await source.count("k", quota, step.units, min(step.least, step.units)))
    await source.close()
    return taken


STEPS = st.lists(st.builds(Step, GAPS, st.integers(1, 9), st.sampled_from([1, 1, 9])), min_size=1, max_size=60)


@pytest.mark.redis
@pytest.mark.rule("Q2")
@PLAYING
@given(quota=st.builds(Quota, st.just(Bucket.SUGGEST), st.integers(0, 60), st.integers(3, 6)), steps=STEPS)
def test_redis_counts_and_hands_out_blocks_exactly_as_the_plain_arithmetic_does(
    redis_url: str, quota: Quota, steps: list[Step]
) -> None:
    clock, other = HandClock(), HandClock()
    redis = RedisLimiter(RedisAccess(redis_url), f"test-{secrets.token_hex(6)}", timeout=5, clock=clock)
    assert asyncio.run(counted(redis, clock, quota, steps)) == asyncio.run(
        counted(PlainCount(other), other, quota, steps)
    )


def _plain(clock: HandClock) -> Limiter:
    return BlockLimiter(PlainCount(clock), clock=clock)


@PLAYING
@given(quota=QUOTAS, hits=GAMES)
def test_memory_decides_as_the_plain_arithmetic_does_without_waiting_and_awaited(quota: Quota, hits: list[Hit]) -> None:
    plain = asyncio.run(play(_plain, quota, hits))
    assert asyncio.run(play(MemoryLimiter, quota, hits)) == plain
    clock, taken = HandClock(), []
    limiter = MemoryLimiter(clock)
    for hit in hits:
        clock.pass_seconds(hit.gap / 1000)
        taken.append((clock.milliseconds, limiter.take("k", quota)))
    assert taken == asyncio.run(play(_plain, quota, [Hit(hit.gap, 1) for hit in hits]))


@pytest.mark.rule("Q2")
async def test_only_what_is_available_without_io_is_taken_without_waiting(make_limiter: MakeLimiter) -> None:
    async with opened(make_limiter, HandClock()) as limiter:
        taken = [limiter.take("k", READS), await limiter.hit("k", READS)]
    without_waiting = isinstance(limiter, MemoryLimiter)
    first = Decision(True, 3, 2, 60, None)
    assert taken == ([first, Decision(True, 3, 1, 60, None)] if without_waiting else [None, first])


async def test_keys_do_not_share_a_quota_and_a_refusal_takes_nothing(make_limiter: MakeLimiter) -> None:
    async with opened(make_limiter, HandClock()) as limiter:
        decisions = [
            await limiter.hit("a", READS, 2),
            await limiter.hit("b", READS),
            await limiter.hit("a", READS, 2),
            await limiter.hit("a", READS),
            await limiter.hit("a", READS, 4),
        ]
    assert [(decision.allowed, decision.remaining) for decision in decisions] == [
        (True, 1), (True, 2), (False, 1), (True, 0), (False, 0),
    ]  # fmt: skip


async def test_a_quota_that_was_lowered_counts_what_was_taken_before(make_limiter: MakeLimiter) -> None:
    async with opened(make_limiter, HandClock()) as limiter:
        await limiter.hit("k", READS, 3)
        decision = await limiter.hit("k", Quota(Bucket.READS, 1, 60))
    assert decision == Decision(False, 1, 0, 60, 60)


async def test_concurrent_hits_never_pass_the_quota(make_limiter: MakeLimiter) -> None:
    async with opened(make_limiter, HandClock()) as limiter:
        decisions = await asyncio.gather(*(limiter.hit("k", Quota(Bucket.READS, 20, 60)) for _ in range(60)))
    remaining = sorted(decision.remaining for decision in decisions if decision.allowed)
    assert remaining == list(range(20))


MEMORY_READS = Quota(Bucket.READS, 2, 60)
REPORTS = Quota(Bucket.REPORTS, 2, 3600)


def keys_in(limiter: MemoryLimiter) -> int:
    return sum(len(window.counts) for window in limiter._windows.values())


async def test_a_key_is_forgotten_when_its_quota_is_whole_again() -> None:
    clock = HandClock()
    limiter = MemoryLimiter(clock)
    for key in ("a", "b", "c"):
        await limiter.hit(key, MEMORY_READS)
        clock.pass_seconds(20)
    await limiter.hit("r", REPORTS)
    sizes = [keys_in(limiter)]
    await limiter.hit("d", MEMORY_READS)
    sizes.append(keys_in(limiter))
    clock.pass_seconds(60)
    await limiter.hit("d", MEMORY_READS)
    sizes.append(keys_in(limiter))
    assert sizes == [4, 4, 2]


async def test_when_there_are_too_many_keys_the_longest_idle_one_starts_again() -> None:
    limiter = MemoryLimiter(HandClock(), max_keys=2)
    for key in ("busy", "idle", "busy", "new"):
        await limiter.hit(key, MEMORY_READS)
    left = {key: (await limiter.hit(key, MEMORY_READS, 0)).remaining for key in ("busy", "new")}
    idle = await limiter.hit("idle", MEMORY_READS)
    assert (left, idle.remaining, keys_in(limiter)) == ({"busy": 0, "new": 1}, 1, 2)


async def test_a_busy_key_holds_a_bounded_number_of_entries() -> None:
    clock = HandClock()
    limiter = MemoryLimiter(clock)
    for _ in range(10_000):
        await limiter.hit("k", Quota(Bucket.SUGGEST, 12_000, 60))
        clock.pass_seconds(0.007)
    assert len(limiter._windows[60].counts["k"].slots) <= 61


TOKEN = Token("a1", "widget", "default", None)
GOLD = Token("b2", "partner", "gold", None)


@pytest.mark.rule("Q2")
def test_the_default_quotas_are_those_of_the_decisions() -> None:
    policy = QuotaPolicy()
    assert [_quota(policy, bucket, None) for bucket in (Bucket.READS, Bucket.SUGGEST)] == [
        Quota(Bucket.READS, 120, 60),
        Quota(Bucket.SUGGEST, 1_200, 60),
    ]
    assert [_quota(policy, bucket, TOKEN) for bucket in Bucket] == [
        Quota(Bucket.READS, 1_200, 60),
        Quota(Bucket.SUGGEST, 12_000, 60),
        Quota(Bucket.REPORTS, 60, 3_600),
    ]


@pytest.mark.rule("Q2")
def test_quotas_are_settings_and_a_class_that_is_gone_has_the_default_ones() -> None:
    gold = QuotaClass(reads=9, suggest=8, reports=7)
    policy = QuotaPolicy(
        QuotaClass(reads=1, suggest=2, reports=0), MappingProxyType({"default": WITH_TOKEN, "gold": gold})
    )
    asked = [_quota(policy, Bucket.READS, token).limit for token in (None, TOKEN, GOLD, Token("c", "c", "gone", None))]
    assert asked == [1, 1_200, 9, 1_200]
    assert _quota(policy, Bucket.REPORTS, GOLD) == Quota(Bucket.REPORTS, 7, 3_600)


def test_the_classes_must_hold_the_default_one() -> None:
    with pytest.raises(ValueError, match="must be named default"):
        QuotaPolicy(classes={})


@pytest.mark.rule("Q2")
def test_a_token_is_counted_by_its_id_and_anybody_else_by_the_address() -> None:
    policy = QuotaPolicy(networks=NamedNetworks({"near": NamedNetwork(("192.0.2.2",), "default")}))
    calls = [
        (Bucket.READS, TOKEN, "192.0.2.2"),
        (Bucket.SUGGEST, None, "192.0.2.1"),
        (Bucket.SUGGEST, None, "unknown"),
        (Bucket.SUGGEST, None, "stdio"),
    ]
    keys = [policy.account(*call).key for call in calls]
    assert keys == ["reads:token:a1", "suggest:address:192.0.2.1", "suggest:address:unknown", "suggest:address:stdio"]


@pytest.mark.rule("F13")
@pytest.mark.parametrize(
    ("address", "network", "limit"),
    [
        ("192.0.2.7", "hosted", 1_200),
        ("192.0.2.127", "hosted", 1_200),
        ("192.0.2.128", "office", 9),
        ("192.0.2.200", "desk", 1_200),
        ("192.0.3.0", None, 120),
        ("2001:db8:1:2:3::4", "hosted", 1_200),
        ("2001:db8:1:ffff::", "office", 9),
        ("2001:db9::", None, 120),
        ("198.51.100.7", "office", 9),
    ],
)
def test_a_named_network_counts_together_by_its_longest_range(address: str, network: str | None, limit: int) -> None:
    gold = QuotaClass(reads=9, suggest=8, reports=7)
    named = {
        "hosted": NamedNetwork(("192.0.2.0/24", "2001:db8::/32"), "default"),
        "office": NamedNetwork(("192.0.2.128/25", "2001:db8:1:ffff::/64", "::ffff:198.51.100.0/120"), "gold"),
        "desk": NamedNetwork(("192.0.2.200",), "default"),
    }
    policy = QuotaPolicy(classes={"default": WITH_TOKEN, "gold": gold}, networks=NamedNetworks(named))
    key = f"reads:network:{network}" if network else f"reads:address:{address_group(address)}"
    assert policy.account(Bucket.READS, None, address) == Account(key, Quota(Bucket.READS, limit, 60), network)


def _quota(policy: QuotaPolicy, bucket: Bucket, token: Token | None) -> Quota:
    return policy.account(bucket, token, "192.0.2.1").quota


@pytest.mark.rule("Q2")
@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("unknown", "unknown"),
    ],
)
def test_an_ipv6_customer_is_one_caller(address: str, group: str) -> None:
    assert address_group(address) == group
