"""A Redis in trouble: stopped, paused, killed, full, read-only. Never an acknowledgement that it did not give."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest
from redis.exceptions import ConnectionError as ConnectionLostError

from service.redis.access import RedisAccess
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from tests.rules.reports.stores import executed, exported, report
from tests.support.real.redis import RedisServer

pytestmark = pytest.mark.redis

DEADLINE_S: Final = 0.5
SLACK_S: Final = 0.5
Ask = Callable[[RedisReports], Awaitable[object]]

CALLS: Final[dict[str, Ask]] = {
    "append": lambda queue: queue.append(report("s1")),
    "claim": lambda queue: queue.claim("w1", 1, 60),
    "acknowledge": lambda queue: queue.acknowledge("w1", ["1-1"]),
    "waiting": lambda queue: queue.waiting(1),
    "export": exported,
    "depth": lambda queue: queue.depth(),
}


@pytest.fixture
async def queue(own_redis: RedisServer) -> AsyncIterator[RedisReports]:
    """A queue with a short deadline on the test's own Redis, with one report in it."""
    opened = RedisReports(RedisAccess(own_redis.url), timeout=DEADLINE_S)
    await opened.append(report("s0"))
    yield opened
    await opened.close()


async def _refused_in_time(ask: Awaitable[object]) -> None:
    started = time.monotonic()
    with pytest.raises(ReportsUnavailable):
        await ask
    assert time.monotonic() - started < DEADLINE_S + SLACK_S


@pytest.mark.rule("Q5")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("fault", [RedisServer.stop, lambda redis: redis.process.pause()], ids=["stopped", "paused"])
async def test_a_stopped_or_paused_redis_is_unavailable_to_every_call_in_time(
    own_redis: RedisServer, queue: RedisReports, call: Ask, fault: Callable[[RedisServer], None]
) -> None:
    fault(own_redis)
    await _refused_in_time(call(queue))


@pytest.mark.rule("Q5")
async def test_many_appends_to_a_paused_redis_are_all_refused_in_time_and_may_be_tried_again(
    own_redis: RedisServer, queue: RedisReports
) -> None:
    own_redis.process.pause()
    started = time.monotonic()
    appends = await asyncio.gather(*(queue.append(report(f"s{n}")) for n in range(60)), return_exceptions=True)
    took = time.monotonic() - started
    own_redis.process.resume()
    assert [type(append) for append in appends] == [ReportsUnavailable] * 60
    assert took < DEADLINE_S + SLACK_S
    for number in range(60):
        await queue.append(report(f"s{number}"))
    assert sorted(one.shop_id for one in await exported(queue)) == sorted(f"s{n}" for n in range(60))


@pytest.mark.parametrize("times", [1, 3])
async def test_a_waiting_connection_that_the_server_closed_costs_no_answer(
    own_redis: RedisServer, queue: RedisReports, times: int
) -> None:
    for number in range(times):
        await executed(own_redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert await queue.append(report(f"t{number}")) is True
    assert len(await exported(queue)) == 1 + times


@pytest.mark.rule("Q5")
async def test_an_append_whose_answer_was_lost_is_sent_again_and_gets_the_first_answer(
    queue: RedisReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, sent = queue._redis.client.evalsha, 0

    async def run_and_lose_the_first_answer(*arguments: object) -> object:
        nonlocal sent
        answer = await run(*arguments)
        sent += 1
        if sent == 1:
            raise ConnectionLostError
        return answer

    monkeypatch.setattr(queue._redis.client, "evalsha", run_and_lose_the_first_answer)
    assert (await queue.append(report("s1")), sent) == (True, 2)
    assert await exported(queue) == [report("s0"), report("s1")]


@pytest.mark.rule("Q5")
@pytest.mark.parametrize(
    "command",
    [
        ("CONFIG", "SET", "maxmemory", "1"),
        ("REPLICAOF", "127.0.0.1", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "requirepass", "secret"),
        ("CLIENT", "PAUSE", "60000", "WRITE"),
    ],
    ids=["out of memory", "read-only replica", "too few replicas", "password wanted", "writes paused"],
)
async def test_a_redis_that_takes_no_writes_is_unavailable_and_stores_nothing(
    own_redis: RedisServer, queue: RedisReports, command: tuple[str, ...]
) -> None:
    await executed(own_redis, *command)
    fresh = RedisReports(RedisAccess(own_redis.url), timeout=DEADLINE_S)
    await _refused_in_time(fresh.append(report("s1")))
    await fresh.close()
    own_redis.kill()
    own_redis.start()
    assert (await exported(queue), await queue.depth()) == ([report("s0")], 1)
    assert await queue.append(report("s1")) is True


@pytest.mark.rule("Q5")
async def test_a_redis_whose_disk_fails_is_unavailable(own_redis: RedisServer, queue: RedisReports) -> None:
    await executed(own_redis, "CONFIG", "SET", "save", "3600 1")
    # A directory where the snapshot belongs makes it fail, as a full disk would: MISCONF.
    (own_redis.folder / "dump.rdb").mkdir()
    await executed(own_redis, "BGSAVE")
    for _ in range(100):
        if "'rdb_last_bgsave_status': 'err'" in str(await executed(own_redis, "INFO", "persistence")):
            break
        await asyncio.sleep(0.05)
    await _refused_in_time(queue.append(report("s1")))
    assert await exported(queue) == [report("s0")]
    # It would not stop without a snapshot.
    own_redis.kill()
