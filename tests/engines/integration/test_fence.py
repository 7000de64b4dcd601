"""A publisher that was overtaken fails, and what overtook it stays live, in both engines (G1)."""

from pathlib import Path

import pytest

from indexer.sinks.failures import SinkError
from tests.engines.conftest import Engine
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
