"""A master behind sentinels: the service finds it, and finds the next one by itself when it is gone or hangs."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from service.auth.secrets import hash_of
from service.redis.access import RedisAccess
from service.reports.protocol import ReportsUnavailable
from tests.engines.redis_access.using import READS, USED, WIDGET, opened, soon, use
from tests.rules.reports.stores import exported, report
from tests.support.real.redis import MASTER_NAME, SentinelsOfRedis, redis_cli, wait_until_replicated

RESUMED_BOUND_S: Final = 10.0


@pytest.fixture
def group(redis_program: str, tmp_path: Path) -> Iterator[SentinelsOfRedis]:
    """A master, a replica and three sentinels."""
    with SentinelsOfRedis(redis_program, tmp_path / "group") as running:
        yield running


def _access(group: SentinelsOfRedis) -> RedisAccess:
    return RedisAccess(sentinels=group.addresses, sentinel_name=MASTER_NAME)


@pytest.mark.rule("Q4", "Q5")
async def test_everything_recovers_by_itself_after_the_master_was_killed(group: SentinelsOfRedis) -> None:
    assert await use(_access(group), "before") == USED
    async with opened(_access(group)) as stores:
        assert [await stores.reports.append(report(f"s{number}")) for number in range(5)] == [True] * 5
        await stores.tokens.issue(WIDGET, hash_of("text"))
        await stores.limiter.hit("k", READS)
        # What a failover keeps is what a replica had: here all of it, as no write was pending.
        wait_until_replicated(group.master)
        group.master.kill()
        appended, seconds = await soon(lambda: stores.reports.append(report("s5")))
        found, _ = await soon(lambda: stores.tokens.find(hash_of("text")))
        counted, _ = await soon(lambda: stores.limiter.hit("k", READS))
        stored = [one.shop_id for one in await exported(stores.reports)]
        # It comes back as a replica: it accepts no writes any more, also over connections from before.
        group.master.start()
        redis_cli(group.master.port, "REPLICAOF", "127.0.0.1", str(group.replica.port))
        back = await stores.reports.append(report("s6"))
    assert (appended, found, counted.remaining, back) == (True, WIDGET, READS.limit - 2, True)
    assert stored == [f"s{number}" for number in range(6)]
    assert seconds < RESUMED_BOUND_S
    assert await use(_access(group), "after") == USED


@pytest.mark.rule("Q4")
async def test_everything_recovers_by_itself_while_the_old_master_hangs(group: SentinelsOfRedis) -> None:
    async with opened(_access(group)) as stores:
        await asyncio.gather(*(stores.reports.append(report(f"s{number}")) for number in range(8)))
        await stores.tokens.issue(WIDGET, hash_of("text"))
        wait_until_replicated(group.master)
        group.master.process.pause()
        appended, seconds = await soon(lambda: stores.reports.append(report("s8")))
        found, _ = await soon(lambda: stores.tokens.find(hash_of("text")))
        quick = time.monotonic()
        await asyncio.gather(*(stores.reports.append(report(f"t{number}")) for number in range(8)))
        took = time.monotonic() - quick
    assert (appended, found, seconds < RESUMED_BOUND_S, took < 1.0) == (True, WIDGET, True, True)


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
    asker = replace(_access(group), sentinel_user="asker", sentinel_password="secret")
    async with opened(asker) as stores:
        assert await stores.reports.append(report()) is True
    async with opened(_access(group)) as stores:
        with pytest.raises(ReportsUnavailable):
            await stores.reports.append(report())
