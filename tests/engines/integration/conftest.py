"""The two real engines, each with a sink and a backend on an index of its own, and the real databases."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.protocol import Sink
from service.search.embedded.engine import TantivyEngine
from service.search.engine import Engine as PlannedEngine
from service.search.opensearch.engine import OpenSearchEngine
from service.search.planned_backend import PlannedBackend
from service.search.protocol import SearchBackend
from service.search.typeahead.folder import FolderLocation
from tests.engines.conftest import OpenSearchLocation
from tests.support.sql_databases import Database, postgres_database_of, sqlite_file


@dataclass(frozen=True, slots=True)
class Engine:
    """Both sides of one engine.

    Attributes:
        sink: where generations are written.
        backend: answers from what is live.
        reader: what the backend asks, for tests that name the generation themselves.
    """

    sink: Sink
    backend: SearchBackend
    reader: PlannedEngine


@pytest.fixture
async def opensearch_engine(opensearch_location: OpenSearchLocation, tmp_path: Path) -> AsyncIterator[Engine]:
    """OpenSearch with nothing published."""
    letters = tmp_path / "dead-letters.ndjson"
    sink = OpenSearchSink([opensearch_location.url], opensearch_location.prefix, letters=letters)
    folder = FolderLocation(tmp_path / "fetched")
    reader = OpenSearchEngine([opensearch_location.url], opensearch_location.prefix, timeout=10.0, location=folder)
    backend = PlannedBackend(reader)
    yield Engine(sink, backend, reader)
    await backend.close()
    sink.close()


@pytest.fixture
async def embedded_engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """The embedded engine with nothing published."""
    reader = TantivyEngine(tmp_path / "index")
    backend = PlannedBackend(reader)
    yield Engine(EmbeddedSink(tmp_path / "index"), backend, reader)
    await backend.close()


@pytest.fixture(params=["embedded_engine", pytest.param("opensearch_engine", marks=pytest.mark.opensearch)])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in its turn."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    """An SQLite file."""
    with sqlite_file(tmp_path) as database:
        yield database


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    """A database of the session's PostgreSQL."""
    with postgres_database_of(postgres_url) as database:
        yield database


@pytest.fixture(params=["sqlite_database", pytest.param("postgres_database", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> Database:
    """Each database in its turn."""
    found: Database = request.getfixturevalue(request.param)
    return found
