"""A world of four shops, for tests that look at the transports; with quotas that are used up in a few calls."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.app import create_app
from service.limits.policy import QuotaClass
from shop_directory.search.opensearch.engine import OpenSearchBackend
from shop_directory.search.shop_search import CATEGORY_CAP
from tests.support.catalogues import Lines, build_into, shop, write_catalogue_directory
from tests.support.emptying import unused_prefix
from tests.support.memory_sink import MemorySink
from tests.support.reference.backend import ReferenceBackend
from tests.support.served import served, settings_in

BOOKS: Final = shop(
    "Harbour Lane Books",
    "harbour-lane-books.example",
    id="shop_books",
    categories=["books"],
    countries=["DE", "FR"],
    popularity=9.0,
    aliases=["HLB"],
)
KITCHEN: Final = shop(
    "Zoë’s Küche 厨房", "zoes-kueche.example", id="shop_kitchen", categories=["kitchen-ware", "books"], popularity=1.0
)
GARDEN: Final = shop("Moss & Fern", "bücher.example", id="shop_garden", categories=["garden"], countries=["WORLDWIDE"])
HIDDEN: Final = shop(
    "Quietly Hidden Goods",
    "quietly-hidden.example",
    id="shop_hidden",
    categories=["secrets"],
    visibility="under_review",
    popularity=99.0,
)
SHOPS: Final = (BOOKS, KITCHEN, GARDEN, HIDDEN)


def in_memory(directory: Path, shops: Lines = SHOPS, **others: Lines) -> MemorySink:
    """What the indexer makes of a catalogue."""
    sink = MemorySink()
    build_into(sink, write_catalogue_directory(directory / "catalogue", shops=shops, **others))
    return sink


def reference_world(
    directory: Path, shops: Lines = SHOPS, category_cap: int = CATEGORY_CAP, **others: Lines
) -> ReferenceBackend:
    sink = in_memory(directory, shops, **others)
    assert sink.stamp is not None
    return ReferenceBackend(sink.stamp, sink.documents, category_cap)


def embedded_world(directory: Path, shops: Lines = SHOPS, **others: Lines) -> Path:
    path = write_catalogue_directory(directory / "catalogue", shops=shops, **others)
    build_into(EmbeddedSink(directory / "index"), path)
    return directory / "index"


@asynccontextmanager
async def opensearch_world(
    url: str, catalogue: Path, category_cap: int = CATEGORY_CAP
) -> AsyncIterator[OpenSearchBackend]:
    """A backend of a catalogue that is built into an OpenSearch, where nothing of it is left."""
    with unused_prefix(url) as prefix:
        sink = OpenSearchSink([url], prefix)
        backend = OpenSearchBackend([url], prefix, category_cap, timeout=10.0)
        try:
            build_into(sink, catalogue)
            yield backend
        finally:
            await backend.close()
            sink.close()


TWO: Final = QuotaClass(reads=2, suggest=2, reports=0)
MORE: Final = QuotaClass(reads=5, suggest=6, reports=2)


@contextmanager
def limited(folder: Path, **given: Any) -> Iterator[str]:  # noqa: ANN401 - any setting
    """The service with an anonymous quota of two and five for a token; `given` are more of its settings."""
    quotas = {"quota_anonymous": TWO, "quota_classes": {"default": MORE}}
    settings = settings_in(folder, data_dir=embedded_world(folder / "world"), **{**quotas, **given})
    with served(create_app(settings)) as base:
        yield base
