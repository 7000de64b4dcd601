"""The search backends, the embedded one both ways it answers key presses: with a catalogue that the indexer built."""

import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.memory import MemorySink
from indexer.sinks.opensearch import OpenSearchSink
from service.search.embedded import EmbeddedBackend
from service.search.embedded_stamps import read_live
from service.search.opensearch import OpenSearchBackend
from service.search.protocol import SearchBackend
from service.search.reference import ReferenceBackend
from tests.catalogues import Lines, build_into, write_catalogue_directory
from tests.embedded_engines import by_index, by_texts, engine_of
from tests.emptying import empty_place

Opened = AbstractAsyncContextManager[SearchBackend]


class Opener(Protocol):
    """Opens a backend on a catalogue: shops, and the other types by name."""

    def __call__(self, shops: Lines, directory: Path, **others: Lines) -> Opened:
        """Build the catalogue in the directory and open what was built."""


CATEGORY_CAP = 3


@asynccontextmanager
async def reference(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
    """The plain reference over the documents that the indexer projected."""
    sink = MemorySink()
    build_into(sink, write_catalogue_directory(directory / "catalogue", shops=shops, **others))
    assert sink.stamp is not None
    yield ReferenceBackend(sink.stamp, sink.documents, CATEGORY_CAP)


@asynccontextmanager
async def embedded(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
    """The embedded engine in a directory of its own, with the texts for key presses open."""
    async with _embedded(shops, directory, **others) as backend:
        by_texts(engine_of(backend), read_live(directory / "index"))
        yield backend


@asynccontextmanager
async def embedded_index_only(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
    """The same as it is until they are open, and where there are none."""
    async with _embedded(shops, directory, **others) as backend:
        by_index(engine_of(backend), directory / "index")
        yield backend


@asynccontextmanager
async def _embedded(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[EmbeddedBackend]:
    build_into(
        EmbeddedSink(directory / "index"), write_catalogue_directory(directory / "catalogue", shops=shops, **others)
    )
    backend = EmbeddedBackend(directory / "index", CATEGORY_CAP)
    try:
        yield backend
    finally:
        await backend.close()


def opensearch_at(url: str) -> Opener:
    """A real OpenSearch, under an index prefix that nobody else uses."""

    @asynccontextmanager
    async def opensearch(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
        prefix = f"test-{secrets.token_hex(6)}"
        sink = OpenSearchSink([url], prefix)
        backend = OpenSearchBackend([url], prefix, CATEGORY_CAP, timeout=10.0)
        try:
            build_into(sink, write_catalogue_directory(directory / "catalogue", shops=shops, **others))
            yield backend
        finally:
            await backend.close()
            sink.close()
            empty_place([url], prefix)

    return opensearch
