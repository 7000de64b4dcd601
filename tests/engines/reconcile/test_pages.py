"""What is wrong with an index is found by class and kind, repaired, and nothing is invented: on both engines."""

from dataclasses import replace
from pathlib import Path

import pytest

from indexer.reconcile.findings import Fault, FaultCount, FaultReport
from indexer.reconcile.generation import Comparison
from indexer.reconcile.live import VerifyOptions, verify_live
from indexer.sinks import protocol
from indexer.sinks.lease import LeaseLostError
from tests.engines.reconcile.world import (
    DOCUMENTS_OF_THE_WORLD,
    Clock,
    World,
    add_coupon,
    add_shop,
    built,
    change,
    lose,
    plant,
)
from tests.support.memory_sink import MemorySink

_PLANTED = (
    lose("shops", "s0"),
    lose("shops", "s7"),
    lose("facts", "s9"),
    lose("offers", "o3"),
    lose("categories", "things"),
    change("shops", "s4", like="s5"),
    change("coupons", "c1", like="c2"),
    change("categories", "kind-0", like="kind-1"),
    change("shops", "nobody", like="s1"),
    change("offers", "AAA", like="o1"),
    change("offers", "zzz", like="o1"),
    change("categories", "secrets", like="kind-2"),
    add_shop("hidden"),
    add_shop("z-loser"),
    add_coupon("c-hidden"),
    add_coupon("a-hidden"),
)
_FOUND = (
    FaultCount(Fault.NOT_PUBLIC, "coupons", 2),
    FaultCount(Fault.NOT_PUBLIC, "shops", 2),
    FaultCount(Fault.GHOST, "categories", 1),
    FaultCount(Fault.GHOST, "offers", 2),
    FaultCount(Fault.GHOST, "shops", 1),
    FaultCount(Fault.MISSING, "categories", 1),
    FaultCount(Fault.MISSING, "facts", 1),
    FaultCount(Fault.MISSING, "offers", 1),
    FaultCount(Fault.MISSING, "shops", 2),
    FaultCount(Fault.STALE, "categories", 1),
    FaultCount(Fault.STALE, "coupons", 1),
    FaultCount(Fault.STALE, "shops", 1),
)


@pytest.mark.parametrize("rate", [None, 1.0, 3.0])
def test_a_healthy_index_has_no_faults(world: World, rate: float | None) -> None:
    seconds = 0.0 if rate is None else DOCUMENTS_OF_THE_WORLD / rate

    found = world.reconcile(repair=True, rate=rate)

    assert replace(found, seconds=round(found.seconds, 6)) == FaultReport(
        checked=DOCUMENTS_OF_THE_WORLD, seconds=round(seconds, 6)
    )


def test_a_scan_has_the_documents_of_all_pages_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(world, *_PLANTED)
    whole = world.scan()
    for most in (1, 3):
        monkeypatch.setattr(protocol, "_PAGE", most)
        assert world.scan() == whole


@pytest.mark.parametrize("rate", [None, 1.0, 3.0])
def test_planted_faults_are_found_by_class_and_kind_and_left_alone(world: World, rate: float | None) -> None:
    plant(world, *_PLANTED)
    before = world.scan(), world.sink.live()

    found = world.reconcile(repair=False, rate=rate)

    assert found.faults == _FOUND
    assert (found.repaired, found.refused, found.remaining) == (0, 0, 16)
    assert (world.scan(), world.sink.live()) == before


@pytest.mark.parametrize("rate", [None, 1.0, 3.0])
def test_planted_faults_are_repaired_into_what_a_full_build_makes(world: World, rate: float | None) -> None:
    before = world.sink.live()
    assert before is not None
    plant(world, *_PLANTED)

    found = world.reconcile(repair=True, rate=rate)

    assert found.faults == _FOUND
    assert (found.repaired, found.refused, found.remaining) == (16, 0, 0)
    assert world.scan() == world.rebuilt()
    after = world.sink.live()
    assert after is not None
    assert after.counts == before.counts
    assert after.sequence > before.sequence
    assert world.reconcile(repair=False).faults == ()


