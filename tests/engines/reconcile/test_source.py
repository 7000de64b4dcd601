"""What of the source never came into the state, or should be gone from it, is found and repaired, on both engines."""

from pathlib import Path
from typing import Any

import pytest

from indexer.jobs.build import build
from indexer.reconcile.findings import Fault, FaultCount, FaultReport
from indexer.reconcile.source import compare_source, read_source
from indexer.records.problems import InvalidRecordsError
from indexer.sinks.memory.sink import MemorySink
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.states import States
from tests.engines.reconcile.world import HIDDEN, OTHERS, PUBLIC, SHOPS, World, built
from tests.support.catalogues import coupon, shipping, shop, write_catalogue, write_catalogue_directory
from tests.support.changes import delete, upsert


def _compare(world: World, *, repair: bool) -> FaultReport:
    with (
        read_source(world.source, world.states.path(world.generation)) as snapshot,
        world.editing() as (state, editor),
    ):
        return compare_source(snapshot, world.follower(state, editor), repair=repair)


def _lose_changes(world: World, *lost: dict[str, Any]) -> None:
    """Changes that the state believes to have taken."""
    world.say(*lost)
    changes = world.source.changes()
    assert changes is not None
    with world.states.open(world.generation) as state:
        state.position = changes.read(state.position, 1_000).position
    changes.close()


def test_nothing_is_lost_of_a_source_that_was_followed(world: World) -> None:
    world.say(
        upsert("shops", {**PUBLIC[1], "visibility": "removed"}, 4),
        upsert("shops", {**HIDDEN, "visibility": "public", "version": 2}, 2),
        delete("coupons", "c0", 3),
    )
    world.follow()
    world.say(upsert("shops", {**PUBLIC[1], "visibility": "public"}, 5))  # not followed yet

    assert _compare(world, repair=False).faults == ()
    assert _compare(world, repair=True).faults == ()
    assert world.documents() == world.rebuilt()


def test_lost_changes_and_deletes_are_found_and_left_alone_then_repaired(world: World) -> None:
    world.say(upsert("shops", {**PUBLIC[6], "name": "Followed"}, 1))
    world.follow()
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
    world.follow()
    before = world.documents()

    found = _compare(world, repair=False)

    assert found.faults == (
        FaultCount(Fault.LOST_CHANGE, "coupons", 1),
        FaultCount(Fault.LOST_CHANGE, "shipping", 1),
        FaultCount(Fault.LOST_CHANGE, "shops", 3),
        FaultCount(Fault.LOST_DELETE, "offers", 1),
        FaultCount(Fault.LOST_DELETE, "shops", 1),
    )
    assert world.documents() == before

    repaired = _compare(world, repair=True)

    assert (repaired.faults, repaired.repaired, repaired.remaining) == (found.faults, 7, 0)
    assert world.documents() == world.rebuilt() != before
    assert _compare(world, repair=False).faults == ()
    assert world.reconcile(repair=False).faults == ()


def test_records_that_changed_in_or_left_the_catalogue_are_found_and_repaired(world: World) -> None:
    changed = [{**line, "name": "Otherwise"} if line["id"] == "s5" else line for line in SHOPS if line["id"] != "s8"]
    coupons = [line for line in OTHERS["coupons"] if line["id"] != "c3"]
    write_catalogue_directory(world.catalogue, shops=changed, coupons=coupons)

    found = _compare(world, repair=False)
    repaired = _compare(world, repair=True)

    assert found.faults == (
        FaultCount(Fault.LOST_CHANGE, "shops", 1),
        FaultCount(Fault.LOST_DELETE, "coupons", 1),
        FaultCount(Fault.LOST_DELETE, "shops", 1),
    )
    assert (repaired.faults, repaired.remaining) == (found.faults, 0)
    assert world.documents() == world.rebuilt()
    assert _compare(world, repair=False).faults == ()


def test_a_shop_that_came_by_a_change_is_no_lost_delete(world: World) -> None:
    world.say(upsert("shops", shop("New", "new.internal", id="new"), 1))
    world.follow()
    (world.catalogue / "changes.ndjson").unlink()  # as a stream that can't be read again

    assert _compare(world, repair=True).faults == ()
    assert "new" in world.documents()["shops"]


def test_an_older_catalogue_does_not_undo_newer_records(tmp_path: Path) -> None:
    catalogue = write_catalogue(tmp_path / "shops.ndjson", [{**PUBLIC[0], "version": 7, "name": "Newer"}])
    sink = MemorySink()
    states = States(tmp_path / "states", sink.location)
    build(NdjsonCatalogue(catalogue), sink, states)
    write_catalogue(catalogue, [{**PUBLIC[0], "version": 6, "name": "Older"}])
    world = World(sink, states, catalogue)

    assert _compare(world, repair=True).faults == ()
    assert world.documents()["shops"]["s0"]["name"] == "Newer"


def test_a_catalogue_with_bad_records_is_not_compared(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    write_catalogue(world.catalogue / "shops.ndjson", [{**PUBLIC[0], "name": 7}])
    before = world.documents()

    with pytest.raises(InvalidRecordsError):
        _compare(world, repair=True)

    assert world.documents() == before


def test_rereading_the_source_is_private_and_leaves_nothing_behind(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    states = world.states.directory
    before = sorted(states.iterdir())

    with read_source(world.source, world.states.path(world.generation)) as snapshot:
        file = snapshot.path
        assert file.is_relative_to(states)
        assert file.stat().st_mode & 0o777 == 0o600

    assert sorted(states.iterdir()) == before
