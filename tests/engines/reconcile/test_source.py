"""What of the source never came into the state, or should be gone from it, is found and repaired, on both engines."""

from pathlib import Path
from typing import Any

import pytest

from indexer.reconcile.findings import Fault, FaultCount, FaultReport
from indexer.reconcile.source import compare_source, read_source
from indexer.records.problems import InvalidRecordsError
from tests.engines.reconcile.world import HIDDEN, OTHERS, PUBLIC, SHOPS, World, built
from tests.support.catalogues import coupon, shipping, shop
from tests.support.changes import delete, upsert
from tests.support.memory_sink import MemorySink


def _compare(world: World, *, repair: bool) -> FaultReport:
    with (
        read_source(world.source, world.states.path(world.generation)) as snapshot,
        world.editing() as (state, editor),
    ):
        return compare_source(snapshot, world.applier(state, editor), repair=repair)


def _lose_changes(world: World, *lost: dict[str, Any]) -> None:
    """Changes that the state believes to have taken."""
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

    assert _compare(world, repair=False).faults == ()
    assert _compare(world, repair=True).faults == ()
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

    assert found.faults == (
        FaultCount(Fault.LOST_CHANGE, "coupons", 1),
        FaultCount(Fault.LOST_CHANGE, "shipping", 1),
        FaultCount(Fault.LOST_CHANGE, "shops", 3),
        FaultCount(Fault.LOST_DELETE, "offers", 1),
        FaultCount(Fault.LOST_DELETE, "shops", 1),
    )
    assert world.scan() == before

    repaired = _compare(world, repair=True)

    assert (repaired.faults, repaired.repaired, repaired.remaining) == (found.faults, 7, 0)
    assert world.scan() == world.rebuilt() != before
    assert _compare(world, repair=False).faults == ()
    assert world.reconcile(repair=False).faults == ()


def test_records_that_changed_in_or_left_the_catalogue_are_found_and_repaired(world: World) -> None:
    changed = [{**line, "name": "Otherwise"} if line["id"] == "s5" else line for line in SHOPS if line["id"] != "s8"]
    coupons = [line for line in OTHERS["coupons"] if line["id"] != "c3"]
    world.rewrite({"shops": changed, "coupons": coupons})

    found = _compare(world, repair=False)
    repaired = _compare(world, repair=True)

    assert found.faults == (
        FaultCount(Fault.LOST_CHANGE, "shops", 1),
        FaultCount(Fault.LOST_DELETE, "coupons", 1),
        FaultCount(Fault.LOST_DELETE, "shops", 1),
    )
    assert (repaired.faults, repaired.remaining) == (found.faults, 0)
    assert world.scan() == world.rebuilt()
    assert _compare(world, repair=False).faults == ()


def test_a_shop_that_came_by_a_change_is_no_lost_delete(world: World) -> None:
    world.append([upsert("shops", shop("New", "new.internal", id="new"), 1)])
    world.drain()
    world.changes.unlink()  # as a stream that can't be read again

    assert _compare(world, repair=True).faults == ()
    assert "new" in world.scan()["shops"]


def test_an_older_catalogue_does_not_undo_newer_records(tmp_path: Path) -> None:
    world = World(tmp_path, MemorySink(), {"shops": [{**PUBLIC[0], "version": 7, "name": "Newer"}]})
    world.build()
    world.rewrite({"shops": [{**PUBLIC[0], "version": 6, "name": "Older"}]})

    assert _compare(world, repair=True).faults == ()
    assert world.scan()["shops"]["s0"]["name"] == "Newer"


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
