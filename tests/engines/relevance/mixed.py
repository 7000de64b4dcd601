"""The development shops mixed into invented ones: how well the embedded engine answers there (M9.quality)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.typeahead.corpus import write_corpus
from bench.typeahead.quality import QualityScores, judged_later
from indexer.sinks.embedded.sink import EmbeddedSink
from service.search.embedded.engine import EmbeddedBackend
from service.search.protocol import SearchBackend, SuggestQuery
from tests.support.catalogues import build_into


@asynccontextmanager
async def mixed_engine(data: Path, directory: Path, invented: int) -> AsyncIterator[SearchBackend]:
    """The mixed corpus in the embedded engine.

    Args:
        data: the folder of the development data.
        directory: an empty one for the corpus and the index.
        invented: how many invented shops.
    """
    build_into(EmbeddedSink(directory / "index"), write_corpus(directory / "mixed.ndjson", data, invented))
    backend = EmbeddedBackend(directory / "index")
    try:
        yield backend
    finally:
        await backend.close()


async def measure_mixed(backend: SearchBackend, data: Path) -> QualityScores:
    """Ask everything that `bench.typeahead.quality` asks."""
    snapshot = await backend.snapshot()

    async def ask(q: str, country: str | None, limit: int) -> list[str]:
        suggested = snapshot.suggest(SuggestQuery(q, country, limit))
        return [found.shop.id for found in suggested.shops]

    return await judged_later(ask, data)
