"""Both real engines, each with an empty index."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.protocol import Sink
from service.settings.service import Settings
from tests.engines.conftest import OpenSearchLocation


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine.

    Attributes:
        sink: where generations are written.
        settings: of a service that reads them.
    """

    sink: Sink
    settings: Settings


@pytest.fixture
def embedded(tmp_path: Path) -> Engine:
    """The embedded engine."""
    return Engine(EmbeddedSink(tmp_path / "index"), Settings(data_dir=tmp_path / "index", request_timeout=10.0))


@pytest.fixture
def opensearch(opensearch_location: OpenSearchLocation, tmp_path: Path) -> Iterator[Engine]:
    """OpenSearch."""
    url, prefix = opensearch_location.url, opensearch_location.prefix
    sink = OpenSearchSink([url], prefix, letters=tmp_path / "states" / "dead-letters.ndjson")
    settings = Settings(engine="opensearch", opensearch_urls=(url,), index_prefix=prefix, request_timeout=10.0)
    yield Engine(sink, settings)
    sink.close()


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in its turn."""
    found: Engine = request.getfixturevalue(request.param)
    return found
