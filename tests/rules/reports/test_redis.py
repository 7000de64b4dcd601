"""What only Redis can show: all or nothing, scripts loaded again, keys that end, a warning."""

import logging

import pytest
from redis.asyncio import Redis

from service.redis.access import RedisAccess
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from tests.rules.reports.stores import RedisStore, executed, exported, report
from tests.support.real.redis import RedisServer

pytestmark = pytest.mark.redis


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
    assert (await exported(queue), await queue.depth()) == ([report()], 1)


async def test_the_scripts_are_loaded_again_after_the_server_forgot_them(redis_store: RedisStore) -> None:
    queue = redis_store.open()
    await queue.append(report("s1"))
    async with Redis.from_url(redis_store.url) as client:
        await client.script_flush()
    assert await queue.append(report("s2")) is True
    assert [one.report.shop_id for one in await queue.claim("w1", 5, 60)] == ["s1", "s2"]


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
