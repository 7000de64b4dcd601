"""What each store can show alone: all or nothing; a file for its owner, and a Redis in trouble."""

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLostError

from service.redis.access import RedisAccess
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from service.reports.sqlite import SqliteReports
from tests.rules.reports.stores import RedisStore, SqliteStore, executed, exported, report
from tests.support.real.redis import RedisServer

DEADLINE_S: Final = 0.4
SLACK_S: Final = 0.6

# Holds the lock from its first line of output to the end of its input.
LOCKING: Final = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


async def test_the_file_and_its_companions_can_be_read_by_their_owner_only(sqlite_store: SqliteStore) -> None:
    before = os.umask(0)
    try:
        await sqlite_store.open().append(report())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in sqlite_store.path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"reports.sqlite": 0o600, "reports.sqlite-wal": 0o600, "reports.sqlite-shm": 0o600}


@pytest.mark.rule("Q5")
async def test_every_commit_is_written_ahead_and_synced(sqlite_store: SqliteStore) -> None:
    queue = sqlite_store.open()
    await queue.append(report())

    def pragmas(db: sqlite3.Connection) -> list[object]:
        return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

    assert await queue._run(pragmas) == ["wal", 2]


@pytest.mark.rule("Q5")
@pytest.mark.parametrize("table", ["marks", "reports", "rechecks"])
async def test_an_append_that_fails_half_way_leaves_nothing(sqlite_store: SqliteStore, table: str) -> None:
    queue = sqlite_store.open()
    await queue.append(report("s0"))
    with closing(sqlite3.connect(sqlite_store.path)) as db:
        db.execute(f"CREATE TRIGGER full AFTER INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(ReportsUnavailable):
        await queue.append(report("s1"))
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report("s0")], 1)
    with closing(sqlite3.connect(sqlite_store.path)) as db:
        db.execute("DROP TRIGGER full")
    assert await queue.append(report("s1")) is True
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report("s0"), report("s1")], 2)


