"""What is wrong with an index, its aliases or its stamp is found, named and put right, on both engines."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import tantivy
from opensearchpy import OpenSearch

from index_mappings.embedded import index_directory, stamp_path, to_checked_json
from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, index_name
from indexer.jobs.build import build
from indexer.reconcile.generation import FaultReport, FaultType, GenerationComparison, check_aliases
from indexer.reconcile.live import Verified, VerifyOptions, verify_live
from indexer.sinks import protocol
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseLostError
from indexer.state.state import StateError, States
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.reconcile.world import (
    DOCUMENTS_OF_THE_WORLD,
    PUBLIC,
    Clock,
    World,
    add_coupon,
    add_shop,
    built,
    change,
    lose,
    plant,
    stale_terms,
)
from tests.support.memory_sink import MemorySink

_REPAIR = VerifyOptions(repair=True)


def _advice(prefix: str, kind: str, leads: str, generation: str) -> str:
    return (
        f"the alias {alias_name(prefix, kind)} leads to {leads}, as another program has moved it: lead it to"
        f" {index_name(prefix, kind, generation)} alone, with is_write_index, by POST /_aliases"
    )


@pytest.mark.rule("C1")
def test_a_stamp_of_another_generation_is_found_and_rewritten(tmp_path: Path) -> None:
    world = built(EmbeddedSink(tmp_path / "index"), tmp_path)
    before = world.live
    other = replace(before, generation="20200101t000000000000-abcdef", sequence=4, typeahead="0" * 64)
    other = other.counted({"shops": 99})
    stamp_path(tmp_path / "index", before.generation).write_text(to_checked_json(other.as_wire()))

    found = verify_live(world.sink, world.states)
    repaired = verify_live(world.sink, world.states, options=_REPAIR)

    assert found == Verified(None, FaultReport(Counter({(FaultType.WRONG_GENERATION, STAMP): 1})))
    assert (repaired.generation, repaired.found.faults) == (before.generation, found.found.faults)
    assert repaired.found.remaining == 0
    after = world.live
    # Above any sequence that this generation can have had, so that no cache takes it for what it knows.
    assert after.sequence > 1_000_000_000
    assert after == replace(before, sequence=after.sequence, source_position=None)
    assert verify_live(world.sink, world.states).found.faults == {}


@pytest.mark.opensearch
class TestOpenSearch:
    @pytest.fixture
    def world(self, opensearch_engine: Engine, tmp_path: Path) -> World:
        return built(opensearch_engine.sink, tmp_path)

    @pytest.mark.rule("G1")
    def test_aliases_that_lead_elsewhere_or_nowhere_are_named_with_what_to_do(
        self,
        world: World,
        client: OpenSearch,
        opensearch_location: OpenSearchLocation,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        old, prefix = world.generation, opensearch_location.prefix
        build(world.source, world.sink, world.states)
        new = world.generation
        shops, coupons = alias_name(prefix, "shops"), alias_name(prefix, "coupons")
        client.indices.update_aliases(
            body={
                "actions": [
                    {"remove": {"index": index_name(prefix, "shops", new), "alias": shops}},
                    {"add": {"index": index_name(prefix, "shops", old), "alias": shops}},
                    {"add": {"index": index_name(prefix, "offers", old), "alias": alias_name(prefix, "offers")}},
                    {"remove": {"index": index_name(prefix, "coupons", new), "alias": coupons}},
                ]
            }
        )

        before = client.indices.get_alias(name=f"{prefix}-*")
        found = verify_live(world.sink, world.states, options=_REPAIR)

        assert found.found.faults == {
            (FaultType.WRONG_GENERATION, "coupons"): 1,
            (FaultType.WRONG_GENERATION, "offers"): 1,
            (FaultType.WRONG_GENERATION, "shops"): 1,
        }
        assert (found.generation, found.found.remaining) == (new, 3)
        assert client.indices.get_alias(name=f"{prefix}-*") == before
        both = f"{index_name(prefix, 'offers', old)} and {index_name(prefix, 'offers', new)}"
        assert {record.getMessage() for record in caplog.records if record.levelname == "ERROR"} == {
            _advice(prefix, "shops", index_name(prefix, "shops", old), new),
            _advice(prefix, "offers", both, new),
            _advice(prefix, "coupons", "nowhere", new),
        }

    def test_a_lost_alias_of_the_stamp_is_named_and_nothing_is_compared(
        self, world: World, client: OpenSearch, opensearch_location: OpenSearchLocation
    ) -> None:
        prefix, generation = opensearch_location.prefix, world.generation
        client.indices.delete_alias(index=index_name(prefix, STAMP, generation), name=alias_name(prefix, STAMP))

        wrong = FaultReport(Counter({(FaultType.WRONG_GENERATION, STAMP): 1}))
        assert verify_live(world.sink, world.states, options=_REPAIR) == Verified(None, wrong)
        assert world.sink.alias_drift() == {STAMP: _advice(prefix, STAMP, "nowhere", generation)}

    def test_a_stamp_of_another_generation_is_rewritten(
        self, world: World, client: OpenSearch, opensearch_location: OpenSearchLocation
    ) -> None:
        before = world.live
        other = replace(before, generation="20200101t000000000000-abcdef")
        index = index_name(opensearch_location.prefix, STAMP, before.generation)
        client.index(index=index, id=STAMP_ID, body={"stamp": other.as_wire()})

        wrong = FaultReport(Counter({(FaultType.WRONG_GENERATION, STAMP): 1}))
        assert check_aliases(world.sink, repair=False, check=lambda: None) == wrong
        assert check_aliases(world.sink, repair=True, check=lambda: None) == replace(wrong, repaired=1)
        after = world.live
        assert after.sequence > 1_000_000_000
        assert after == replace(before, sequence=after.sequence, source_position=None)

    def test_aliases_that_do_not_identify_the_live_generation_are_left_to_a_build(
        self, world: World, client: OpenSearch, opensearch_location: OpenSearchLocation
    ) -> None:
        prefix, generation = opensearch_location.prefix, world.generation
        for kind in ("shops", STAMP):
            client.indices.delete_alias(index=index_name(prefix, kind, generation), name=alias_name(prefix, kind))
        before = client.indices.get_alias(name=f"{prefix}-*")

        with pytest.raises(SinkError, match="do not say which generation is live"):
            verify_live(world.sink, world.states, options=_REPAIR)

        assert client.indices.get_alias(name=f"{prefix}-*") == before

    def test_a_document_under_a_name_that_is_not_its_id_is_a_ghost(
        self, world: World, client: OpenSearch, opensearch_location: OpenSearchLocation
    ) -> None:
        index = index_name(opensearch_location.prefix, "shops", world.generation)
        s1 = client.get(index=index, id="s1")["_source"]
        client.index(index=index, id="zzz", body={**s1, "rank": "0"}, params={"refresh": "true"})
        client.index(index=index, id="without", body={"rank": "0"}, params={"refresh": "true"})

        assert world.found_and_repaired() == {(FaultType.GHOST, "shops"): 2}
        assert world.scan() == world.rebuilt()


def test_a_document_that_is_there_twice_is_stale(tmp_path: Path) -> None:
    world = built(EmbeddedSink(tmp_path / "index"), tmp_path)
    index = tantivy.Index.open(str(index_directory(tmp_path / "index", world.generation, "facts")))
    with world.editing() as (_, editor):
        stored = json.dumps(editor.read("facts", ["s1"])["s1"]).encode()
    writer = index.writer(num_threads=1)
    writer.add_document(tantivy.Document(id="s1", rank="s1", refs=["s1"], trusted_refs=[], stored=stored))
    writer.commit()
    writer.wait_merging_threads()
    del writer, index

    assert world.found_and_repaired() == {(FaultType.STALE, "facts"): 1}
    assert world.scan() == world.rebuilt()
    with world.editing() as (_, editor):
        assert editor.count("facts") == 10


def test_a_whole_verification_finds_and_repairs_source_state_and_index(world: World) -> None:
    plant(world, add_shop("hidden"), lose("coupons", "c2"))
    world.rewrite({"shops": [{**PUBLIC[0], "name": "Otherwise"}, *PUBLIC[1:]]})
    ticks: list[FaultReport] = []

    found = verify_live(world.sink, world.states, world.source, tick=ticks.append)
    repaired = verify_live(world.sink, world.states, world.source, _REPAIR)

    assert (found.generation, found.found.remaining) == (world.generation, 5)
    assert found.found.ordered() == [
        (FaultType.NOT_PUBLIC, "shops", 1),
        (FaultType.MISSING, "coupons", 1),
        (FaultType.LOST_CHANGE, "shops", 1),
        (FaultType.LOST_DELETE, "shops", 2),
    ]
    assert sum(tick.checked for tick in ticks) == DOCUMENTS_OF_THE_WORLD + 1
    assert sum(tick.total for tick in ticks) == found.found.total
    assert (repaired.found.faults, repaired.found.remaining) == (found.found.faults, 0)
    assert world.scan() == world.rebuilt()
    assert verify_live(world.sink, world.states, world.source).found.faults == {}


def test_another_job_has_the_lease_between_two_pages(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    clock, had = Clock(), []

    def sleep(seconds: float) -> None:
        lease = world.sink.lease()
        lease.acquire("follow", 0)
        lease.release()
        had.append(seconds)
        clock.sleep(seconds)

    verified = verify_live(
        world.sink, world.states, options=VerifyOptions(rate=5.0), timer=replace(clock.timer, sleep=sleep)
    )

    assert verified.found.checked == DOCUMENTS_OF_THE_WORLD
    assert verified.found.seconds == pytest.approx(DOCUMENTS_OF_THE_WORLD / 5)
    assert len(had) == 8  # a pause after each page that was not empty


def test_without_anything_live_or_without_its_state_a_build_is_asked_for(tmp_path: Path) -> None:
    empty = MemorySink()
    world = built(MemorySink(), tmp_path)
    world.states.drop(world.generation)

    with pytest.raises(StateError, match="shop-directory index build"):
        verify_live(empty, States(tmp_path / "other", empty.location))
    with pytest.raises(StateError, match="shop-directory index build"):
        verify_live(world.sink, world.states)


def test_another_generation_in_between_ends_a_verification(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    stamps: list[Stamp] = []

    def publish(_: float) -> None:
        if not stamps:
            stamps.append(build(world.source, world.sink, world.states).stamp)

    timer = replace(Clock().timer, sleep=publish)
    with pytest.raises(SinkError, match="another generation was published"):
        verify_live(world.sink, world.states, options=VerifyOptions(rate=1.0), timer=timer)

    assert world.sink.live() == stamps[0]


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
_FOUND = {
    (FaultType.NOT_PUBLIC, "coupons"): 2,
    (FaultType.NOT_PUBLIC, "shops"): 2,
    (FaultType.GHOST, "categories"): 1,
    (FaultType.GHOST, "offers"): 2,
    (FaultType.GHOST, "shops"): 1,
    (FaultType.MISSING, "categories"): 1,
    (FaultType.MISSING, "facts"): 1,
    (FaultType.MISSING, "offers"): 1,
    (FaultType.MISSING, "shops"): 2,
    (FaultType.STALE, "categories"): 1,
    (FaultType.STALE, "coupons"): 1,
    (FaultType.STALE, "shops"): 1,
}


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
def test_planted_faults_are_found_and_left_alone_then_repaired_into_what_a_full_build_makes(
    world: World, rate: float | None
) -> None:
    before = world.live
    plant(world, *_PLANTED)
    planted = world.scan()

    found = world.reconcile(repair=False, rate=rate)

    assert (found.faults, found.repaired, found.refused) == (_FOUND, 0, 0)
    assert (world.scan(), world.sink.live()) == (planted, before)

    repaired = world.reconcile(repair=True, rate=rate)

    assert (repaired.faults, repaired.repaired, repaired.refused) == (_FOUND, 16, 0)
    assert world.scan() == world.rebuilt()
    after = world.live
    assert after.counts == before.counts
    assert after.sequence > before.sequence
    assert world.reconcile(repair=False).faults == {}


@pytest.mark.rule("F4")
def test_stale_terms_of_a_shop_are_found_although_its_answer_is_as_it_should_be(world: World) -> None:
    plant(world, stale_terms("s3"))
    assert world.found_and_repaired() == {(FaultType.STALE, "shops"): 1}


@pytest.mark.rule("V3")
def test_all_of_a_hidden_shop_goes_in_one_micro_batch_before_anything_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    plant(world, add_coupon("c-hidden"), add_coupon("a-hidden"), add_shop("hidden"), lose("shops", "s0"))
    with world.editing() as (state, editor):
        comparison = GenerationComparison(state, editor, repair=True, check=lambda: None)
        before = editor.stamp.sequence
        assert comparison.begin() == (FaultReport(), True)

        found, _ = comparison.compare("shops", "", most=4)

        assert found.faults == {
            (FaultType.NOT_PUBLIC, "coupons"): 2,
            (FaultType.NOT_PUBLIC, "shops"): 1,
            (FaultType.MISSING, "shops"): 1,
        }
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

    assert world.found_and_repaired() == {
        (FaultType.WRONG_GENERATION, "coupons"): 1,
        (FaultType.WRONG_GENERATION, "facts"): 1,
    }
    assert world.sink.live() == replace(right, sequence=right.sequence + 1)


def test_a_wrong_category_count_of_the_state_is_not_held_against_the_index(world: World) -> None:
    with world.states.open(world.generation) as state:
        state.connection.execute("UPDATE category_names SET shops = 77 WHERE slug = 'things'")
        state.connection.execute("DELETE FROM category_names WHERE slug = 'kind-1'")
        state.connection.execute("INSERT INTO category_names VALUES ('secrets', 'Secrets', 1)")
    documents = world.scan()

    assert world.found_and_repaired() == {(FaultType.STATE, "categories"): 3}
    assert world.scan() == documents == world.rebuilt()


def test_a_domain_that_the_state_gave_to_the_wrong_shop_goes_back(world: World) -> None:
    with world.states.open(world.generation) as state, state.transaction():
        # The shop with the worse rank has the domain, and another public shop was forgotten.
        state.connection.execute(
            "UPDATE winners SET id = 'z-loser', rank = (SELECT rank FROM shops WHERE id = 'z-loser') WHERE id = 's3'"
        )
        state.connection.execute("DELETE FROM winners WHERE id = 's1'")

    # The counts of categories are right for the shops that ought to be public.
    assert world.found_and_repaired() == {(FaultType.STATE, "shops"): 3}
    assert world.scan() == world.rebuilt()


def test_what_is_pending_is_no_fault_and_is_done_by_a_repair(world: World) -> None:
    plant(world, lose("shops", "s0"), lose("offers", "o1"))
    with world.states.open(world.generation) as state:
        state.pending.add("shops", "s0")
        state.pending.add("offers", "o1")

    assert world.reconcile(repair=False).faults == {}
    assert world.reconcile(repair=True).faults == {}
    assert world.scan() == world.rebuilt()


def test_a_lost_lease_ends_it_before_anything_is_written(world: World) -> None:
    plant(world, lose("shops", "s0"))
    before = world.scan()

    def lost() -> None:
        raise LeaseLostError("the lease was lost")

    with world.editing() as (state, editor), pytest.raises(LeaseLostError):
        GenerationComparison(state, editor, repair=True, check=lost).begin()

    assert world.scan() == before
