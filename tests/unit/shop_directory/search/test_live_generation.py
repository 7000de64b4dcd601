"""Which snapshot answers while the typeahead of a new stamp is being opened, cannot be opened, or is slow (C1, C2)."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from index_mappings.generations import Stamp, first_stamp, new_generation
from shop_directory.search.failures import BackendUnavailable, TypeaheadNotOpen
from shop_directory.search.planned_backend import PlannedBackend, PlannedSnapshot, seconds
from shop_directory.search.protocol import FindQuery, TypeaheadState
from shop_directory.typeahead.reading.typeahead import Typeahead
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.typeahead.segmented import Segmented, document

if TYPE_CHECKING:
    from shop_directory.search.engine import Engine

pytestmark = pytest.mark.rule("C1")

_QUERY = SuggestQuery.of("kestrel", None, 3)
_OPENING = TypeaheadState("opening", "the files of the live generation are being opened")
_FAILED = TypeaheadState("failed", "the files of the live generation are missing or damaged; this is tried again")
_READY = TypeaheadState("ready")


class Publishing:
    """An engine of which only the stamp and the typeahead are read; the test says when files are there."""

    def __init__(self, typeahead: Typeahead) -> None:
        self.stamp = _stamp()
        self.before_reading: Callable[[], None] = lambda: None
        self.there = asyncio.Event()
        self.damaged = False
        self.opened: list[Stamp] = []
        self._typeahead = typeahead

    async def live(self) -> Stamp:
        self.before_reading()
        return self.stamp

    async def typeahead(self, stamp: Stamp) -> Typeahead:
        self.opened.append(stamp)
        await self.there.wait()
        if self.damaged:
            raise BackendUnavailable("its files are damaged")
        return self._typeahead

    def publish(self) -> Stamp:
        self.stamp = _stamp()
        self.there.clear()
        return self.stamp

    async def close(self) -> None:
        """Nothing is held."""


class World:
    def __init__(self, typeahead: Typeahead) -> None:
        self.now = 0.0
        self.engine = Publishing(typeahead)
        engine = cast("Engine", self.engine)  # nothing else of an engine is asked
        self.backend = PlannedBackend(engine, clock=lambda: self.now)

    async def started(self) -> PlannedSnapshot:
        self.engine.there.set()
        return await self.backend.snapshot()

    async def files_come(self) -> None:
        self.engine.there.set()
        for _ in range(5):
            await asyncio.sleep(0)


def _stamp() -> Stamp:
    now = datetime.now(UTC)
    return first_stamp(new_generation(now), now)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(Segmented(tmp_path, [document("one", "Kestrel")]).opened())
    yield made
    await made.backend.close()


async def test_the_first_requests_wait_for_the_typeahead_which_is_opened_once(world: World) -> None:
    asking = [asyncio.create_task(world.backend.snapshot()) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert (world.backend.current(), world.backend.typeahead_state()) == (None, _OPENING)
    assert not any(task.done() for task in asking)
    world.now += 5
    await world.files_come()
    first, *others = await asyncio.gather(*asking)
    assert [other.stamp for other in others] == [first.stamp] * 2
    assert [found.shop.id for found in first.suggest(_QUERY).shops] == ["one"]
    assert len(world.engine.opened) == 1


async def test_the_former_snapshot_answers_until_two_seconds_after_it_was_last_confirmed(world: World) -> None:
    former = await world.started()
    world.now = 0.9
    assert world.backend.current() is former
    later = world.engine.publish()
    world.now = 1.0
    # The stamp was confirmed at 0.
    assert await world.backend.snapshot() is former
    world.now = 1.999
    assert (world.backend.current(), world.backend.typeahead_state()) == (former, _READY)
    world.now = 3.0
    without = await world.backend.snapshot()
    assert (without.stamp, world.backend.current(), world.backend.typeahead_state()) == (later, None, _OPENING)
    with pytest.raises(TypeaheadNotOpen):
        without.suggest(_QUERY)
    with pytest.raises(TypeaheadNotOpen):
        await without.find(FindQuery("kestrel", (), (), 0, 3))
    with pytest.raises(TypeaheadNotOpen):
        await without.categories()
    await world.files_come()
    snapshot = await world.backend.snapshot()
    assert (snapshot.stamp, world.backend.current(), world.backend.typeahead_state()) == (later, snapshot, _READY)
    assert world.engine.opened == [former.stamp, later]


async def test_the_new_snapshot_replaces_the_former_as_soon_as_it_can(world: World) -> None:
    former = await world.started()
    later = world.engine.publish()
    world.now = 1.0
    assert await world.backend.snapshot() is former
    await world.files_come()
    current = world.backend.current()
    assert current is not None
    assert (current.stamp, current.suggest(_QUERY)) == (later, former.suggest(_QUERY))


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.5, 2.5])
async def test_a_typeahead_stays_ready_however_long_reading_its_stamp_took(world: World, seconds: float) -> None:
    await world.started()
    world.now = 10.0

    def pass_time() -> None:
        world.now += seconds

    world.engine.before_reading = pass_time
    snapshot = await world.backend.snapshot()
    assert [found.shop.id for found in snapshot.suggest(_QUERY).shops] == ["one"]
    assert world.backend.typeahead_state() == _READY
    world.now += 1.0
    assert world.backend.typeahead_state() == _READY


@pytest.mark.rule("C2")
@pytest.mark.parametrize(
    ("now", "ask"),
    [(600.0, PlannedBackend.snapshot), (0.5, PlannedBackend.refresh)],
    ids=["after a pause", "where the generation is gone"],
)
async def test_a_request_waits_for_what_was_published_meanwhile(
    world: World, now: float, ask: Callable[[PlannedBackend], Coroutine[None, None, PlannedSnapshot]]
) -> None:
    await world.started()
    later = world.engine.publish()
    world.now = now
    asking = asyncio.create_task(ask(world.backend))
    await asyncio.sleep(0.01)
    assert not asking.done()
    await world.files_come()
    assert (await asking).stamp == later


async def test_a_failed_opening_is_tried_again_once_a_second(world: World, caplog: pytest.LogCaptureFixture) -> None:
    former = await world.started()
    world.engine.publish()
    world.engine.damaged = True
    world.now = 1.0
    assert await world.backend.snapshot() is former
    await world.files_come()
    assert "its files are damaged" in caplog.text
    world.now = 1.9
    assert await world.backend.snapshot() is former
    await world.files_come()
    assert len(world.engine.opened) == 2
    world.now = 2.5
    without = await world.backend.snapshot()
    assert world.backend.typeahead_state() == _FAILED
    with pytest.raises(TypeaheadNotOpen):
        without.suggest(_QUERY)
    await world.files_come()
    assert len(world.engine.opened) == 3
    world.engine.damaged = False
    world.now = 4.0
    await world.backend.snapshot()
    await world.files_come()
    assert (await world.backend.snapshot()).suggest(_QUERY) == former.suggest(_QUERY)
    assert world.backend.typeahead_state() == _READY


@pytest.mark.rule("C1")
def test_a_stamp_ages_while_the_machine_sleeps() -> None:
    assert signature(PlannedBackend).parameters["clock"].default is seconds
    assert abs(seconds() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 1.0