@pytest.mark.rule("V3")
def test_all_of_a_hidden_shop_goes_in_one_micro_batch_before_anything_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    plant(world, add_coupon("c-hidden"), add_coupon("a-hidden"), add_shop("hidden"), lose("shops", "s0"))
    with world.editing() as (state, editor):
        comparison = Comparison(state, editor, repair=True, check=lambda: None)
        before = editor.stamp.sequence
        assert comparison.begin() == (FaultReport(), True)

        found, _ = comparison.compare("shops", "", most=4)

        assert found.faults == (
            FaultCount(Fault.NOT_PUBLIC, "coupons", 2),
            FaultCount(Fault.NOT_PUBLIC, "shops", 1),
            FaultCount(Fault.MISSING, "shops", 1),
        )
        assert found.repaired == 4
        assert editor.stamp.sequence == before + 2
        assert not editor.read("coupons", ["c-hidden", "a-hidden"])
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "3 documents of shops that are not public were in the index: they are being removed"
    ]
    assert "hidden.internal" not in caplog.text


def test_a_wrong_count_in_the_stamp_is_found_and_repaired(world: World) -> None:
    with world.editing() as (_, editor):
        right = editor.stamp
        editor.commit(right.counted({**right.counts, "coupons": 99, "facts": 0}))

    assert world.found_and_repaired() == (
        FaultCount(Fault.WRONG_GENERATION, "coupons", 1),
        FaultCount(Fault.WRONG_GENERATION, "facts", 1),
    )
    assert world.sink.live() == replace(right, sequence=right.sequence + 1)


def test_a_wrong_category_count_of_the_state_is_not_held_against_the_index(world: World) -> None:
    with world.states.open(world.generation) as state:
        state.connection.execute("UPDATE category_names SET shops = 77 WHERE slug = 'things'")
        state.connection.execute("DELETE FROM category_names WHERE slug = 'kind-1'")
        state.connection.execute("INSERT INTO category_names VALUES ('secrets', 'Secrets', 1)")
    documents = world.scan()

    assert world.found_and_repaired() == (FaultCount(Fault.STATE, "categories", 3),)
    assert world.scan() == documents == world.rebuilt()


def test_a_domain_that_the_state_gave_to_the_wrong_shop_goes_back(world: World) -> None:
    with world.states.open(world.generation) as state, state.transaction():
        # The shop with the worse rank has the domain, and another public shop was forgotten.
        state.connection.execute(
            "UPDATE winners SET id = 'z-loser', rank = (SELECT rank FROM shops WHERE id = 'z-loser') WHERE id = 's3'"
        )
        state.connection.execute("DELETE FROM winners WHERE id = 's1'")

    # The counts of categories are right for the shops that ought to be public.
    assert world.found_and_repaired() == (FaultCount(Fault.STATE, "shops", 3),)
    assert world.scan() == world.rebuilt()


def test_what_is_pending_is_no_fault_and_is_done_by_a_repair(world: World) -> None:
    plant(world, lose("shops", "s0"), lose("offers", "o1"))
    with world.states.open(world.generation) as state:
        state.pending.add("shops", "s0")
        state.pending.add("offers", "o1")

    assert world.reconcile(repair=False).faults == ()
    assert world.reconcile(repair=True).faults == ()
    assert world.scan() == world.rebuilt()


def test_a_lost_lease_ends_it_before_anything_is_written(world: World) -> None:
    plant(world, lose("shops", "s0"))
    before = world.scan()

    def lost() -> None:
        raise LeaseLostError("the lease was lost")

    with world.editing() as (state, editor), pytest.raises(LeaseLostError):
        Comparison(state, editor, repair=True, check=lost).begin()

    assert world.scan() == before


def test_a_pace_of_documents_a_second_is_not_exceeded(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    clock, seen = Clock(), []

    def tick(found: FaultReport) -> None:
        if found.checked:
            seen.append((clock.seconds, found.checked))

    found = verify_live(world.sink, world.states, options=VerifyOptions(rate=4.0), tick=tick, timer=clock.timer).found

    assert found.checked == sum(checked for _, checked in seen) == DOCUMENTS_OF_THE_WORLD
    assert found.seconds >= DOCUMENTS_OF_THE_WORLD / 4
    for place, (at, _) in enumerate(seen):
        before = sum(checked for _, checked in seen[:place])
        assert at >= before / 4
    assert max(checked for _, checked in seen) == 4
