"""The search backends with a catalogue that the indexer built, and the typeahead alone over segments cut at random."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Protocol

from index_mappings.documents import ShopDocument
from index_mappings.generations import Stamp
from service.search.embedded.engine import EmbeddedBackend
from service.search.plan import NO_FILTERS
from service.search.protocol import FindQuery, SearchBackend, SuggestedShop, SuggestQuery, SuggestResult
from service.search.query_words import FindForms
from service.search.shop_search import planned, possible_names
from tests.engines.typeahead.segmented import cut_at_random
from tests.support.catalogues import Lines, write_catalogue_directory
from tests.support.reference.backend import ReferenceBackend
from tests.support.worlds import embedded_world, in_memory, opensearch_world, reference_world

Opened = AbstractAsyncContextManager[SearchBackend]


class Opener(Protocol):
    def __call__(self, shops: Lines, directory: Path, **others: Lines) -> Opened:
        """Build the catalogue in the directory and open what was built."""


CATEGORY_CAP = 3


@asynccontextmanager
async def reference(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
    yield reference_world(directory, shops, CATEGORY_CAP, **others)


class _BySegments(ReferenceBackend):
    def __init__(self, stamp: Stamp, documents: Mapping[str, Sequence[Any]], directory: Path) -> None:
        super().__init__(stamp, documents, CATEGORY_CAP)
        segments = cut_at_random(directory, self._shops, Random(len(self._shops)))  # noqa: S311 - the same each time
        segments.categories = self._table.entries
        self._typeahead = segments.opened()

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        return self._typeahead.suggest(query)

    def _did_you_mean(
        self,
        query: FindQuery,
        whole: FindForms,
        missing: Sequence[str],
        kept: FindForms,
        matching: Sequence[ShopDocument],
    ) -> tuple[SuggestedShop, ...]:
        if matching and not kept.forms.texts:
            return ()
        prefixes = kept.forms.texts if matching else None
        asked = possible_names(query.text, planned(whole, self._table, CATEGORY_CAP, NO_FILTERS), missing)
        found = self._typeahead.near(asked, query.countries, query.categories, len(self._shops) + 1, prefixes)
        passing = {shop.id for shop in self._passing(query) if shop not in matching}
        return tuple(shop for shop in found if shop.id in passing)[:3]


@asynccontextmanager
async def kernel(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
    """The reference, but for what segments answer, some of whose shops are stale copies that are marked as removed."""
    sink = in_memory(directory, shops, **others)
    assert sink.stamp is not None
    yield _BySegments(sink.stamp, sink.documents, directory)


@asynccontextmanager
async def embedded(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
    backend = EmbeddedBackend(embedded_world(directory, shops, **others), CATEGORY_CAP)
    try:
        yield backend
    finally:
        await backend.close()


def opensearch_at(url: str) -> Opener:
    @asynccontextmanager
    async def opensearch(shops: Lines, directory: Path, **others: Lines) -> AsyncIterator[SearchBackend]:
        catalogue = write_catalogue_directory(directory / "catalogue", shops=shops, **others)
        async with opensearch_world(url, catalogue, CATEGORY_CAP) as backend:
            yield backend

    return opensearch
