"""The queue of reports on both stores, and what each can show alone: all or nothing, its owner's, in trouble."""

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
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLostError

from service.redis.access import RedisAccess
from service.reports.protocol import Recheck, ReportsUnavailable, Waiting, Worker
from service.reports.redis import RedisReports
from service.reports.sqlite import SqliteReports
from tests.rules.reports.stores import REPORTED_AT, RedisStore, SqliteStore, Store, executed, exported, report
from tests.support.real.redis import RedisServer

EMPTY = Waiting(depth=0, lag=0, pending=0, dead=0, workers=(), rechecks=(), dead_letters=())


def timeless(waiting: Waiting) -> Waiting:
    """The same with every idle time that there is set to 0."""
    return replace(
        waiting,
        workers=tuple(replace(worker, idle_seconds=0.0) for worker in waiting.workers),
        rechecks=tuple(replace(one, idle_seconds=one.idle_seconds and 0.0) for one in waiting.rechecks),
    )


async def test_rechecks_are_claimed_in_order_and_each_by_one_worker(store: Store) -> None:
    queue, other = store.open(), store.open()
    for number in range(5):
        await queue.append(report(f"s{number}"))
    first = await queue.claim("w1", 3, 60)
    second = await other.claim("w2", 3, 60)
    assert [(one.report.shop_id, one.deliveries, one.claimed_by, one.idle_seconds) for one in first + second] == [
        ("s0", 1, "w1", 0.0),
        ("s1", 1, "w1", 0.0),
        ("s2", 1, "w1", 0.0),
        ("s3", 1, "w2", 0.0),
        ("s4", 1, "w2", 0.0),
    ]
    assert await queue.claim("w3", 3, 60) == ()


async def test_workers_that_claim_at_the_same_time_share_nothing(store: Store) -> None:
    queues = [store.open() for _ in range(4)]
    for number in range(40):
        await queues[0].append(report(f"s{number}"))
    claims = await asyncio.gather(*(queues[turn % 4].claim(f"w{turn}", 4, 60) for turn in range(12)))
    ids = [one.id for claim in claims for one in claim]
    assert (len(ids), len(set(ids))) == (40, 40)


async def test_a_claim_without_reports_is_empty_and_the_next_report_is_not_missed(store: Store) -> None:
    queue = store.open()
    assert await queue.claim("w1", 10, 60) == ()
    await queue.append(report())
    assert [one.report for one in await queue.claim("w1", 10, 60)] == [report()]


@pytest.mark.parametrize("unknown", ["", "x", "-", "+", "0-0", "0", "999999", "1-1-1", "9" * 30, "٣"])
async def test_only_what_the_worker_holds_can_be_acknowledged(store: Store, unknown: str) -> None:
    queue = store.open()
    await queue.append(report("s1"))
    await queue.append(report("s2"))
    (held,) = await queue.claim("w1", 1, 60)
    new = (await queue.waiting(2)).rechecks[1]
    assert await queue.acknowledge("w2", [held.id]) == ()
    assert await queue.acknowledge("w1", [unknown, new.id]) == ()
    assert (await queue.waiting(1)).depth == 2
    assert await queue.acknowledge("w1", [unknown, held.id, held.id]) == (held.id,)
    assert (await queue.waiting(1)).depth == 1


async def test_what_a_worker_left_lying_goes_to_the_next_and_the_late_one_cannot_acknowledge_it(store: Store) -> None:
    queue = store.open()
    await queue.append(report("s1"))
    (left,) = await queue.claim("w1", 1, 0.3)
    assert await queue.claim("w2", 5, 60) == ()
    await store.elapse(0.4)
    await queue.append(report("s2"))
    taken = await queue.claim("w2", 5, 0.3)
    assert [(one.report.shop_id, one.deliveries, one.claimed_by) for one in taken] == [("s2", 1, "w2"), ("s1", 2, "w2")]
    assert await queue.acknowledge("w1", [left.id]) == ()
    assert await queue.acknowledge("w2", [one.id for one in taken]) == tuple(one.id for one in taken)
    assert timeless(await queue.waiting(10)) == EMPTY


async def test_a_recheck_delivered_too_often_becomes_a_dead_letter_that_is_listed(store: Store) -> None:
    queue = store.open(max_deliveries=2)
    await queue.append(report("s1"))
    (first,) = await queue.claim("w1", 1, 0.1)
    for worker, deliveries in (("w2", [2]), ("w3", []), ("w4", [])):
        await store.elapse(0.2)
        assert [one.deliveries for one in await queue.claim(worker, 5, 0.1)] == deliveries
    dead = Recheck(first.id, report("s1"), deliveries=2, claimed_by="w2", idle_seconds=None)
    assert timeless(await queue.waiting(10)) == replace(EMPTY, dead=1, dead_letters=(dead,))
    assert ((await queue.waiting(1)).depth, await exported(queue)) == (0, [report("s1")])
    assert await queue.acknowledge("w2", [first.id]) == ()


async def test_waiting_shows_what_is_new_what_is_held_and_by_whom(store: Store) -> None:
    queue = store.open()
    assert await queue.waiting(10) == EMPTY
    for number in range(4):
        await queue.append(report(f"s{number}"))
    (first,) = await queue.claim("w2", 1, 60)
    (second,) = await queue.claim("w1", 1, 60)
    waiting = await queue.waiting(3)
    third = waiting.rechecks[2]
    assert timeless(waiting) == Waiting(
        depth=4,
        lag=2,
        pending=2,
        dead=0,
        workers=(Worker("w1", 1, 0.0), Worker("w2", 1, 0.0)),
        rechecks=(first, second, Recheck(third.id, report("s2"), 0, None, None)),
        dead_letters=(),
    )


