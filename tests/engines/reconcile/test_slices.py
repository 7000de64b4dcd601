"""Reconciling between micro-batches: nothing invented while changes arrive, never too fast, on both engines."""

from collections.abc import Callable
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pytest

from indexer.reconcile.findings import Fault, FaultCount, FaultReport
from indexer.reconcile.generation import derived_tables_match
from indexer.reconcile.slices import Reconciler
from indexer.sinks.protocol import GenerationEditor
from indexer.state.background import BackgroundQuery
from indexer.state.state import State
from tests.engines.following.breaking import BreakingEditor
from tests.engines.reconcile.world import (
    DOCUMENTS_OF_THE_WORLD,
    HIDDEN,
    PUBLIC,
    Clock,
    World,
    add_coupon,
    add_shop,
    built,
    lose,
    plant,
)
from tests.support.catalogues import coupon, offer
from tests.support.changes import delete, upsert
from tests.support.memory_sink import MemorySink


class SlowFilesEditor(BreakingEditor):
    """A real editor; reading the typeahead's files takes until an event is set."""

    def __init__(self, editor: GenerationEditor, ready: Event) -> None:
        super().__init__(editor)
        self.readers: set[str] = set()

        def damaged(check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
            self.readers.add(current_thread().name)
            assert ready.wait(30)
            return editor.typeahead_damaged(check)

        self.typeahead_damaged = damaged


def finish_round(
    reconciler: Reconciler, clock: Clock, rounds: list[FaultReport], state: State, editor: GenerationEditor
) -> None:
    """Compare slice after slice until the first round has ended, and close the editor."""
    while not rounds:
        clock.sleep(1)
        reconciler.slice(state, editor, lambda: None)
    editor.close()


def _changes(n: int) -> list[dict[str, Any]]:
    """The n-th handful: shops hidden and shown, renamed and moved, coupons and offers that come and go."""
    one, two = PUBLIC[n % 10], PUBLIC[(n + 3) % 10]
    return [
        upsert("shops", {**one, "visibility": ("under_review", "public")[n // 10 % 2]}, n + 1),
        upsert("shops", {**two, "name": f"Renamed {n}", "categories": HIDDEN["categories"]}, n + 1),
        upsert("coupons", coupon(f"NEW{n}", one["id"], id=f"n{n % 7}"), n + 1),
        upsert("offers", offer(f"o{n % 9}", two["id"]), n + 1),
        delete("coupons", f"c{n % 5}", n + 1),
    ]


def test_nothing_is_invented_while_changes_are_applied_between_slices(world: World) -> None:
    clock, rounds = Clock(), list[FaultReport]()
    reconciler = Reconciler(world.sink, rate=6, rest=0, on_round=rounds.append, now=clock.timer.now)
    changes = world.source.changes()
    assert changes is not None

    with world.states.open(world.generation) as state:
        for n in range(20):
            world.append(_changes(n))
            clock.sleep(1)
            editor = world.sink.edit(world.generation)
            world.applier(state, editor).drain()
            reconciler.slice(state, editor, lambda: None)
            editor.close()

    assert len(rounds) >= 2
    assert [found.faults for found in rounds] == [()] * len(rounds)
    assert reconciler.total.faults == ()
    assert reconciler.total.checked > 2 * DOCUMENTS_OF_THE_WORLD
    assert world.scan() == world.rebuilt()


def test_slices_find_and_repair_what_was_planted_and_stop_at_the_rate(world: World) -> None:
    plant(world, add_shop("hidden"), add_coupon("c-hidden"), lose("shops", "s8"), lose("facts", "s2"))
    clock, rounds = Clock(), list[FaultReport]()
    reconciler = Reconciler(world.sink, rate=5, rest=1_000, on_round=rounds.append, now=clock.timer.now)

    with world.states.open(world.generation) as state:
        for _ in range(40):
            before = reconciler.total.checked
            clock.sleep(0.5)
            editor = world.sink.edit(world.generation)
            reconciler.slice(state, editor, lambda: None)
            editor.close()
            assert reconciler.total.checked - before <= 5
            assert reconciler.total.checked <= 5 * clock.seconds

    assert [found.faults for found in rounds] == [
        (
            FaultCount(Fault.NOT_PUBLIC, "coupons", 1),
            FaultCount(Fault.NOT_PUBLIC, "shops", 1),
            FaultCount(Fault.MISSING, "facts", 1),
            FaultCount(Fault.MISSING, "shops", 1),
        )
    ]
    assert rounds[0].remaining == 0
    assert reconciler.total.checked == rounds[0].checked  # the next round has to wait
    assert world.scan() == world.rebuilt()


def test_slices_start_again_with_another_generation(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path / "one")
    clock, rounds = Clock(), list[FaultReport]()
    reconciler = Reconciler(world.sink, rate=20, rest=0, on_round=rounds.append, now=clock.timer.now)
    with world.editing() as (state, editor):
        clock.sleep(1)
        reconciler.slice(state, editor, lambda: None)
    half = reconciler.round.checked
    again = built(world.sink, tmp_path / "two")

    with again.editing() as (state, editor):
        for _ in range(2):
            clock.sleep(1)
            reconciler.slice(state, editor, lambda: None)

    assert half == 20
    assert [found.checked for found in rounds] == [DOCUMENTS_OF_THE_WORLD]
    assert rounds[0].faults == ()


def test_a_slice_does_not_wait_for_the_check_of_a_large_state(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Event()

    def slow(state: State) -> bool:
        assert ready.wait(30)
        return derived_tables_match(state)

    monkeypatch.setattr("indexer.reconcile.slices.derived_tables_match", slow)
    clock, rounds = Clock(), list[FaultReport]()
    reconciler = Reconciler(world.sink, rate=1_000, rest=1_000, on_round=rounds.append, now=clock.timer.now)
    with world.states.open(world.generation) as state:
        editor = world.sink.edit(world.generation)
        for _ in range(2):
            clock.sleep(1)
            reconciler.slice(state, editor, lambda: None)
        assert (reconciler.total.checked, rounds) == (0, [])
        ready.set()
        finish_round(reconciler, clock, rounds, state, editor)
    reconciler.close()
    assert (rounds[0].checked, rounds[0].faults) == (DOCUMENTS_OF_THE_WORLD, ())


def test_a_background_query_ends_when_it_is_closed(world: World) -> None:
    def endless(state: State, _: Callable[[], None]) -> bool:
        state.connection.execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT MAX(n) FROM n"
        )
        return True

    with world.states.open(world.generation) as state:
        look = BackgroundQuery(state.path, endless)
        assert not look.answered(0.1)
        look.close()
    assert look.answer is None


def test_a_background_query_that_reads_files_ends_when_it_is_closed(world: World) -> None:
    calls = 0

    def endless(_: State, check: Callable[[], None]) -> bool:
        nonlocal calls
        while True:
            check()
            calls += 1

    with world.states.open(world.generation) as state:
        query = BackgroundQuery(state.path, endless)
        assert not query.answered(0.3)
        query.close()
    assert query.answer is None
    assert 1 <= calls <= 10  # it pauses between two steps


def test_a_slice_does_not_wait_for_the_check_of_large_typeahead_files(world: World) -> None:
    ready = Event()
    clock, rounds = Clock(), list[FaultReport]()
    reconciler = Reconciler(world.sink, rate=1_000, rest=1_000, on_round=rounds.append, now=clock.timer.now)
    with world.states.open(world.generation) as state:
        editor = SlowFilesEditor(world.sink.edit(world.generation), ready)
        for _ in range(2):
            clock.sleep(1)
            reconciler.slice(state, editor, lambda: None)
        assert (reconciler.total.checked, rounds, editor.readers) == (0, [], {"state"})
        ready.set()
        finish_round(reconciler, clock, rounds, state, editor)
    reconciler.close()
    assert (rounds[0].checked, rounds[0].faults) == (DOCUMENTS_OF_THE_WORLD, ())
    assert editor.readers == {"state"}
