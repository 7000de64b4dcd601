"""A cluster: everything works over its many nodes, and goes on by itself when one of them is gone or hangs."""

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from service.auth.secrets import hash_of
from service.limits.blocks import BlockLimiter
from service.limits.policy import Bucket, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from tests.engines.redis_access.using import PATIENCE_S, READS, USED, WIDGET, opened, soon, use
from tests.rules.reports.stores import exported, report
from tests.support.real.redis import ClusterOfRedis, redis_cli, wait_until_replicated

RESUMED_BOUND_S: Final = 10.0


@pytest.fixture
def cluster(redis_program: str, tmp_path: Path) -> Iterator[ClusterOfRedis]:
    """Three masters, each with a replica."""
    with ClusterOfRedis(redis_program, tmp_path / "cluster", replicas=1) as running:
        yield running


def _access(cluster: ClusterOfRedis) -> RedisAccess:
    # Also when it is one that hangs: the others are learnt from the other.
    return RedisAccess(cluster_nodes=cluster.addresses[:2])


@pytest.mark.rule("Q4", "Q5")
@pytest.mark.parametrize("how", ["killed", "hanging"])
async def test_everything_recovers_by_itself_after_a_master_is_gone(cluster: ClusterOfRedis, how: str) -> None:
    owner = cluster.master_of("{shopdir}:reports")
    async with opened(_access(cluster)) as stores:
        assert await asyncio.gather(*(stores.reports.append(report(f"s{n}")) for n in range(8))) == [True] * 8
        await stores.tokens.issue(WIDGET, hash_of("text"))
        # What comes before the fault is not what is timed here: a busy machine may need longer for so many connections.
        await asyncio.gather(*(soon(partial(stores.limiter.hit, f"k{number}", READS)) for number in range(30)))
        wait_until_replicated(owner)
        if how == "killed":
            owner.kill()
        else:
            owner.process.pause()
        appended, seconds = await soon(lambda: stores.reports.append(report("s8")))
        found, _ = await soon(lambda: stores.tokens.find(hash_of("text")))
        counted = [(await soon(partial(stores.limiter.hit, f"k{number}", READS)))[0] for number in range(30)]
        quick = time.monotonic()
        await asyncio.gather(*(stores.reports.append(report(f"t{number}")) for number in range(8)))
        took = time.monotonic() - quick
        stored = {one.shop_id for one in await exported(stores.reports)}
    assert (appended, found, {one.allowed for one in counted}) == (True, WIDGET, {True})
    assert stored == {f"{letter}{number}" for letter in "st" for number in range(8)} | {"s8"}
    assert (seconds < RESUMED_BOUND_S, took < 1.0) == (True, True)


@pytest.mark.redis_cluster
async def test_everything_works_and_keys_are_spread(redis_cluster: tuple[str, ...]) -> None:
    access = RedisAccess(cluster_nodes=redis_cluster[:1])
    assert await use(access, "works") == USED
    async with opened(access, "spread", timeout=PATIENCE_S) as stores:
        await asyncio.gather(*(stores.limiter.hit(f"k{number}", READS) for number in range(60)))
    sizes = [int(redis_cli(int(address.rpartition(":")[2]), "DBSIZE")) for address in redis_cluster]
    assert all(size > 0 for size in sizes)


@pytest.mark.redis_cluster
@pytest.mark.rule("Q2")
async def test_a_first_rush_of_callers_counts_every_hit_once(redis_cluster: tuple[str, ...]) -> None:
    limiter = BlockLimiter(RedisLimiter(RedisAccess(cluster_nodes=redis_cluster), "rush", timeout=5))
    decisions = await asyncio.gather(*(limiter.hit("k", Quota(Bucket.READS, 50, 60)) for _ in range(200)))
    await limiter.close()
    assert sum(decision.allowed for decision in decisions) == 50


@pytest.mark.redis_cluster
async def test_scripts_that_a_node_forgot_are_sent_again(redis_cluster: tuple[str, ...]) -> None:
    async with opened(RedisAccess(cluster_nodes=redis_cluster), "forgotten", timeout=PATIENCE_S) as stores:
        before = await stores.limiter.hit("k", READS)
        for address in redis_cluster:
            redis_cli(int(address.rpartition(":")[2]), "SCRIPT", "FLUSH")
        after = await stores.limiter.hit("k", READS)
    assert (before.remaining, after.remaining) == (READS.limit - 1, READS.limit - 2)
