"""A publisher that was overtaken fails, and what overtook it stays live, in both engines (G1)."""

from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP, alias_name, index_name, previous_alias
from indexer.sinks.failures import SinkError
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.rules.backends.asking import find, names
from tests.support.catalogues import shop


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    """One shop."""
    return projected([shop("Lamp")], tmp_path)


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


@pytest.mark.opensearch
@pytest.mark.rule("G1.fence")
async def test_an_overtaken_publisher_moves_no_alias(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, documents: Documents
) -> None:
    prefix = opensearch_location.prefix
    before: set[tuple[str, str]] = set()
    for _ in range(2):
        _, slow = sealed(opensearch_engine.sink, documents)
        winner, quick = sealed(opensearch_engine.sink, documents)
        quick.publish()
        with pytest.raises(SinkError, match="could not be published"):
            slow.publish()
        with OpenSearch([opensearch_location.url]) as client:
            listed = client.cat.aliases(name=f"{prefix}-*", params={"format": "json"})
        assert {(row["alias"], row["index"]) for row in listed} == {
            *((alias_name(prefix, kind), index_name(prefix, kind, winner.generation)) for kind in (*DOCUMENTS, STAMP)),
            *before,
        }
        before = {(previous_alias(prefix), index_name(prefix, STAMP, winner.generation))}
