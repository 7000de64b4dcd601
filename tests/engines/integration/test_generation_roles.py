"""What each engine says of its generations: which is live, which was before, and that an overtaken publisher fails."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from index_mappings.generations import Stamp, new_generation
from indexer.__main__ import index
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Generation, Role, Sink
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.rules.backends.asking import find, names
from tests.support.catalogues import shop

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    return projected([shop("Lamp", "lamp.internal", id="lamp")], tmp_path)


def _published(sink: Sink, documents: Documents) -> Stamp:
    """A generation that became live as a build does it."""
    before = sink.live()
    stamp, writer = sealed(sink, documents)
    writer.publish()
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


@pytest.mark.rule("G1.fence", "G2")
async def test_going_back_from_a_generation_that_is_not_live_fails(engine: Engine, documents: Documents) -> None:
    first, second, third = (_published(engine.sink, documents) for _ in range(3))
    before = engine.sink.generations()
    for replaced in (second.generation, first.generation, None):
        with pytest.raises(SinkError, match="could not be published"):
            engine.sink.publish(first.generation, replaced)
    assert engine.sink.generations() == before
    assert engine.sink.live() == (await engine.backend.refresh()).stamp == third


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
    quick.publish()

    with pytest.raises(SinkError, match="could not be published"):
        slow.publish()
    engine.sink.drop(overtaken.generation)
    # By now the predecessor itself may have been removed.
    engine.sink.drop(first.generation)
    with pytest.raises(SinkError, match="could not be published"):
        slower.publish()

    snapshot = await engine.backend.refresh()
    assert (snapshot.stamp, names((await find(snapshot, "lamp")).shops)) == (winner, ["Lamp"])
    assert engine.sink.live() == winner


@pytest.mark.rule("G1.fence")
async def test_of_two_first_publishers_the_second_fails(engine: Engine, documents: Documents) -> None:
    _, slow = sealed(engine.sink, documents)
    winner, quick = sealed(engine.sink, documents)
    quick.publish()
    with pytest.raises(SinkError, match="could not be published"):
        slow.publish()
    assert engine.sink.live() == (await engine.backend.refresh()).stamp == winner
