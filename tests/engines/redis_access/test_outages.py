"""Redis in trouble: nodes and masters that are gone or hang, and one deadline for all that a request asks of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from service.auth.protocol import TokensUnavailable
from service.auth.redis import RedisTokenStore
from service.auth.secrets import hash_of, new_token_text
from service.auth.verifier import TokenVerifier
from service.limits.blocks import BlockLimiter
from service.limits.fallback import FallbackLimiter
from service.limits.memory import MemoryLimiter
from service.limits.policy import Bucket, Quota
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection
from service.reports.protocol import ReportsUnavailable
from shop_directory.runtime.metrics import Metrics
from shop_directory.runtime.request_context import RequestContext, bind_request
from tests.engines.redis_access.using import PATIENCE_S, READS, UNAVAILABLE, USED, WIDGET, Stores, opened, soon, use
from tests.rules.reports.stores import exported, report
from tests.support.real.redis import (
    MASTER_NAME,
    ClusterOfRedis,
    RedisServer,
    SentinelsOfRedis,
    redis_cli,
    wait_until_replicated,
)

RESUMED_BOUND_S: Final = 10.0


@pytest.fixture
def cluster(redis_program: str, tmp_path: Path) -> Iterator[ClusterOfRedis]:
    with ClusterOfRedis(redis_program, tmp_path / "cluster", replicas=1) as running:
        yield running


def _access(cluster: ClusterOfRedis) -> RedisAccess:
    # Also when it is one that hangs: the others are learnt from the other.
    return RedisAccess(cluster_nodes=cluster.addresses[:2])


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


@pytest.fixture
def group(redis_program: str, tmp_path: Path) -> Iterator[SentinelsOfRedis]:
    with SentinelsOfRedis(redis_program, tmp_path / "group") as running:
        yield running


def _sentinel_access(group: SentinelsOfRedis) -> RedisAccess:
    return RedisAccess(sentinels=group.addresses, sentinel_name=MASTER_NAME)


@pytest.mark.rule("Q4", "Q5")
@pytest.mark.parametrize("how", ["killed", "hanging"])
@pytest.mark.parametrize("way", ["cluster", "group"])
async def test_everything_recovers_by_itself_after_a_master_is_gone(
    request: pytest.FixtureRequest, way: str, how: str
) -> None:
    running: ClusterOfRedis | SentinelsOfRedis = request.getfixturevalue(way)
    if isinstance(running, ClusterOfRedis):
        access, master = _access(running), running.master_of("{shopdir}:reports")
    else:
        access, master = _sentinel_access(running), running.master
    async with opened(access) as stores:
        assert await asyncio.gather(*(stores.reports.append(report(f"s{n}")) for n in range(8))) == [True] * 8
        await stores.tokens.issue(WIDGET, hash_of("text"))
        # What comes before the fault is not what is timed here: a busy machine may need longer for so many connections.
        for number in range(30):
            await soon(partial(stores.limiter.hit, f"k{number}", READS))
        # What a failover keeps is what a replica had: here all of it, as no write was pending.
        wait_until_replicated(master)
        if how == "killed":
            master.kill()
        else:
            master.process.pause()
        appended, seconds = await soon(lambda: stores.reports.append(report("s8")))
        found, _ = await soon(lambda: stores.tokens.find(hash_of("text")))
        counted = [(await soon(partial(stores.limiter.hit, f"k{number}", READS)))[0] for number in range(30)]
        quick = time.monotonic()
        await asyncio.gather(*(stores.reports.append(report(f"t{number}")) for number in range(8)))
        took = time.monotonic() - quick
        stored = {one.shop_id for one in await exported(stores.reports)}
        if how == "killed" and isinstance(running, SentinelsOfRedis):
            # It comes back as a replica: it accepts no writes any more, also over connections from before.
            master.start()
            redis_cli(master.port, "REPLICAOF", "127.0.0.1", str(running.replica.port))
            assert await stores.reports.append(report("u0"))
            assert await use(access, "after") == USED
    # A hit that was tried again may count twice, none starts anew.
    assert (appended, found, {one.allowed for one in counted}) == (True, WIDGET, {True})
    assert max(one.remaining for one in counted) == READS.limit - 2
    assert stored == {f"{letter}{number}" for letter in "st" for number in range(8)} | {"s8"}
    assert (seconds < RESUMED_BOUND_S, took < 1.0) == (True, True)


async def test_a_sentinel_that_hangs_or_is_gone_does_not_hide_the_master_and_knows_its_user(
    group: SentinelsOfRedis,
) -> None:
    group.sentinels[0].process.pause()
    group.sentinels[1].kill()
    # The last one lets only its user ask, who may ask nothing else.
    port = group.sentinels[2].port
    assert (
        redis_cli(port, "ACL", "SETUSER", "asker", "on", ">secret", "resetchannels", "-@all", "+sentinel|masters")
        == "OK\n"
    )
    redis_cli(port, "ACL", "SETUSER", "default", "-@all", "+acl")
    asker = replace(_sentinel_access(group), sentinel_user="asker", sentinel_password="secret")
    async with opened(asker) as stores:
        assert await stores.reports.append(report()) is True
    async with opened(_sentinel_access(group)) as stores:
        with pytest.raises(ReportsUnavailable):
            await stores.reports.append(report())


Ask = Callable[[Stores], Awaitable[object]]

# One for each store: the calls of a store share one way to Redis.
ASKED: Final[dict[str, Ask]] = {
    "append": lambda stores: stores.reports.append(report("s1")),
    "find": lambda stores: stores.tokens.find(hash_of("text")),
    "hit": lambda stores: stores.limiter.hit("k", READS),
}


@dataclass
class Recorded(Metrics):
    caches: list[tuple[str, bool]] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        self.caches += [(cache, hit)] * times

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        assert 0 <= seconds < 2
        self.calls.append((store, operation, outcome))


@pytest.fixture
async def server(redis_program: str, tmp_path: Path) -> AsyncIterator[RedisServer]:
    with RedisServer(redis_program, tmp_path) as running:
        yield running


def _request(seconds: float) -> RequestContext:
    now = time.monotonic()
    return RequestContext("r1", now, now + seconds)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_a_request_waits_for_a_hanging_redis_no_longer_than_it_has_time(server: RedisServer, ask: Ask) -> None:
    async with opened(RedisAccess(server.url), timeout=5.0) as stores:
        await stores.reports.append(report("s0"))
        server.process.pause()
        began = time.monotonic()
        with bind_request(_request(0.1)), pytest.raises(UNAVAILABLE):
            await ask(stores)
        took = time.monotonic() - began
        server.process.resume()
    assert 0.05 < took < 1.0


@pytest.mark.rule("Q4", "E5")
async def test_a_connection_that_is_cut_before_a_write_counts_as_an_unavailable_redis() -> None:
    connection = RedisConnection(
        RedisAccess(), connections=1, timeout=1.0, purpose="reports", unavailable=ReportsUnavailable
    )

    async def cut() -> None:
        # As uvloop says it, which is no error of the network.
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    with pytest.raises(ReportsUnavailable, match="Redis: ConnectionError"):
        await connection.execute(cut, retry=True)
    await connection.close()


async def test_what_a_request_gave_up_does_not_answer_the_next_one(server: RedisServer) -> None:
    async with opened(RedisAccess(server.url)) as stores:
        await stores.tokens.issue(WIDGET, hash_of("text"))
        server.process.pause()
        for _ in range(20):
            with bind_request(_request(0.02)), pytest.raises(UNAVAILABLE):
                await stores.tokens.find(hash_of("text"))
        server.process.resume()
        assert [await stores.tokens.find(hash_of(text)) for text in ("none", "text", "none")] == [None, WIDGET, None]


@pytest.mark.rule("Q1")
async def test_a_look_up_that_requests_share_outlives_the_one_that_began_it(server: RedisServer) -> None:
    text, metrics = new_token_text(), Recorded()
    store = RedisTokenStore(RedisAccess(server.url), "shopdir")
    verifier = TokenVerifier(store, metrics=metrics)
    await store.issue(WIDGET, hash_of(text))
    server.process.pause()
    with bind_request(_request(0.05)):
        hurried = asyncio.create_task(verifier.verify(text))
    with bind_request(_request(5)):
        unhurried = asyncio.create_task(verifier.verify(text))
    with pytest.raises(TokensUnavailable):
        await hurried
    server.process.resume()
    second = await unhurried
    third = await verifier.verify(text)
    await verifier.close()
    await store.close()
    assert (second, third) == (WIDGET, WIDGET)
    assert metrics.caches == [("tokens", False), ("tokens", False), ("tokens", True)]
    assert metrics.calls == [("tokens", "find", "ok")]


@pytest.mark.rule("Q4")
async def test_a_request_without_time_left_does_not_put_others_under_the_local_quota(server: RedisServer) -> None:
    shared = BlockLimiter(RedisLimiter(RedisAccess(server.url), "shopdir", timeout=2))
    limiter = FallbackLimiter(shared, MemoryLimiter())
    await limiter.hit("k", READS)
    with bind_request(_request(0)):
        late = await limiter.hit("k", READS)
    after = await limiter.hit("k", READS)
    await limiter.close()
    assert (late.remaining, after.remaining, limiter.degraded) == (READS.limit - 1, READS.limit - 2, False)
