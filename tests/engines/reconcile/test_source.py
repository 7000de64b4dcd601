"""What source, state and typeahead lack of each other is found and repaired, at once or on a schedule."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.embedded import generation_directory
from indexer.jobs.following import FollowOptions
from indexer.reconcile.generation import FaultReport, FaultType, derived_tables_match
from indexer.reconcile.live import VerificationRounds, VerifyOptions, verify_live
from indexer.reconcile.source import compare_source, read_source
from indexer.records.problems import InvalidRecordsError
from indexer.sinks.embedded.files import write_stamp
from indexer.sinks.embedded.generation import generation_store
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.generation_typeahead import SinkTypeaheadEditor
from indexer.sinks.lease import holding
from indexer.state.state import State
from shop_directory.typeahead.manifest import FOLDER
from shop_directory.typeahead.segment import Shown
from tests.engines.reconcile.world import (
    DOCUMENTS_OF_THE_WORLD,
    HIDDEN,
    PUBLIC,
    World,
    add_coupon,
    add_shop,
    built,
    hidden,
    lose,
    plant,
    public,
)
from tests.support.catalogues import coupon, delete, offer, shipping, shop, upsert
from tests.support.memory_sink import MemorySink

_PATIENCE_S: Final = 30.0


def _compare(world: World, *, repair: bool) -> FaultReport:
    with read_source(world.source, world.states.path(world.generation)) as snapshot, world.editing() as (state, editor):
        return compare_source(snapshot, world.applier(state, editor), repair=repair)


def _lose_changes(world: World, *lost: dict[str, Any]) -> None:
    world.append(lost)
    changes = world.source.changes()
    assert changes is not None
    with world.states.open(world.generation) as state:
        state.position = changes.read(state.position, 1_000).position
    changes.close()


def test_nothing_is_lost_of_a_source_that_was_followed(world: World) -> None:
    world.append(
        [
            upsert("shops", {**PUBLIC[1], "visibility": "removed"}, 4),
            upsert("shops", {**HIDDEN, "visibility": "public", "version": 2}, 2),
            delete("coupons", "c0", 3),
        ]
    )
    world.drain()
    world.append([upsert("shops", {**PUBLIC[1], "visibility": "public"}, 5)])  # not followed yet

    assert _compare(world, repair=False).faults == {}
    assert _compare(world, repair=True).faults == {}
    assert world.scan() == world.rebuilt()


def test_lost_changes_and_deletes_are_found_and_left_alone_then_repaired(world: World) -> None:
    world.append([upsert("shops", {**PUBLIC[6], "name": "Followed"}, 1)])
    world.drain()
    _lose_changes(
        world,
        upsert("shops", {**PUBLIC[2], "visibility": "under_review"}, 5),
        upsert("shops", shop("New", "new.internal", id="new"), 5),
        upsert("shops", {**PUBLIC[6], "name": "Not followed"}, 2),
        upsert("coupons", coupon("LOST", "s1", id="c-lost"), 5),
        upsert("shipping", shipping("s4"), 5),
        delete("shops", "s9", 6),
        delete("offers", "o0", 6),
    )
    world.drain()
    before = world.scan()

    found = _compare(world, repair=False)

    assert found.faults == {
        (FaultType.LOST_CHANGE, "coupons"): 1,
        (FaultType.LOST_CHANGE, "shipping"): 1,
        (FaultType.LOST_CHANGE, "shops"): 3,
        (FaultType.LOST_DELETE, "offers"): 1,
        (FaultType.LOST_DELETE, "shops"): 1,
    }
    assert world.scan() == before

    repaired = _compare(world, repair=True)

    assert (repaired.faults, repaired.repaired, repaired.remaining) == (found.faults, 7, 0)
    assert world.scan() == world.rebuilt() != before
    assert _compare(world, repair=False).faults == {}
    assert world.reconcile(repair=False).faults == {}


def test_a_shop_that_came_by_a_change_is_no_lost_delete(world: World) -> None:
    world.append([upsert("shops", shop("New", "new.internal", id="new"), 1)])
    world.drain()
    world.changes.unlink()  # as a stream that can't be read again

    assert _compare(world, repair=True).faults == {}
    assert "new" in world.scan()["shops"]


def test_a_catalogue_with_bad_records_is_not_compared(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    world.rewrite({"shops": [{**PUBLIC[0], "name": 7}]})
    before = world.scan()

    with pytest.raises(InvalidRecordsError):
        _compare(world, repair=True)

    assert world.scan() == before


def test_rereading_the_source_is_private_and_leaves_nothing_behind(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    states = world.states.directory
    before = sorted(states.iterdir())

    with read_source(world.source, world.states.path(world.generation)) as snapshot:
        file = snapshot.path
        assert file.is_relative_to(states)
        assert file.stat().st_mode & 0o777 == 0o600

    assert sorted(states.iterdir()) == before


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def embedded(root: Path, tmp_path: Path) -> World:
    return built(EmbeddedSink(root), tmp_path)


def spoil(world: World, root: Path, fault: Callable[[State, SinkTypeaheadEditor], None]) -> None:
    with world.editing() as (state, editor):
        typeahead = SinkTypeaheadEditor(editor, generation_store(root, world.generation), editor.stamp.typeahead)
        fault(state, typeahead)
        stamp = replace(editor.stamp, typeahead=typeahead.commit())
        write_stamp(root, stamp)


def everything_wrong(state: State, typeahead: SinkTypeaheadEditor) -> None:
    typeahead.put(hidden(state, "hidden"))
    typeahead.put(replace(public(state, "s1"), id="nobody"))
    typeahead.remove("shops", "s0")
    typeahead.remove("shops", "s9")
    typeahead.put(replace(public(state, "s4"), name="Another"))


def shown(world: World) -> dict[str, Shown]:
    with world.editing() as (_, editor):
        return dict(editor.typeahead.shown("", None))


def damage(world: World, root: Path) -> None:
    (path,) = (generation_directory(root, world.generation) / FOLDER).glob("*.segment")
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])


@pytest.mark.rule("V1", "G3")
@pytest.mark.parametrize("rate", [None, 1.0, 3.0])
def test_what_is_wrong_there_only_is_found_by_class_and_repaired(
    embedded: World, root: Path, rate: float | None
) -> None:
    right = shown(embedded)
    spoil(embedded, root, everything_wrong)
    assert set(shown(embedded)) ^ set(right) == {"hidden", "nobody", "s0", "s9"}
    wrong = {
        (FaultType.NOT_PUBLIC, "shops"): 1,
        (FaultType.GHOST, "shops"): 1,
        (FaultType.MISSING, "shops"): 2,
        (FaultType.STALE, "shops"): 1,
    }

    found = embedded.reconcile(repair=False, rate=rate)
    assert (found.faults, found.remaining) == (wrong, 5)

    repaired = embedded.reconcile(repair=True, rate=rate)
    assert (repaired.faults, repaired.remaining, repaired.checked) == (wrong, 0, DOCUMENTS_OF_THE_WORLD)
    assert embedded.reconcile(repair=False, rate=rate).faults == {}
    assert shown(embedded) == right


def test_a_document_that_is_wrong_on_both_sides_counts_once(embedded: World, root: Path) -> None:
    spoil(embedded, root, lambda _, typeahead: typeahead.remove("shops", "s0"))
    plant(embedded, lose("shops", "s0"))
    assert embedded.reconcile(repair=True).faults == {(FaultType.MISSING, "shops"): 1}
    assert embedded.reconcile(repair=False).faults == {}


@pytest.mark.rule("G4")
def test_a_damaged_file_is_a_fault_of_its_own_and_is_written_again(
    embedded: World, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right, before = shown(embedded), embedded.live
    damage(embedded, root)
    wrong = {(FaultType.DAMAGED, "typeahead"): 1}
    assert embedded.reconcile(repair=False, rate=1.0).faults == wrong
    with caplog.at_level(logging.WARNING):
        repaired = verify_live(embedded.sink, embedded.states, options=VerifyOptions(repair=True)).found
    assert (repaired.faults, repaired.remaining, caplog.records) == (wrong, 0, [])
    assert embedded.reconcile(repair=False).faults == {}
    assert shown(embedded) == right
    assert embedded.live == replace(before, sequence=before.sequence + 1)


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

    assert rounds.found.faults == {}
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
    assert rounds.found.faults == {}


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