@pytest.mark.rule("Q5")
async def test_a_file_that_another_process_has_locked_is_unavailable_in_time_and_then_goes_on(
    sqlite_store: SqliteStore,
) -> None:
    queue = sqlite_store.open(timeout=DEADLINE_S)
    await queue.append(report("s0"))
    command = [sys.executable, "-c", LOCKING, str(sqlite_store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        started = time.monotonic()
        appends = await asyncio.gather(*(queue.append(report(f"s{n}")) for n in range(1, 4)), return_exceptions=True)
        took = time.monotonic() - started
        other.stdin.close()
    assert [type(append) for append in appends] == [ReportsUnavailable] * 3
    assert DEADLINE_S * 0.9 < took < DEADLINE_S + SLACK_S
    # One may have got the lock just after its caller was refused: trying again is safe.
    for number in range(4):
        await sqlite_store.open().append(report(f"s{number}"))
    assert sorted(one.shop_id for one in await exported(queue)) == ["s0", "s1", "s2", "s3"]


async def test_while_a_lock_is_waited_for_the_event_loop_goes_on(sqlite_store: SqliteStore) -> None:
    queue = sqlite_store.open(timeout=DEADLINE_S)
    await queue.append(report())
    with closing(sqlite3.connect(sqlite_store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(queue.append(report("s1")))
        beats = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            beats += 1
        with pytest.raises(ReportsUnavailable):
            await waiting
    assert beats > DEADLINE_S / 0.01 / 4


@pytest.mark.parametrize("kind", ["a directory", "below a file", "other bytes", "another version"])
async def test_what_is_no_file_of_reports_is_unavailable(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "reports.sqlite"
    if kind == "a directory":
        path.mkdir()
    elif kind == "other bytes":
        path.write_bytes(b"no database at all " * 100)
    elif kind == "another version":
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 2")
    else:
        path.touch()
        path /= "reports.sqlite"
    queue = SqliteReports(path, timeout=5.0)
    with pytest.raises(ReportsUnavailable):
        await queue.append(report())
    await queue.close()


@pytest.mark.rule("Q5")
async def test_a_file_that_was_removed_is_made_again_and_nothing_goes_to_the_old_one(
    sqlite_store: SqliteStore,
) -> None:
    queue = sqlite_store.open()
    await queue.append(report("s1"))
    for path in sqlite_store.path.parent.iterdir():
        path.unlink()
    assert await queue.append(report("s2")) is True
    assert await exported(sqlite_store.open()) == [report("s2")]


async def test_queues_that_make_the_file_at_the_same_time_all_get_it(sqlite_store: SqliteStore) -> None:
    queues = [sqlite_store.open() for _ in range(8)]
    assert await asyncio.gather(*(one.append(report(f"s{n}")) for n, one in enumerate(queues))) == [True] * 8
    assert len(await exported(queues[0])) == 8


async def test_marks_whose_window_is_over_do_not_pile_up(sqlite_store: SqliteStore) -> None:
    queue = sqlite_store.open(window_seconds=60)
    for number in range(5):
        await queue.append(report(f"s{number}"))
    await sqlite_store.elapse(61)
    await queue.append(report("s9"))
    with closing(sqlite3.connect(sqlite_store.path)) as db:
        assert db.execute("SELECT mark FROM marks").fetchall() == [(report("s9").mark,)]


REDIS_DEADLINE_S: Final = 0.5
REDIS_SLACK_S: Final = 0.5


@pytest.mark.redis
@pytest.mark.rule("Q5")
@pytest.mark.parametrize("key", ["reports", "rechecks"])
async def test_over_redis_an_append_that_fails_half_way_leaves_nothing(redis_store: RedisStore, key: str) -> None:
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


@pytest.mark.redis
async def test_the_marks_end_with_their_window_and_nothing_else_does(redis_store: RedisStore) -> None:
    queue = redis_store.open(window_seconds=600)
    await queue.append(report())
    await queue.claim("w1", 1, 60)
    tag = f"{{{redis_store.prefix}}}"
    async with Redis.from_url(redis_store.url, decode_responses=True) as client:
        ends = {key: await client.ttl(key) async for key in client.scan_iter(f"{tag}:*")}
    mark = ends.pop(f"{tag}:reports:mark:{report().mark}")
    assert (590 < mark <= 600, ends) == (True, {f"{tag}:reports": -1, f"{tag}:rechecks": -1})


@pytest.mark.redis
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
    opened = RedisReports(RedisAccess(own_redis.url), timeout=REDIS_DEADLINE_S)
    await opened.append(report("s0"))
    yield opened
    await opened.close()


async def _refused_in_time(ask: Awaitable[object]) -> None:
    started = time.monotonic()
    with pytest.raises(ReportsUnavailable):
        await ask
    assert time.monotonic() - started < REDIS_DEADLINE_S + REDIS_SLACK_S


@pytest.mark.redis
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
    assert took < REDIS_DEADLINE_S + REDIS_SLACK_S
    for number in range(60):
        await queue.append(report(f"s{number}"))
    assert sorted(one.shop_id for one in await exported(queue)) == sorted(f"s{n}" for n in range(60))


@pytest.mark.redis
@pytest.mark.parametrize("times", [1, 3])
async def test_a_waiting_connection_that_the_server_closed_costs_no_answer(
    own_redis: RedisServer, queue: RedisReports, times: int
) -> None:
    for number in range(times):
        await executed(own_redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert await queue.append(report(f"t{number}")) is True
    assert len(await exported(queue)) == 1 + times


@pytest.mark.redis
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


@pytest.mark.redis
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
    fresh = RedisReports(RedisAccess(own_redis.url), timeout=REDIS_DEADLINE_S)
    await _refused_in_time(fresh.append(report("s1")))
    await fresh.close()
    own_redis.kill()
    own_redis.start()
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report("s0")], 1)
    assert await queue.append(report("s1")) is True


@pytest.mark.redis
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
