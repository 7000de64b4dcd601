"""The following loop, and what operators can read of it: it waits, tries again, goes with what is live, stops."""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount
from indexer.jobs.follower_status import StatusWriter
from indexer.jobs.following import Following, FollowOptions, LiveFollower
from indexer.jobs.shop_visibility import set_visibility
from indexer.jobs.update import ChangeCounts
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import holding
from indexer.sources.changes import ChangeFile, ChangeStream
from indexer.sources.protocol import ChangeBatch
from indexer.sources.sql.catalogue import SqlChanges
from indexer.state.state import StateError
from tests.engines.following.followed import FollowedIndex
from tests.support.catalogues import delete, shop, upsert
from tests.support.memory_sink import MemoryEditor, MemorySink

_BOUND_S = 20.0
LAMP = shop("Lamp", id="lamp")


class World(FollowedIndex):
    sink: MemorySink

    def __init__(self, folder: Path, accounts: Iterable[Mapping[str, object]] = ()) -> None:
        super().__init__(folder, MemorySink(), {"shops": [LAMP], "resource_accounts": accounts})
        self.build()

    def add(self, name: str, version: int) -> None:
        self.append([upsert("shops", shop(name, id=name.lower()), version)])

    def job(self, report: Callable[[ChangeCounts], None] = lambda _: None, **options: Any) -> Following:  # noqa: ANN401
        chosen = FollowOptions(**{"interval": 0.01, **options})
        return Following(self.sink, self.states, ChangeFile(self.changes), chosen, on_batch=report)

    def names(self) -> list[str]:
        return sorted(found.name for found in self.sink.documents["shops"])

    @property
    def status(self) -> FollowerStatus | None:
        assert self.sink.operations_document is not None
        return self.sink.operations_document.follower


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Running:
    """Following in a thread; `wait_for` bounds every wait."""

    def __init__(self, following: Following) -> None:
        self.stop = threading.Event()
        self.ended: list[object] = []
        self._thread = threading.Thread(target=self._run, args=(following,), daemon=True)
        self._thread.start()

    def _run(self, following: Following) -> None:
        try:
            self.ended.append(following.run(self.stop))
        except Exception as error:  # noqa: BLE001 - what ends it is what is asserted
            self.ended.append(error)

    def end(self) -> object:
        self.stop.set()
        self._thread.join(_BOUND_S)
        assert len(self.ended) == 1
        return self.ended[0]


def _until(what: Callable[[], bool]) -> None:
    ticks = threading.Event()
    for _ in range(int(_BOUND_S / 0.01)):
        if what():
            return
        ticks.wait(0.01)
    raise AssertionError("it did not happen in time")


@pytest.mark.rule("G3")
def test_once_applies_all_that_is_there_in_micro_batches_and_ends(world: World) -> None:
    for number in range(7):
        world.add(f"Shop{number}", number)
    reported: list[ChangeCounts] = []
    summary = world.job(reported.append, once=True, micro_batch=3).run(threading.Event())
    live = world.live
    assert (summary.generation, summary.changes.applied, summary.changes.updates, summary.failures) == (
        live.generation, 7, 3, 0,
    )  # fmt: skip
    assert [done.applied for done in reported] == [3, 3, 1]
    assert (world.names(), live.sequence) == (["Lamp", *(f"Shop{number}" for number in range(7))], 4)


