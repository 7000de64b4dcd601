"""The three search backends, each with a catalogue that the real indexer built into it."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.memory import MemorySink
from indexer.sinks.opensearch import OpenSearchSink
from service.search.embedded import EmbeddedBackend
from service.search.opensearch import OpenSearchBackend
from service.search.protocol import SearchBackend
from service.search.reference import ReferenceBackend
from tests.catalogues import build_into, write_catalogue

Shops = Iterable[Mapping[str, Any]]
Opened = AbstractAsyncContextManager[SearchBackend]
Opener = Callable[[Shops, Path], Opened]

CATEGORY_CAP = 3


@asynccontextmanager
async def reference(shops: Shops, directory: Path) -> AsyncIterator[SearchBackend]:
    """The plain reference over the documents that the indexer projected."""
    sink = MemorySink()
    build_into(sink, write_catalogue(directory / "shops.ndjson", shops))
    assert sink.stamp is not None
    yield ReferenceBackend(sink.stamp, sink.documents["shops"], sink.documents["categories"], CATEGORY_CAP)


@asynccontextmanager
async def embedded(shops: Shops, directory: Path) -> AsyncIterator[SearchBackend]:
    """The embedded engine in a directory of its own."""
    build_into(EmbeddedSink(directory / "index"), write_catalogue(directory / "shops.ndjson", shops))
    backend = EmbeddedBackend(directory / "index", CATEGORY_CAP)
    try:
        yield backend
    finally:
        await backend.close()


def opensearch_at(url: str) -> Opener:
    """A real OpenSearch, under an index prefix that nobody else uses."""

    @asynccontextmanager
    async def opensearch(shops: Shops, directory: Path) -> AsyncIterator[SearchBackend]:
        prefix = f"test-{secrets.token_hex(6)}"
        sink = OpenSearchSink([url], prefix)
        backend = OpenSearchBackend([url], prefix, CATEGORY_CAP, timeout=10.0)
        try:
            build_into(sink, write_catalogue(directory / "shops.ndjson", shops))
            yield backend
        finally:
            await backend.close()
            sink.prune(keep=())
            sink.close()

    return opensearch
