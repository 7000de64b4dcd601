"""Verification on a schedule while changes are followed: nothing invented, nothing delayed, on both engines."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.jobs.following import FollowOptions
from indexer.reconcile.generation import derived_tables_match
from indexer.reconcile.live import VerificationRounds
from indexer.sinks.lease import holding
from indexer.state.state import State
from tests.engines.reconcile.world import (
    DOCUMENTS_OF_THE_WORLD,
    HIDDEN,
    PUBLIC,
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

_PATIENCE_S: Final = 30.0


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


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


def test_nothing_is_invented_while_changes_are_followed(world: World) -> None:
    rounds = VerificationRounds(world.sink, world.states, rate=1_000, interval=0.0)
    with world.following(FollowOptions(interval=0.02)), rounds.running():
        for n in range(20):
            before = world.live.sequence
            world.append(_changes(n))
            _until(lambda before=before: world.live.sequence > before)  # type: ignore[misc]
        _until(lambda: rounds.found.checked > 2 * DOCUMENTS_OF_THE_WORLD)

    assert rounds.found.faults == ()
    assert world.scan() == world.rebuilt()


def test_what_was_planted_is_repaired_and_the_next_round_waits(world: World, caplog: pytest.LogCaptureFixture) -> None:
    plant(world, add_shop("hidden"), add_coupon("c-hidden"), lose("shops", "s8"), lose("facts", "s2"))
    rounds = VerificationRounds(world.sink, world.states, rate=200)
    started = time.monotonic()
    with rounds.running():
        _until(lambda: "reconcile found 4 faults and repaired 4" in caplog.text)
        seconds, checked = time.monotonic() - started, rounds.found.checked
        time.sleep(0.5)

    assert seconds >= checked / 200
    assert (rounds.found.checked, rounds.found.total, rounds.found.remaining) == (checked, 4, 0)
    assert world.scan() == world.rebuilt()


def test_the_check_of_a_large_state_holds_no_lease_and_ends_with_following(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ready = threading.Event(), threading.Event()

    def slow(state: State) -> bool:
        began.set()
        assert ready.wait(_PATIENCE_S)
        return derived_tables_match(state)

    monkeypatch.setattr("indexer.reconcile.live.derived_tables_match", slow)
    rounds = VerificationRounds(world.sink, world.states, rate=1_000)
    with rounds.running():
        assert began.wait(_PATIENCE_S)
        with holding(world.sink.lease(), "follow", 0):
            pass
        threading.Timer(0.1, ready.set).start()
    assert rounds.found.checked == 0


def test_a_round_begins_again_with_another_generation(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    rounds = VerificationRounds(world.sink, world.states, rate=20, interval=0.0)
    with rounds.running():
        _until(lambda: rounds.found.checked > 0)
        world.build()
        former = rounds.found.checked
        _until(lambda: rounds.found.checked >= former + DOCUMENTS_OF_THE_WORLD)
    assert rounds.found.faults == ()


def test_an_unforeseen_error_is_logged_and_the_next_round_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, failed = built(MemorySink(), tmp_path), threading.Event()

    def failing_once(state: State) -> bool:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a defect")
        return derived_tables_match(state)

    monkeypatch.setattr("indexer.reconcile.live.derived_tables_match", failing_once)
    rounds = VerificationRounds(world.sink, world.states, rate=1_000, interval=0.0)
    with rounds.running():
        _until(lambda: rounds.found.checked >= DOCUMENTS_OF_THE_WORLD)
    assert "a round of reconciling failed, and the next one tries again" in caplog.messages
    assert "RuntimeError: a defect" in caplog.text