@pytest.mark.rule("G4")
def test_it_waits_while_another_job_has_the_lease_and_goes_on_afterwards(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with holding(world.sink.lease(), "prune", 0):
        running = Running(world.job())
        world.add("Book", 1)
        _until(lambda: "waiting: another job has the lease: " in caplog.text)
        assert world.names() == ["Lamp"]
    _until(lambda: world.names() == ["Book", "Lamp"])
    running.end()
    assert caplog.text.count("waiting: ") == 1


@pytest.mark.rule("G3", "G4")
def test_files_that_replace_each_other_while_another_job_has_the_lease_are_all_read(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    path = world.changes
    with holding(world.sink.lease(), "prune", 0):
        running = Running(world.job())
        _until(lambda: "waiting: " in caplog.text)
        for name in ("Book", "Cup", "Vase"):
            path.unlink(missing_ok=True)
            world.add(name, 1)
            threading.Event().wait(0.2)  # as long as many looks at the file take
    _until(lambda: world.names() == ["Book", "Cup", "Lamp", "Vase"])
    running.end()


@pytest.mark.rule("G3", "V1")
def test_a_shop_is_hidden_and_shown_while_its_changes_are_followed(world: World) -> None:
    running = Running(world.job())
    world.add("Book", 1)
    _until(lambda: "Book" in world.names())
    for public, names in ((False, ["Lamp"]), (True, ["Book", "Lamp"])):
        _, (status,) = set_visibility(world.sink, world.states, ["book"], public=public, wait=_BOUND_S)
        assert (status.shown, world.names()) == (public, names)
    world.add("Vase", 1)
    _until(lambda: "Vase" in world.names())
    world.append([delete("shops", "book", 4)])
    _until(lambda: world.names() == ["Lamp", "Vase"])
    running.end()


@pytest.mark.rule("G3", "G4")
def test_after_another_build_it_follows_the_new_generation(world: World) -> None:
    running = Running(world.job())
    world.add("Book", 1)
    _until(lambda: "Book" in world.names())
    fresh = world.build().stamp.generation
    assert world.names() == ["Book", "Lamp"]
    world.add("Vase", 2)
    _until(lambda: "Vase" in world.names())
    assert getattr(running.end(), "generation", None) == fresh


class FailingFile(ChangeFile):
    def __init__(self, path: Path, failures: int, error: type[Exception] = CatalogueError) -> None:
        super().__init__(path)
        self._failures, self._error = failures, error

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        self._failures -= 1
        if self._failures >= 0:
            raise self._error("the disk is away")
        return super().read(position, limit)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("error", [CatalogueError, SinkError])
def test_what_fails_is_tried_again_and_counted(
    world: World, caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    world.add("Book", 1)
    failing = FailingFile(world.changes, 3, error)
    running = Running(Following(world.sink, world.states, failing, FollowOptions(interval=0.01)))
    _until(lambda: world.names() == ["Book", "Lamp"])
    assert getattr(running.end(), "failures", None) == 3
    assert caplog.text.count("following failed and is retried in ") == 3


def test_once_raises_what_fails(world: World) -> None:
    following = Following(world.sink, world.states, FailingFile(world.changes, 1), FollowOptions(once=True))
    with pytest.raises(CatalogueError, match="the disk is away"):
        following.run(threading.Event())


@pytest.mark.rule("G3")
def test_a_lost_state_ends_it_and_a_build_makes_a_new_one(world: World) -> None:
    world.states.drop(world.live.generation)
    with pytest.raises(StateError, match=r"the state of the live generation is lost .*: build again"):
        world.job().run(threading.Event())
    world.build()
    world.add("Book", 1)
    world.job(once=True).run(threading.Event())
    assert world.names() == ["Book", "Lamp"]


NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)


def _account(provider: str, account: str, **fields: object) -> dict[str, object]:
    return {"provider": provider, "account": account, **fields}


def _bare(provider: str, account: str) -> ResourceAccount:
    return ResourceAccount(provider, account, None, None, None, None, None, None)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


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
    editor = world.sink.edit(world.live.generation)
    with world.states.open(world.live.generation) as state:
        writer.write(state, editor, lambda: None, **done)
    return world.status


def _minute(number: int) -> str:
    return f"2031-05-06T12:{number:02}:00Z"


def test_when_it_was_caught_up_last_stands_still_while_more_is_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(3):
        world.add("Book", number)
    changes, clock = ChangeFile(world.changes), Clock()
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
    changes = ChangeFile(world.changes)
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
    summary = world.job(once=True, micro_batch=1).run(threading.Event())
    # After a failure it is not tried again for a while, however much there is to do.
    assert (summary.changes.applied, summary.failures, summary.status_failures) == (4, 0, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "the status of following could not be written: SinkError"
    ]


def test_nothing_of_an_account_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:  # noqa: ANN401
    caplog.set_level(logging.DEBUG)
    world = World(tmp_path, [_account("Zqprovider", "zqaccount", status="zqstatus")])
    changed = _account("Zqprovider", "zqaccount", status="zqother")
    world.append([upsert("resource_accounts", changed, 5)])
    world.job(once=True).run(threading.Event())
    world.build()
    assert world.accounts() == (ResourceAccount("Zqprovider", "zqaccount", None, None, None, None, "zqother", None),)
    out, err = capfd.readouterr()
    assert "zq" not in (caplog.text + out + err).lower()


def test_the_status_of_the_follower_is_copied_into_the_next_generation(tmp_path: Path) -> None:
    world = World(tmp_path, [_account("P", "a")])
    reported = FollowerStatus("stdin", None, 0, _minute(1), _minute(1))
    world.sink.operations_document = Operations((_bare("P", "a"),), reported)
    world.rewrite({"shops": [LAMP], "resource_accounts": [_account("P", "b")]})
    world.build()
    assert world.sink.operations_document == Operations((_bare("P", "b"),), reported)


def _after_a_tick(world: World, changes: ChangeFile, reported: FollowerStatus | None) -> FollowerStatus | None:
    world.sink.operations_document = Operations((), reported)
    LiveFollower(world.sink, world.states, DeadLetters(world.states.dead_letters), lambda: None, changes).tick()
    return world.status


def test_a_build_reports_on_the_live_generation_only_where_a_follower_of_the_same_changes_did(tmp_path: Path) -> None:
    world = World(tmp_path)
    changes = ChangeFile(world.changes)
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
