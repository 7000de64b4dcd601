"""Aliases and stamps that lead astray are found and put right, and the whole of a verification, on both engines."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tantivy
from opensearchpy import OpenSearch

from index_mappings.embedded import index_directory, stamp_path, to_stamp_json
from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, index_name
from indexer.jobs.build import build
from indexer.reconcile.findings import Fault, FaultCount, FaultReport
from indexer.reconcile.generation import check_aliases
from indexer.reconcile.live import Verified, VerifyOptions, verify_live
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError
from indexer.state.state import StateError, States
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.reconcile.world import (
    DOCUMENTS_OF_THE_WORLD,
    PUBLIC,
    Clock,
    World,
    add_shop,
    built,
    lose,
    plant,
)
from tests.support.memory_sink import MemorySink

_REPAIR = VerifyOptions(repair=True)


def _check(world: World, *, repair: bool) -> FaultReport:
    return check_aliases(world.sink, repair=repair, check=lambda: None)


def _advice(prefix: str, kind: str, leads: str, generation: str) -> str:
    return (
        f"the alias {alias_name(prefix, kind)} leads to {leads}, as another program has moved it: lead it to"
        f" {index_name(prefix, kind, generation)} alone, with is_write_index, by POST /_aliases"
    )


def _assert_the_stamp_is_found_and_repaired(world: World) -> None:
    found = _check(world, repair=False)
    repaired = _check(world, repair=True)

    assert found == FaultReport((FaultCount(Fault.WRONG_GENERATION, STAMP, 1),))
    assert repaired == replace(found, repaired=1)


@pytest.mark.rule("C1")
def test_a_stamp_of_another_generation_is_found_and_rewritten(tmp_path: Path) -> None:
    world = built(EmbeddedSink(tmp_path / "index"), tmp_path)
    before = world.sink.live()
    assert before is not None
    other = replace(before, generation="20200101t000000000000-abcdef", sequence=4, typeahead="0" * 64)
    other = other.counted({"shops": 99})
    stamp_path(tmp_path / "index", before.generation).write_text(to_stamp_json(other))

    found = verify_live(world.sink, world.states)
    repaired = verify_live(world.sink, world.states, options=_REPAIR)

    assert found == Verified(None, FaultReport((FaultCount(Fault.WRONG_GENERATION, STAMP, 1),)))
    assert (repaired.generation, repaired.found.faults) == (before.generation, found.found.faults)
    assert repaired.found.remaining == 0
    after = world.sink.live()
    assert after is not None
    # Above any sequence that this generation can have had, so that no cache takes it for what it knows.
    assert after.sequence > 1_000_000_000
    assert after == replace(before, sequence=after.sequence)
    assert verify_live(world.sink, world.states).found.faults == ()


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

        assert found.found.faults == (
            FaultCount(Fault.WRONG_GENERATION, "coupons", 1),
            FaultCount(Fault.WRONG_GENERATION, "offers", 1),
            FaultCount(Fault.WRONG_GENERATION, "shops", 1),
        )
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

        wrong = FaultReport((FaultCount(Fault.WRONG_GENERATION, STAMP, 1),))
        assert verify_live(world.sink, world.states, options=_REPAIR) == Verified(None, wrong)
        assert world.sink.alias_drift() == {STAMP: _advice(prefix, STAMP, "nowhere", generation)}

    def test_a_stamp_of_another_generation_is_rewritten(
        self, world: World, client: OpenSearch, opensearch_location: OpenSearchLocation
    ) -> None:
        before = world.sink.live()
        assert before is not None
        other = replace(before, generation="20200101t000000000000-abcdef")
        index = index_name(opensearch_location.prefix, STAMP, before.generation)
        client.index(index=index, id=STAMP_ID, body={"stamp": other.as_wire()})

        _assert_the_stamp_is_found_and_repaired(world)
        after = world.sink.live()
        assert after is not None
        assert after.sequence > 1_000_000_000
        assert after == replace(before, sequence=after.sequence)

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

        assert world.found_and_repaired() == (FaultCount(Fault.GHOST, "shops", 2),)
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

    assert world.found_and_repaired() == (FaultCount(Fault.STALE, "facts", 1),)
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
    assert found.found.faults == (
        FaultCount(Fault.NOT_PUBLIC, "shops", 1),
        FaultCount(Fault.MISSING, "coupons", 1),
        FaultCount(Fault.LOST_CHANGE, "shops", 1),
        FaultCount(Fault.LOST_DELETE, "shops", 2),
    )
    assert sum(tick.checked for tick in ticks) == DOCUMENTS_OF_THE_WORLD + 1
    assert sum(tick.total for tick in ticks) == found.found.total
    assert (repaired.found.faults, repaired.found.remaining) == (found.found.faults, 0)
    assert world.scan() == world.rebuilt()
    assert verify_live(world.sink, world.states, world.source).found.faults == ()


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


def test_a_verification_waits_for_other_jobs_no_longer_than_its_limit(tmp_path: Path) -> None:
    world = built(MemorySink(), tmp_path)
    world.sink.lease().acquire("build", 0)

    with pytest.raises(LeaseHeldError):
        verify_live(world.sink, world.states, options=VerifyOptions(wait=0))


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
