"""What only Redis can show: all or nothing; and a Redis in trouble, for which nothing is acknowledged."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Final

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLostError

from service.redis.access import RedisAccess
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from tests.rules.reports.stores import RedisStore, executed, exported, report
from tests.support.real.redis import RedisServer

pytestmark = pytest.mark.redis
DEADLINE_S: Final = 0.5
SLACK_S: Final = 0.5


@pytest.mark.rule("Q5")
@pytest.mark.parametrize("key", ["reports", "rechecks"])
async def test_an_append_that_fails_half_way_leaves_nothing(redis_store: RedisStore, key: str) -> None:
    queue = redis_store.open()
    broken = f"{{{redis_store.prefix}}}:{key}"
    async with Redis.from_url(redis_store.url, decode_responses=True) as client:
        await client.set(broken, "no stream")
        with pytest.raises(ReportsUnavailable):
            await queue.append(report())
        assert [name async for name in client.scan_iter(f"{{{redis_store.prefix}}}:*")] == [broken]
        await client.delete(broken)
    assert await queue.append(report()) is True
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report()], 1)


async def test_the_marks_end_with_their_window_and_nothing_else_does(redis_store: RedisStore) -> None:
    queue = redis_store.open(window_seconds=600)
    await queue.append(report())
    await queue.claim("w1", 1, 60)
    tag = f"{{{redis_store.prefix}}}"
    async with Redis.from_url(redis_store.url, decode_responses=True) as client:
        ends = {key: await client.ttl(key) async for key in client.scan_iter(f"{tag}:*")}
    mark = ends.pop(f"{tag}:reports:mark:{report().mark}")
    assert (590 < mark <= 600, ends) == (True, {f"{tag}:reports": -1, f"{tag}:rechecks": -1})


@pytest.mark.parametrize(("syncs", "warnings"), [("always", 0), ("everysec", 1)])
async def test_a_redis_that_answers_before_it_syncs_is_warned_of_once(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture, syncs: str, warnings: int
) -> None:
    await executed(own_redis, "CONFIG", "SET", "appendfsync", syncs)
    queue = RedisReports(RedisAccess(own_redis.url))
    with caplog.at_level(logging.WARNING, logger="service.reports"):
        assert [await queue.append(report(shop)) for shop in ("s1", "s2")] == [True, True]
    await queue.close()
    said = "Redis answers before a report is on disk: set appendonly yes and appendfsync always"
    assert [record.getMessage() for record in caplog.records] == [said] * warnings


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
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report("s0")], 1)
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