async def test_waiting_shows_for_how_long_an_entry_has_been_held(store: Store) -> None:
    queue = store.open()
    await queue.append(report())
    await queue.claim("w1", 1, 60)
    await store.elapse(0.3)
    waiting = await queue.waiting(1)
    idle = [waiting.workers[0].idle_seconds, waiting.rechecks[0].idle_seconds or 0.0]
    assert [0.25 < seconds < 10 for seconds in idle] == [True, True]


@pytest.mark.rule("I36")
async def test_a_report_comes_back_as_it_was_given(store: Store) -> None:
    queue = store.open()
    given = [
        report("Shop_1-x", code="A.b_c+d*%!#&$/@-", reported_at=REPORTED_AT),
        report("s2", kind="shop", reason="no_longer_exists", reported_at=REPORTED_AT + timedelta(microseconds=1)),
        report("s3", kind="fact", reason="evidence_broken", reported_at=REPORTED_AT.replace(microsecond=0)),
    ]
    assert [await queue.append(one) for one in given] == [True, True, True]
    assert await exported(queue) == given


@pytest.mark.rule("Q5")
@pytest.mark.parametrize(
    ("first", "second"), [("save10", "SAVE10"), ("Save10", "sAVE10"), ("Straße-Ä", "STRASSE-ä"), ("ΐ", "\u03aa\u0301")]
)
async def test_a_code_in_another_case_is_the_same_code(store: Store, first: str, second: str) -> None:
    queue = store.open()
    assert [await queue.append(report(code=code)) for code in (first, second)] == [True, False]
    assert await exported(queue) == [report(code=first)]


@pytest.mark.rule("Q5")
async def test_reports_that_differ_in_one_part_are_different(store: Store) -> None:
    queue = store.open()
    different = [
        report(),
        report(source="token-b"),
        report("s2"),
        report("S1"),
        report(code="SAVE20"),
        report(reason="mismatch"),
        report(kind="shop", reason="unreachable"),
        report(kind="fact", reason="unreachable"),
        # Joined without borders these two would be one.
        report("s1", source="token-as"),
        report("ss1"),
    ]
    assert [await queue.append(one) for one in different] == [True] * len(different)
    assert await exported(queue) == different


@pytest.mark.rule("Q5")
async def test_the_same_report_is_new_again_after_the_window(store: Store) -> None:
    queue = store.open(window_seconds=0.5)
    assert [await queue.append(report()) for _ in range(2)] == [True, False]
    await store.elapse(0.6)
    assert [await queue.append(report()) for _ in range(2)] == [True, False]
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report(), report()], 2)


@pytest.mark.rule("Q5")
async def test_the_mark_outlives_the_recheck(store: Store) -> None:
    queue = store.open()
    await queue.append(report())
    (recheck,) = await queue.claim("w1", 1, 60)
    await queue.acknowledge("w1", [recheck.id])
    assert (await queue.append(report()), (await queue.waiting(1)).depth) == (False, 0)


@pytest.mark.rule("Q5", "I37")
async def test_of_200_concurrent_appends_of_50_reports_exactly_50_are_appended(store: Store) -> None:
    queues = [store.open() for _ in range(3)]
    given = [report(f"s{number % 50}") for number in range(200)]
    appended = await asyncio.gather(*(queues[index % 3].append(one) for index, one in enumerate(given)))
    stored = await exported(queues[0])
    assert (appended.count(True), appended.count(False), len(stored)) == (50, 150, 50)
    assert {one.shop_id for one in stored} == {f"s{number}" for number in range(50)}
    assert (await queues[0].waiting(1)).depth == 50


@pytest.mark.rule("I36")
async def test_all_reports_are_exported_in_their_order_over_several_pages(store: Store) -> None:
    queue = store.open()
    given = [report(f"s{number}") for number in range(1100)]
    for one in given:
        await queue.append(one)
    assert await exported(queue) == given


async def test_a_report_without_a_time_zone_is_refused(store: Store) -> None:
    queue = store.open()
    with pytest.raises(ValueError, match="zone"):
        await queue.append(report(reported_at=REPORTED_AT.replace(tzinfo=None)))
    assert await exported(queue) == []


DEADLINE_S: Final = 0.4
# However busy the machine is: without a deadline, an append waits for as long as the lock is held.
SLACK_S: Final = 10.0

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

    assert await queue._file.run(pragmas) == ["wal", 2]


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


async def test_while_a_lock_is_waited_for_the_event_loop_goes_on_and_the_queue_is_read(
    sqlite_store: SqliteStore,
) -> None:
    queue = sqlite_store.open(timeout=DEADLINE_S)
    await queue.append(report())
    with closing(sqlite3.connect(sqlite_store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert (await queue.waiting(1)).depth == 1
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
# As for `SLACK_S`: without a deadline, a request waits for the pause of the server.
REDIS_SLACK_S: Final = 5.0


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
    await _refused_in_time(fresh.check())
    await fresh.close()
    own_redis.kill()
    own_redis.start()
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report("s0")], 1)
    assert await queue.append(report("s1")) is True
