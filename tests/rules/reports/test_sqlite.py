"""The file: all or nothing, its owner's only, shared by processes, and no report acknowledged that is not stored."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from service.reports.protocol import ReportsUnavailable
from service.reports.sqlite import SqliteReports
from tests.rules.reports.stores import SqliteStore, exported, report

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
