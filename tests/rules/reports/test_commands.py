"""The operator's commands on the queue of reports, and the page on re-checks with its worker."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner, Result

from service.commands.rechecks import rechecks
from service.redis.access import RedisAccess
from service.reports.protocol import Recheck, ReportQueue
from service.reports.redis import RedisReports
from service.reports.sqlite import SqliteReports
from tests.rules.reports.stores import RedisStore, exported, report
from tests.support.real.process import free_ports
from tests.support.real.redis import RedisServer
from tests.support.real.sources import REPOSITORY

UNSET: Final = dict.fromkeys(
    f"SHOP_DIRECTORY_{name}" for name in ("REPORTS", "REPORTS_FILE", "REDIS_URL", "REDIS_PREFIX")
)
REPORT: Final = {
    "reported_at": "2026-11-21T09:30:00.250000Z",
    "kind": "code",
    "shop_id": "s1",
    "code": "SAVE10",
    "reason": "invalid",
    "source": "token-a",
}
AS_TEXT: Final = "2026-11-21T09:30:00.250000Z\tcode\ts1\tSAVE10\tinvalid\ttoken-a"
SHOP_AS_TEXT: Final = "2026-11-21T09:30:00.250000Z\tshop\ts2\t-\tunreachable\ttoken-a"
_Answer = TypeVar("_Answer")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "reports.sqlite"

    async def fill(queue: ReportQueue) -> None:
        await queue.append(report("s1"))
        await queue.append(report("s2", kind="shop", reason="unreachable"))

    _asked(SqliteReports(found), fill)
    return found


def _asked(queue: ReportQueue, ask: Callable[[ReportQueue], Awaitable[_Answer]]) -> _Answer:
    async def asked() -> _Answer:
        try:
            return await ask(queue)
        finally:
            await queue.close()

    return asyncio.run(asked())


def _run(path: Path, *arguments: str, **environment: str) -> Result:
    set_here = {"SHOP_DIRECTORY_REPORTS_FILE": str(path), **environment}
    return CliRunner().invoke(rechecks, arguments, env={**UNSET, **set_here})


def _outcome(done: Result) -> tuple[int, list[str], str]:
    return done.exit_code, done.stdout.splitlines(), done.stderr


def test_list_shows_the_counts_the_workers_the_entries_and_the_dead_letters(path: Path) -> None:
    held: tuple[Recheck, ...] = _asked(SqliteReports(path), lambda queue: queue.claim("desk-1", 1, 60))
    assert _outcome(_run(path, "list")) == (
        0,
        [
            "2 re-checks wait: 1 not claimed yet, 1 held by workers; 0 dead letters.",
            "worker desk-1: holds 1, idle 0 s",
            f"{held[0].id}\t1\tdesk-1\t0\t{AS_TEXT}",
            f"2\t0\t-\t-\t{SHOP_AS_TEXT}",
        ],
        "",
    )
    _asked(SqliteReports(path, max_deliveries=1), lambda queue: queue.claim("desk-2", 1, 0))
    assert _outcome(_run(path, "list", "--count", "1")) == (
        0,
        [
            "1 re-checks wait: 0 not claimed yet, 1 held by workers; 1 dead letters.",
            "worker desk-2: holds 1, idle 0 s",
            f"2\t1\tdesk-2\t0\t{SHOP_AS_TEXT}",
            "Dead letters:",
            f"1\t1\tdesk-1\t-\t{AS_TEXT}",
        ],
        "",
    )


def test_list_as_json_is_one_object(path: Path) -> None:
    printed = json.loads(_run(path, "list", "--count", "1", "--json").stdout)
    entry = {"id": "1", "deliveries": 0, "claimed_by": None, "idle_seconds": None, "report": REPORT}
    assert printed == {
        "depth": 2,
        "lag": 2,
        "pending": 0,
        "dead": 0,
        "workers": [],
        "rechecks": [entry],
        "dead_letters": [],
    }


def test_claim_gives_each_entry_to_one_worker(path: Path) -> None:
    assert _outcome(_run(path, "claim", "--worker", "desk-1", "--count", "1")) == (
        0,
        [f"1\t1\tdesk-1\t0\t{AS_TEXT}"],
        "",
    )
    second = _run(path, "claim", "--worker", "desk-2")
    assert _outcome(second) == (0, [f"2\t1\tdesk-2\t0\t{SHOP_AS_TEXT}"], "")
    assert _outcome(_run(path, "claim", "--worker", "desk-3")) == (0, [], "")


def test_claim_takes_over_what_is_idle_and_prints_it_as_json(path: Path) -> None:
    _run(path, "claim", "--worker", "desk-1", "--count", "1")
    taken = _run(path, "claim", "--worker", "desk-2", "--idle", "0", "--count", "5", "--json").stdout.splitlines()
    printed: list[dict[str, Any]] = [json.loads(line) for line in taken]
    assert [(one["id"], one["deliveries"], one["claimed_by"]) for one in printed] == [
        ("2", 1, "desk-2"),
        ("1", 2, "desk-2"),
    ]
    assert printed[1]["report"] == REPORT


def test_ack_prints_what_is_done_and_says_by_its_code_what_is_not(path: Path) -> None:
    _run(path, "claim", "--worker", "desk-1", "--count", "1")
    assert _outcome(_run(path, "ack", "--worker", "desk-2", "1")) == (1, [], "Not held by desk-2: 1.\n")
    assert _outcome(_run(path, "ack", "--worker", "desk-1", "1")) == (0, ["1"], "")
    refused = _run(path, "ack", "--worker", "desk-1", "1", "2", "--json")
    printed = '{"error": {"code": "bad_input", "message": "Not held by desk-1: 1, 2."}}\n'
    assert _outcome(refused) == (1, ['{"acknowledged": [], "not_held": ["1", "2"]}'], printed)


@pytest.mark.rule("I36")
def test_export_prints_all_reports_and_an_acknowledgement_takes_none_away(path: Path) -> None:
    _run(path, "claim", "--worker", "desk-1")
    _run(path, "ack", "--worker", "desk-1", "1", "2")
    assert _outcome(_run(path, "export")) == (0, [AS_TEXT, SHOP_AS_TEXT], "")
    as_json = _run(path, "export", "--json")
    shop = {**REPORT, "kind": "shop", "shop_id": "s2", "code": None, "reason": "unreachable"}
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [REPORT, shop]


@pytest.mark.redis
async def test_the_environment_names_the_redis(tmp_path: Path, redis_store: RedisStore) -> None:
    await redis_store.open().append(report("s1"))
    redis = {
        "SHOP_DIRECTORY_REPORTS": "redis",
        "SHOP_DIRECTORY_REDIS_URL": redis_store.url,
        "SHOP_DIRECTORY_REDIS_PREFIX": redis_store.prefix,
    }
    done = await asyncio.to_thread(_run, tmp_path / "unused", "export", **redis)
    assert _outcome(done) == (0, [AS_TEXT], "")


@pytest.mark.parametrize("command", [("list",), ("claim", "--worker", "w"), ("ack", "--worker", "w", "1"), ("export",)])
def test_a_store_that_is_away_is_exit_code_3_without_address_or_password(tmp_path: Path, command: tuple[str]) -> None:
    (port,) = free_ports(1)
    url = f"redis://:zqcanaryzq@127.0.0.1:{port}/0"
    away = _run(tmp_path, *command, SHOP_DIRECTORY_REPORTS="redis", SHOP_DIRECTORY_REDIS_URL=url)
    printed = "The reports are not available: Redis did not confirm: ConnectionError.\n"
    assert _outcome(away) == (3, [], printed)


@pytest.mark.parametrize(
    "command",
    [
        ("claim",),
        ("claim", "--worker", ""),
        ("claim", "--worker", "a b"),
        ("claim", "--worker", "w", "--count", "0"),
        ("ack", "--worker", "w"),
        ("list", "--count", "many"),
        ("unheard-of",),
    ],
)
def test_wrong_usage_is_exit_code_2(path: Path, command: tuple[str, ...]) -> None:
    done = _run(path, *command)
    assert (done.exit_code, done.stdout) == (2, "")


PAGE: Final = (REPOSITORY / "docs" / "rechecks.md").read_text(encoding="utf-8")


@pytest.mark.redis
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


@pytest.mark.redis
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


@pytest.mark.redis
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
