"""The two real engines, each with a sink and a backend on an index of its own."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.protocol import Sink
from service.settings.service import Settings
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.engine import Engine as PlannedEngine
from shop_directory.search.opensearch.engine import OpenSearchEngine
from shop_directory.search.opensearch.folder import FolderLocation
from shop_directory.search.planned_backend import PlannedBackend
from shop_directory.search.protocol import SearchBackend
from tests.support.emptying import unused_prefix


@dataclass(frozen=True, slots=True)
class OpenSearchLocation:
    """A part of a real OpenSearch that only one test uses: its URL, and what all index names begin with."""

    url: str
    prefix: str


@pytest.fixture
def opensearch_location(opensearch_url: str) -> Iterator[OpenSearchLocation]:
    """An unused prefix in the session's OpenSearch; its indices are deleted at the end."""
    with unused_prefix(opensearch_url) as prefix:
        yield OpenSearchLocation(opensearch_url, prefix)


@pytest.fixture
def client(opensearch_url: str) -> Iterator[OpenSearch]:
    with OpenSearch([opensearch_url], timeout=30) as opened:
        yield opened


@dataclass(frozen=True, slots=True)
class Engine:
    """Both sides of one engine; the backend asks the reader, which tests use that name the generation themselves."""

    sink: Sink
    settings: Settings
    backend: SearchBackend
    reader: PlannedEngine


@pytest.fixture
async def opensearch_engine(opensearch_location: OpenSearchLocation, tmp_path: Path) -> AsyncIterator[Engine]:
    url, prefix = opensearch_location.url, opensearch_location.prefix
    sink = OpenSearchSink([url], prefix, letters=tmp_path / "dead-letters.ndjson")
    settings = Settings(engine="opensearch", opensearch_urls=(url,), index_prefix=prefix, request_timeout=10.0)
    reader = OpenSearchEngine([url], prefix, timeout=10.0, location=FolderLocation(tmp_path / "fetched"))
    backend = PlannedBackend(reader)
    yield Engine(sink, settings, backend, reader)
    await backend.close()
    sink.close()


@pytest.fixture
async def embedded_engine(tmp_path: Path) -> AsyncIterator[Engine]:
    reader = TantivyEngine(tmp_path / "index")
    backend = PlannedBackend(reader)
    settings = Settings(data_dir=tmp_path / "index", request_timeout=10.0)
    yield Engine(EmbeddedSink(tmp_path / "index"), settings, backend, reader)
    await backend.close()


@pytest.fixture(params=["embedded_engine", pytest.param("opensearch_engine", marks=pytest.mark.opensearch)])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found
