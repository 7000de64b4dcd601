"""Which generation is live on each engine, which was before, and going back to that one (G2)."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch
from typer.testing import CliRunner

from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp, new_generation
from indexer.__main__ import index
from indexer.jobs.retention import prune, remove_unfinished
from indexer.jobs.rollback import roll_back
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Generation, Role, Sink
from indexer.sources.changes import ChangeFile
from indexer.state.state import StateError
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.following.followed import FollowedIndex
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.rules.backends.asking import find, names
from tests.support.catalogues import coupon, delete, offer, shop, upsert

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    return projected([shop("Lamp", "lamp.internal", id="lamp")], tmp_path)


def _published(sink: Sink, documents: Documents) -> Stamp:
    before = sink.live()
    stamp, become_live = sealed(sink, documents)
    become_live()
    if before is not None:
        sink.retire(before.generation, NOON)
    return stamp


def _roles(sink: Sink) -> list[tuple[str, Role]]:
    return [(found.name, found.role) for found in sink.generations()]


@pytest.mark.rule("G2", "G1")
async def test_each_generation_is_listed_with_its_role_its_stamp_and_since_when_it_is_not_live(
    engine: Engine, documents: Documents
) -> None:
    assert (engine.sink.generations(), engine.sink.live()) == ((), None)
    retired, previous, live = (_published(engine.sink, documents) for _ in range(3))
    waiting, _ = sealed(engine.sink, documents)
    begun = new_generation(datetime.now(UTC))
    engine.sink.begin(begun)
    assert engine.sink.generations() == (
        Generation(retired.generation, Role.RETIRED, retired, NOON),
        Generation(previous.generation, Role.PREVIOUS, previous, NOON),
        Generation(live.generation, Role.LIVE, live, None),
        Generation(waiting.generation, Role.UNFINISHED, waiting, None),
        Generation(begun, Role.UNFINISHED, None, None, whole=False),
    )
    assert (engine.sink.live(), (await engine.backend.refresh()).stamp) == (live, live)


@pytest.mark.rule("G2", "G1")
async def test_after_a_rollback_the_two_have_changed_their_roles_and_the_live_one_is_retired_no_more(
    engine: Engine, documents: Documents
) -> None:
    first, second = (_published(engine.sink, documents) for _ in range(2))
    engine.sink.publish(first.generation, second.generation)
    assert (engine.sink.live(), (await engine.backend.refresh()).stamp) == (first, first)
    unmarked = Generation(second.generation, Role.PREVIOUS, second, None)
    assert engine.sink.generations() == (Generation(first.generation, Role.LIVE, first, None), unmarked)
    engine.sink.retire(second.generation, NOON)

    third = _published(engine.sink, documents)
    assert engine.sink.generations() == (
        Generation(first.generation, Role.PREVIOUS, first, NOON),
        Generation(second.generation, Role.RETIRED, second, NOON),
        Generation(third.generation, Role.LIVE, third, None),
    )


@pytest.mark.rule("G2")
async def test_a_generation_that_is_dropped_is_gone_and_dropping_it_again_does_nothing(
    engine: Engine, documents: Documents
) -> None:
    live = _published(engine.sink, documents)
    begun, _ = sealed(engine.sink, documents)
    for _ in range(2):
        engine.sink.drop(begun.generation)
        assert _roles(engine.sink) == [(live.generation, Role.LIVE)]
    with pytest.raises(SinkError):
        engine.sink.edit(begun.generation)


@pytest.mark.opensearch
def test_the_status_of_a_cluster_is_reported_like_that_of_a_directory(
    opensearch_location: OpenSearchLocation, opensearch_engine: Engine, tmp_path: Path
) -> None:
    environment = {
        "SHOP_DIRECTORY_ENGINE": "opensearch",
        "SHOP_DIRECTORY_OPENSEARCH_URLS": opensearch_location.url,
        "SHOP_DIRECTORY_INDEX_PREFIX": opensearch_location.prefix,
        "SHOP_DIRECTORY_STATE_DIR": str(tmp_path / "state"),
    }
    built = CliRunner().invoke(index, ["build", "--json"], env=environment)
    done = CliRunner().invoke(index, ["status", "--json"], env=environment)
    assert (built.exit_code, done.exit_code) == (0, 0)
    status = json.loads(done.stdout)
    assert status["location"] == opensearch_engine.sink.location
    roles = [(found["generation"], found["role"], found["can_be_followed"]) for found in status["generations"]]
    assert roles == [(json.loads(built.stdout)["generation"], "live", True)]


@pytest.mark.rule("G1.fence")
async def test_a_publisher_whose_predecessor_was_replaced_fails_and_the_winner_stays(
    engine: Engine, documents: Documents
) -> None:
    first = publish(engine.sink, documents)
    overtaken, slow = sealed(engine.sink, documents)
    _, slower = sealed(engine.sink, documents)
    winner, quick = sealed(engine.sink, documents)
    quick()

    with pytest.raises(SinkError, match="could not be published"):
        slow()
    engine.sink.drop(overtaken.generation)
    # By now the predecessor itself may have been removed.
    engine.sink.drop(first.generation)
    with pytest.raises(SinkError, match="could not be published"):
        slower()

    snapshot = await engine.backend.refresh()
    assert (snapshot.stamp, names((await find(snapshot, "lamp")).shops)) == (winner, ["Lamp"])
    assert engine.sink.live() == winner


@pytest.mark.rule("G1.fence")
async def test_of_two_first_publishers_the_second_fails(engine: Engine, documents: Documents) -> None:
    _, slow = sealed(engine.sink, documents)
    winner, quick = sealed(engine.sink, documents)
    quick()
    with pytest.raises(SinkError, match="could not be published"):
        slow()
    assert engine.sink.live() == (await engine.backend.refresh()).stamp == winner


class Catalogue(FollowedIndex):
    def __init__(self, folder: Path, sink: Sink) -> None:
        super().__init__(folder, sink, {"shops": []})

    def publish(self, *shops: dict[str, Any], **others: list[dict[str, Any]]) -> Stamp:
        self.rewrite({"shops": shops, **others})
        return self.build().stamp

    def held(self, kind: str) -> list[str]:
        return list(self.scan()[kind])


@pytest.fixture
def catalogue(engine: Engine, tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path, engine.sink)


def _renamed(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {**line, "name": name}


LAMP, BOOK, TEAPOT = (shop(name, id=name.lower()) for name in ("Lamp", "Book", "Teapot"))


@pytest.mark.rule("G2")
async def test_a_rollback_brings_back_what_a_bad_build_lost_and_keeps_the_bad_one_for_another(
    engine: Engine, catalogue: Catalogue
) -> None:
    good = catalogue.publish(LAMP, BOOK, coupons=[coupon("SAVE", "book")])
    bad = catalogue.publish(_renamed(LAMP, "Broken"), coupons=[])
    done = roll_back(engine.sink, catalogue.states, None)
    assert (done.stamp.generation, done.replaced, dict(done.stamp.counts)) == (
        good.generation,
        bad.generation,
        {"shops": 2, "categories": 1, "coupons": 1, "offers": 0, "facts": 2},
    )
    snapshot = await engine.backend.refresh()
    assert snapshot.stamp == done.stamp == engine.sink.live()
    assert names((await find(snapshot, "")).shops) == ["Book", "Lamp"]
    assert {found.name: found.role for found in engine.sink.generations()} == {
        good.generation: Role.LIVE,
        bad.generation: Role.PREVIOUS,
    }
    assert roll_back(engine.sink, catalogue.states, None).stamp.generation == bad.generation
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Broken"]


@pytest.mark.rule("G2", "V1")
async def test_a_shop_that_the_later_catalogue_hides_does_not_come_back(engine: Engine, catalogue: Catalogue) -> None:
    others = {
        "coupons": [coupon("SAVE", "book", id="c1"), coupon("LESS", "lamp", id="c2")],
        "offers": [offer("o1", "book")],
    }
    catalogue.publish(LAMP, BOOK, **others)
    catalogue.publish({**BOOK, "visibility": "under_review"}, TEAPOT, **others)
    done = roll_back(engine.sink, catalogue.states, None)
    assert dict(done.stamp.counts) == {"shops": 1, "categories": 1, "coupons": 1, "offers": 0, "facts": 1}
    assert [catalogue.held(kind) for kind in ("shops", "facts", "coupons", "offers")] == [
        ["lamp"],
        ["lamp"],
        ["c2"],
        [],
    ]
    snapshot = await engine.backend.refresh()
    assert (await snapshot.shop("book"), await snapshot.offer("o1")) == (None, None)


@pytest.mark.rule("G2", "G3", "V1")
async def test_changes_since_are_in_the_generation_before_it_is_shown_again(
    engine: Engine, catalogue: Catalogue
) -> None:
    catalogue.publish(LAMP, BOOK)
    catalogue.publish(LAMP, BOOK, TEAPOT)
    # Of these the follower took the first two only; the rollback reads the third by itself.
    catalogue.append([upsert("shops", {**BOOK, "visibility": "under_review"}, 7)])
    catalogue.append([upsert("shops", _renamed(LAMP, "Lantern"), 8)])
    assert catalogue.drain().applied == 2
    catalogue.append([upsert("shops", shop("Vase", id="vase"), 9)])
    done = roll_back(engine.sink, catalogue.states, ChangeFile(catalogue.changes))
    assert (done.changes.applied, catalogue.held("shops")) == (3, ["lamp", "vase"])
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Lantern", "Vase"]
    # Following goes on where it is now, and the deleted version stays deleted.
    catalogue.append([upsert("shops", BOOK, 6)])
    catalogue.append([delete("shops", "vase", 10)])
    assert (catalogue.drain().applied, catalogue.held("shops")) == (1, ["lamp"])


@pytest.mark.rule("G2", "G3", "V1")
def test_changes_of_a_stream_that_cannot_be_read_again_are_taken_from_the_state_that_was_left(
    engine: Engine, catalogue: Catalogue
) -> None:
    catalogue.publish(LAMP, BOOK, coupons=[coupon("SAVE", "lamp", id="c1"), coupon("LESS", "lamp", id="c2")])
    catalogue.publish(LAMP, BOOK, coupons=[coupon("SAVE", "lamp", id="c1"), coupon("LESS", "lamp", id="c2")])
    catalogue.append([delete("shops", "book", 7)])
    catalogue.append([delete("coupons", "c1", 7)])
    catalogue.append([upsert("shops", TEAPOT, 7)])
    catalogue.drain()
    done = roll_back(engine.sink, catalogue.states, None)
    assert (done.carried_over, catalogue.held("shops"), catalogue.held("coupons")) == (3, ["lamp", "teapot"], ["c2"])


@pytest.mark.rule("G2", "V1")
def test_without_the_state_of_either_generation_nothing_is_rolled_back(engine: Engine, catalogue: Catalogue) -> None:
    first = catalogue.publish(LAMP, BOOK)
    second = catalogue.publish(LAMP)
    for lost in (first, second):
        path = catalogue.states.path(lost.generation)
        shutil.copy(path, copied := path.with_suffix(".kept"))
        path.unlink()
        with pytest.raises(StateError, match=r"lost .*build again"):
            roll_back(engine.sink, catalogue.states, None)
        assert engine.sink.live() == second
        shutil.move(copied, path)


@pytest.mark.rule("G2")
def test_without_a_previous_generation_there_is_nothing_to_go_back_to(engine: Engine, catalogue: Catalogue) -> None:
    for _ in range(2):
        with pytest.raises(SinkError, match="there is no previous generation to roll back to"):
            roll_back(engine.sink, catalogue.states, None)
        catalogue.publish(LAMP)
    catalogue.publish(LAMP)
    later = datetime.now(UTC) + timedelta(seconds=61)
    assert len(prune(engine.sink, catalogue.states, later, keep_previous=False)) == 2
    with pytest.raises(SinkError, match="there is no previous generation to roll back to"):
        roll_back(engine.sink, catalogue.states, None)


async def _after_a_loss(engine: Engine, catalogue: Catalogue, lose: Callable[[Stamp], object]) -> None:
    """Assert that a build repairs a lost live generation, and that the one before can be gone back to."""
    good = catalogue.publish(LAMP, BOOK)
    lost = catalogue.publish(LAMP)
    engine.sink.retire(good.generation, datetime.now(UTC) - timedelta(days=1))
    lose(lost)
    mended = catalogue.publish(LAMP, TEAPOT)
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Lamp", "Teapot"]
    roles = {found.name: found.role for found in engine.sink.generations()}
    assert (roles[good.generation], roles[mended.generation]) == (Role.PREVIOUS, Role.LIVE)
    later = datetime.now(UTC) + timedelta(days=1)
    remove_unfinished(engine.sink, catalogue.states, later)
    prune(engine.sink, catalogue.states, later)
    assert {found.name: found.role for found in engine.sink.generations()} == {
        good.generation: Role.PREVIOUS,
        mended.generation: Role.LIVE,
    }
    assert roll_back(engine.sink, catalogue.states, None).stamp.generation == good.generation
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Book", "Lamp"]


@pytest.mark.opensearch
@pytest.mark.rule("G2")
@pytest.mark.parametrize("kinds", [("*",), ("stamp",), ("offers", "typeahead")], ids="-".join)
async def test_after_indices_of_the_live_generation_were_lost_a_build_leaves_a_generation_to_go_back_to(
    opensearch_engine: Engine,
    opensearch_location: OpenSearchLocation,
    client: OpenSearch,
    tmp_path: Path,
    kinds: tuple[str, ...],
) -> None:
    def lose(live: Stamp) -> None:
        for kind in kinds:
            for name in client.indices.get(index=f"{opensearch_location.prefix}-{kind}-{live.generation}"):
                client.indices.delete(index=name)

    await _after_a_loss(opensearch_engine, Catalogue(tmp_path, opensearch_engine.sink), lose)


@pytest.mark.rule("G2")
@pytest.mark.parametrize("lost", ["", "stamp.json", "offers", "committed"])
async def test_after_files_of_the_live_generation_were_lost_a_build_leaves_a_generation_to_go_back_to(
    embedded_engine: Engine, tmp_path: Path, lost: str
) -> None:
    def lose(live: Stamp) -> None:
        path = generation_directory(tmp_path / "index", live.generation) / lost
        path.unlink() if path.is_file() else shutil.rmtree(path)

    await _after_a_loss(embedded_engine, Catalogue(tmp_path, embedded_engine.sink), lose)
