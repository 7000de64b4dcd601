"""What operators can read: accounts as the catalogue states them, and following as it does; nothing of it is logged."""

import json
import logging
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount
from indexer.jobs.follower_status import StatusWriter
from indexer.jobs.following import Following, FollowOptions, FollowSummary, LiveFollower
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sources.changes import ChangeFile, ChangeStream
from indexer.sources.sql.catalogue import SqlChanges
from tests.support.memory_sink import MemoryEditor
from tests.unit.indexer.jobs.followed import FollowedCatalogue

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)


def _account(provider: str, account: str, **fields: object) -> dict[str, object]:
    return {"provider": provider, "account": account, **fields}


def _bare(provider: str, account: str) -> ResourceAccount:
    return ResourceAccount(provider, account, None, None, None, None, None, None)


class Clock:
    """Time that passes a minute a look."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


class World(FollowedCatalogue):
    def follow(self, **options: Any) -> FollowSummary:  # noqa: ANN401 - as FollowOptions
        options = {"once": True, **options}
        return Following(self.sink, self.states, self.changes(), FollowOptions(**options)).run(threading.Event())

    @property
    def accounts(self) -> tuple[ResourceAccount, ...]:
        assert self.sink.operations_document is not None
        return self.sink.operations_document.accounts

    @property
    def follower(self) -> FollowerStatus | None:
        assert self.sink.operations_document is not None
        return self.sink.operations_document.follower


def test_a_build_reports_each_account_as_it_is_stated_and_no_follower(tmp_path: Path) -> None:
    stated = _account(
        "Wave", "main", unit="calls", used=3, limit=1000.5, status="active",
        resets_at="2031-06-01T00:00:00+02:00", observed_at="2031-05-06T07:08:09.25Z",
    )  # fmt: skip
    world = World(tmp_path, [stated, _account("Wave", "extra"), _account("Ant", "zoo")])
    reported = ResourceAccount(
        "Wave", "main", "calls", 3.0, 1000.5, "2031-05-31T22:00:00Z", "active", "2031-05-06T07:08:09.250000Z"
    )
    assert world.sink.operations_document == Operations((_bare("Ant", "zoo"), _bare("Wave", "extra"), reported), None)


def _written(world: World, writer: StatusWriter, **done: bool) -> FollowerStatus | None:
    editor = world.sink.edit(world.generation)
    with world.states.open(world.generation) as state:
        writer.write(state, editor, lambda: None, **done)
    return world.follower


def _minute(number: int) -> str:
    return f"2031-05-06T12:{number:02}:00Z"


def test_when_it_was_caught_up_last_stands_still_while_more_is_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(3):
        world.add("Book", number)
    changes, clock = world.changes(), Clock()
    writer = StatusWriter(changes, clock=clock)
    assert _written(world, writer, busy=True, behind=True) == FollowerStatus("file", None, 3, None, _minute(1))
    assert _written(world, writer, busy=True, behind=False) == FollowerStatus("file", None, 0, _minute(2), _minute(2))
    for minute in (3, 4):
        reported = _written(world, writer, busy=True, behind=True)
        assert reported == FollowerStatus("file", None, 3, _minute(2), _minute(minute))
    assert _written(world, StatusWriter(changes, clock=clock), busy=True, behind=True) == FollowerStatus(
        "file", None, 3, _minute(2), _minute(5)
    )


def test_without_changes_status_is_reported_at_intervals_only(tmp_path: Path) -> None:
    world = World(tmp_path)
    changes = world.changes()
    seldom, often = (StatusWriter(changes, every, clock=Clock()) for every in (3_600.0, 0.0))
    first = _written(world, seldom, busy=False, behind=False)
    assert [_written(world, seldom, busy=False, behind=False) for _ in range(3)] == [first] * 3
    assert _written(world, seldom, busy=True, behind=False) == FollowerStatus("file", None, 0, _minute(2), _minute(2))
    reported = [_written(world, often, busy=False, behind=False) for _ in range(3)]
    assert [status and status.told_at for status in reported] == [_minute(1), _minute(2), _minute(3)]


def test_a_status_that_cannot_be_written_is_counted_and_following_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, [_account("P", "a")])

    def refuse(*_: object, **__: object) -> None:
        raise SinkError("the disk is full, P/a")

    monkeypatch.setattr(MemoryEditor, "write_operations", refuse)
    for number in range(4):
        world.add(f"Book{number}", 1)
    summary = world.follow(micro_batch=1)
    # After a failure it is not tried again for a while, however much there is to do.
    assert (summary.changes.applied, summary.failures, summary.status_failures) == (4, 0, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "the status of following could not be written: SinkError"
    ]


def test_nothing_of_an_account_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:  # noqa: ANN401
    caplog.set_level(logging.DEBUG)
    world = World(tmp_path, [_account("Zqprovider", "zqaccount", status="zqstatus")])
    changed = _account("Zqprovider", "zqaccount", status="zqother")
    world.change(op="upsert", type="resource_accounts", record=changed, version=5)
    world.follow()
    world.build()
    assert world.accounts == (ResourceAccount("Zqprovider", "zqaccount", None, None, None, None, "zqother", None),)
    out, err = capfd.readouterr()
    assert "zq" not in (caplog.text + out + err).lower()


def test_the_status_of_the_follower_is_copied_into_the_next_generation(tmp_path: Path) -> None:
    world = World(tmp_path, [_account("P", "a")])
    reported = FollowerStatus("stdin", None, 0, _minute(1), _minute(1))
    world.sink.operations_document = Operations((_bare("P", "a"),), reported)
    world.rewrite([_account("P", "b")])
    world.build()
    assert world.sink.operations_document == Operations((_bare("P", "b"),), reported)


def _after_a_tick(world: World, changes: ChangeFile, reported: FollowerStatus | None) -> FollowerStatus | None:
    """The status of a follower after a build has followed once in its stead."""
    world.sink.operations_document = Operations((), reported)
    LiveFollower(world.sink, world.states, DeadLetters(world.states.dead_letters), lambda: None, changes).tick()
    return world.follower


def test_a_build_reports_on_the_live_generation_only_where_a_follower_of_the_same_changes_did(tmp_path: Path) -> None:
    world = World(tmp_path)
    changes = world.changes()
    assert _after_a_tick(world, changes, None) is None
    stale = FollowerStatus("file", None, 3, _minute(1), _minute(1))
    reported = _after_a_tick(world, changes, stale)
    assert reported is not None
    assert reported == FollowerStatus("file", None, 0, reported.told_at, reported.told_at) != stale
    piped = FollowerStatus("stdin", None, 0, _minute(1), _minute(1))
    assert _after_a_tick(world, changes, piped) == piped


def test_a_file_says_how_many_lines_wait_behind_a_position_and_none_of_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "changes.ndjson"
    changes = ChangeFile(path)
    assert (changes.backlog(None), changes.describe_position(None)) == (0, None)
    line = json.dumps({"op": "delete", "type": "shops", "key": "zqsecret", "version": 1})
    path.write_text(f"{line}\n" * 5 + line, encoding="utf-8")
    batch = changes.read(None, 2)
    assert (changes.backlog(None), changes.backlog(batch.position)) == (5, 3)
    assert changes.describe_position(batch.position) == f"line 2, byte {2 * (len(line) + 1)}"


def test_a_stream_and_tables_do_not_say_what_waits_and_no_version_of_a_row(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    pipe.write_bytes(b"")
    with pipe.open("rb") as file:
        stream = ChangeStream(file, "standard input")
        stream.close()
        assert (stream.kind, stream.describe_position("x"), stream.backlog("x")) == ("stdin", None, None)
    database = tmp_path / "catalogue.sqlite"
    database.write_bytes(b"")
    tables = SqlChanges(f"sqlite:///{database}", ())
    position = '{"number":3,"tables":{"shops":{"by":"shops.version","low":4711}}}'
    reported = (
        tables.kind,
        tables.describe_position(position),
        tables.describe_position(None),
        tables.backlog(position),
    )
    assert reported == ("sql", "batch 3", None, None)
    tables.close()
