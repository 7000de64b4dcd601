"""The world in each of the two real engines, without a reader."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.protocol import Sink
from tests.engines.conftest import OpenSearchLocation
from tests.engines.reconcile.world import World, built


@pytest.fixture
def embedded_sink(tmp_path: Path) -> Sink:
    return EmbeddedSink(tmp_path / "index")


@pytest.fixture
def opensearch_sink(opensearch_location: OpenSearchLocation) -> Iterator[Sink]:
    sink = OpenSearchSink([opensearch_location.url], opensearch_location.prefix)
    yield sink
    sink.close()


@pytest.fixture(params=["embedded_sink", pytest.param("opensearch_sink", marks=pytest.mark.opensearch)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Built, on each engine in its turn."""
    sink: Sink = request.getfixturevalue(request.param)
    return built(sink, tmp_path)
