"""One deadline for a request and all that is asked of Redis for it; shared look-ups belong to no single request."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
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
from service.limits.redis import RedisLimiter
from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection
from service.reports.protocol import ReportsUnavailable
from service.runtime.request_context import RequestContext, bind_request
from service.runtime.telemetry import Metrics
from tests.engines.redis_access.using import READS, UNAVAILABLE, WIDGET, Stores, opened
from tests.rules.reports.stores import report
from tests.support.real.redis import RedisServer

Ask = Callable[[Stores], Awaitable[object]]

# One for each store: the calls of a store share one way to Redis.
ASKED: Final[dict[str, Ask]] = {
    "append": lambda stores: stores.reports.append(report("s1")),
    "find": lambda stores: stores.tokens.find(hash_of("text")),
    "hit": lambda stores: stores.limiter.hit("k", READS),
}


@dataclass
class Recorded(Metrics):
    """What was measured, without the times."""

    caches: list[tuple[str, bool]] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        self.caches += [(cache, hit)] * times

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        assert 0 <= seconds < 2
        self.calls.append((store, operation, outcome))


@pytest.fixture
async def server(redis_program: str, tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A Redis that the test may pause."""
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
