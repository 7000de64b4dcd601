"""The page on re-checks: its worker works, and it names the keys and fields that are there."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from redis.asyncio import Redis

from service.redis.access import RedisAccess
from service.reports.redis import RedisReports
from tests.rules.reports.stores import exported, report
from tests.support.real.redis import RedisServer
from tests.support.real.sources import REPOSITORY

PAGE: Final = (REPOSITORY / "docs" / "rechecks.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.redis


async def test_the_worker_of_the_page_does_what_it_says(own_redis: RedisServer, tmp_path: Path) -> None:
    queue = RedisReports(RedisAccess(own_redis.url))
    given = [report("s1"), report("s2", kind="fact", reason="return_period")]
    for one in given:
        await queue.append(one)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    program = tmp_path / "worker.py"
    program.write_text(example, encoding="utf-8")
    environment = {**os.environ, "SHOP_DIRECTORY_REDIS_URL": own_redis.url, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "look again at s1 code invalid\nlook again at s2 fact return_period\n2 done\n"
    assert ((await queue.waiting(1)).depth, await exported(queue)) == (0, given)
    await queue.close()


async def test_the_bare_commands_of_the_page_take_an_entry_off_the_queue(own_redis: RedisServer) -> None:
    queue = RedisReports(RedisAccess(own_redis.url))
    await queue.append(report("s1"))
    (block,) = re.findall(r"```redis\n(XGROUP.*?)```", PAGE, re.DOTALL)
    create, read, take_over, acknowledge, delete = [line.split("#")[0].split() for line in block.splitlines()]
    async with Redis.from_url(own_redis.url, decode_responses=True) as client:

        async def run(words: list[str]) -> object:
            return await client.execute_command(*words)  # type: ignore[no-untyped-call]  # the client leaves it out

        await run(create)
        ((entry_id, _),) = dict(await run(read))["{shopdir}:rechecks"]  # type: ignore[call-overload]
        await run(take_over)
        assert await run([*acknowledge[:-1], entry_id]) == 1
        assert await run([*delete[:-1], entry_id]) == 1
    assert (await queue.waiting(1)).depth == 0
    await queue.close()


async def test_every_key_and_every_field_of_redis_is_on_the_page(own_redis: RedisServer) -> None:
    queue = RedisReports(RedisAccess(own_redis.url), max_deliveries=1)
    for shop in ("s1", "s2"):
        await queue.append(report(shop))
    await queue.claim("w1", 1, 60)
    await asyncio.sleep(0.05)
    await queue.claim("w1", 1, 0.01)
    async with Redis.from_url(own_redis.url, decode_responses=True) as client:
        keys = {key async for key in client.scan_iter("*")}
        entries: list[Any] = [await client.xrange(key) for key in keys if await client.type(key) == "stream"]
    await queue.close()
    fields = {name for stream in entries for _, texts in stream for name in texts}
    tables = "\n".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| "))
    named = set(re.findall(r"`([^`]+)`", tables))
    assert {re.sub(r"mark:.*", "mark:…", key) for key in keys} | fields <= named
    assert len(entries) == 3
