"""The following loop: it waits for other jobs, tries again what fails, goes with what is live, and can be stopped."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.jobs.following import Following, FollowOptions
from indexer.jobs.update import ChangeCounts
from indexer.records.problems import CatalogueError
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import holding
from indexer.sources.changes import ChangeFile
from indexer.sources.protocol import ChangeBatch
from indexer.state.state import StateError
from tests.unit.indexer.jobs.followed import FollowedCatalogue

_BOUND_S = 20.0


class World(FollowedCatalogue):
    def following(self, report: Callable[[ChangeCounts], None] = lambda _: None, **options: Any) -> Following:  # noqa: ANN401
        chosen = FollowOptions(**{"interval": 0.01, **options})
        return Following(self.sink, self.states, self.changes(), chosen, on_batch=report)

    def names(self) -> list[str]:
        return sorted(found.name for found in self.sink.documents["shops"])


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
    summary = world.following(reported.append, once=True, micro_batch=3).run(threading.Event())
    live = world.sink.live()
    assert live is not None
    assert (summary.generation, summary.changes.applied, summary.changes.updates, summary.failures) == (
        live.generation, 7, 3, 0,
    )  # fmt: skip
    assert [done.applied for done in reported] == [3, 3, 1]
    assert (world.names(), live.sequence) == (["Lamp", *(f"Shop{number}" for number in range(7))], 4)


@pytest.mark.rule("G3")
def test_changes_are_applied_as_they_come_until_it_is_stopped(world: World) -> None:
    running = Running(world.following())
    for number in range(3):
        world.add(f"Shop{number}", number)
        _until(lambda number=number: f"Shop{number}" in world.names())  # type: ignore[misc]
    summary = running.end()
    assert getattr(summary, "changes", None) == ChangeCounts(3, 0, 0, written=9, updates=3)


@pytest.mark.rule("G4")
def test_it_waits_while_another_job_has_the_lease_and_goes_on_afterwards(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with holding(world.sink.lease(), "prune", 0):
        running = Running(world.following())
        world.add("Book", 1)
        _until(lambda: "waiting: another job has the lease: " in caplog.text)
        assert world.names() == ["Lamp"]
    _until(lambda: world.names() == ["Book", "Lamp"])
    running.end()
    assert caplog.text.count("waiting: ") == 1


@pytest.mark.rule("G3", "G4")
def test_after_another_build_it_follows_the_new_generation(world: World) -> None:
    running = Running(world.following())
    world.add("Book", 1)
    _until(lambda: "Book" in world.names())
    fresh = world.build()
    assert world.names() == ["Book", "Lamp"]
    world.add("Vase", 2)
    _until(lambda: "Vase" in world.names())
    assert getattr(running.end(), "generation", None) == fresh


class FailingFile(ChangeFile):
    """A file that can't be read a few times before it can."""

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
    failing = FailingFile(world.changes().path, 3, error)
    running = Running(Following(world.sink, world.states, failing, FollowOptions(interval=0.01)))
    _until(lambda: world.names() == ["Book", "Lamp"])
    assert getattr(running.end(), "failures", None) == 3
    assert caplog.text.count("following failed and is retried in ") == 3


def test_once_raises_what_fails(world: World) -> None:
    following = Following(world.sink, world.states, FailingFile(world.changes().path, 1), FollowOptions(once=True))
    with pytest.raises(CatalogueError, match="the disk is away"):
        following.run(threading.Event())


@pytest.mark.rule("G3")
def test_a_lost_state_ends_it_and_a_build_makes_a_new_one(world: World) -> None:
    live = world.sink.live()
    assert live is not None
    world.states.drop(live.generation)
    with pytest.raises(StateError, match=r"the state of the live generation is lost .*: build again"):
        world.following().run(threading.Event())
    world.build()
    world.add("Book", 1)
    world.following(once=True).run(threading.Event())
    assert world.names() == ["Book", "Lamp"]
