"""The embedded engine orders by rank, exactly, after any builds and changes, however they fall into bands (M1)."""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
import tantivy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index_mappings.documents import ShopDocument
from index_mappings.embedded import index_directory
from index_mappings.tiers import rank_key
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.sink import EmbeddedSink
from service.search.embedded.engine import TantivyEngine
from service.search.embedded.order import DocumentCache
from service.search.embedded.queries import OpenIndex
from service.search.engine import SearchRequest
from service.search.plan import MATCH_ALL, Clause, Exact, Plan, Prefix
from tests.engines.integration.generations import Documents, publish
from tests.support.catalogues import shop

pytestmark = pytest.mark.rule("M1", "M2")

POPULARITIES: Final = (None, 0.0, 0.25, 0.5, 7.0)
# Every shop begins with the first word's letter; each second has the second word.
EVEN: Final = Exact("words", ("even",))
BEGINS: Final = Prefix("keys", "s")


def _document(number: int, popularity: float | None) -> ShopDocument:
    name = f"Shop {'even' if number % 2 == 0 else 'odd'}"
    line = shop(name, f"d{number}.internal", id=f"s{number:04d}", popularity=popularity)
    return project_shop(ShopRecord.model_validate(line))


def _in_order(documents: Iterable[ShopDocument]) -> list[ShopDocument]:
    return sorted(documents, key=lambda document: rank_key(document.popularity, document.id))


def test_searches_in_several_threads_read_documents_while_each_clears_the_cache_of_the_others(tmp_path: Path) -> None:
    built = [_document(number, None) for number in range(40)]
    world = _World(tmp_path, built)
    directory = index_directory(tmp_path, world.stamp.generation, "shops")
    opened = tantivy.Index.open(str(directory))
    searcher = opened.searcher()
    cached = DocumentCache(OpenIndex("shops", "rank", opened.schema, searcher), size=20)
    addresses = [address for _, address in searcher.search(tantivy.Query.all_query(), limit=40).hits]
    right = {rank_key(None, document.id): document.id for document in built}

    def read(_: int) -> set[tuple[str, str]]:
        found = (cached.read(at, address) for _ in range(5_000) for at, address in enumerate(addresses))
        return {(rank, stored["id"]) for rank, stored in found}

    before = sys.getswitchinterval()
    # Threads take turns as often as they can.
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(read, range(4))) == [set(right.items())] * 4
    finally:
        sys.setswitchinterval(before)


class _World:
    """A generation with tiny bands, and the shops that must be in it."""

    def __init__(self, root: Path, built: Sequence[ShopDocument]) -> None:
        self._root = root
        self._sink = EmbeddedSink(root, band_width=2)
        self.stamp = publish(self._sink, Documents({"shops": tuple(built), **_NO_OTHERS}))
        self.shops = {document.id: document for document in built}

    def change(self, documents: Sequence[ShopDocument], removed: Sequence[str]) -> None:
        editor = self._sink.edit(self.stamp.generation)
        editor.write("shops", documents, removed)
        editor.show()
        editor.commit(replace(self.stamp, sequence=self.stamp.sequence + 1))
        self.stamp = editor.stamp
        editor.close()
        self.shops = {key: document for key, document in self.shops.items() if key not in removed}
        self.shops.update({document.id: document for document in documents})

    def found(self, tiers: Sequence[Clause], offset: int, limit: int) -> list[str]:
        plan = Plan("shops", tuple((len(tiers) - place, clause) for place, clause in enumerate(tiers)))

        async def ask() -> list[str]:
            engine = TantivyEngine(self._root)
            (page,) = await engine.search(self.stamp, (SearchRequest(plan, limit, offset),))
            await engine.close()
            return [hit.stored["id"] for hit in page.hits]

        return asyncio.run(ask())

    def expected(self, *, even_first: bool) -> list[str]:
        ordered = _in_order(self.shops.values())
        if even_first:
            ordered.sort(key=lambda document: "even" not in document.words)
        return [document.id for document in ordered]


_NO_OTHERS: Final = dict.fromkeys(("categories", "coupons", "offers", "facts"), ())
_documents = st.builds(_document, st.integers(0, 60), st.sampled_from(POPULARITIES))
_several = st.lists(_documents, max_size=25, unique_by=lambda document: document.id)
_changes = st.tuples(_several, st.lists(st.integers(0, 60).map(lambda number: f"s{number:04d}"), max_size=5))


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    built=_several,
    changes=st.lists(_changes, max_size=3),
    in_order=st.booleans(),
    offset=st.integers(0, 30),
    limit=st.integers(1, 30),
)
def test_after_any_builds_and_changes_the_order_is_that_of_the_ranks(
    built: list[ShopDocument],
    changes: list[tuple[list[ShopDocument], list[str]]],
    in_order: bool,  # noqa: FBT001 - drawn
    offset: int,
    limit: int,
) -> None:
    with TemporaryDirectory() as directory:
        world = _World(Path(directory), _in_order(built) if in_order else built)
        for documents, removed in changes:
            taken = {document.id for document in documents}
            world.change(documents, [shop_id for shop_id in removed if shop_id not in taken])
        for tiers in ((MATCH_ALL,), (BEGINS,), (EVEN, BEGINS), (EVEN, BEGINS, MATCH_ALL)):
            expected = world.expected(even_first=len(tiers) > 1)
            assert world.found(tiers, offset, limit) == expected[offset : offset + limit]
            assert world.found(tiers, 0, limit) == expected[:limit]


@pytest.mark.parametrize("many", [100, 700])
def test_very_many_shops_that_come_into_one_band_are_in_order(tmp_path: Path, many: int) -> None:
    first = [_document(number, 0.5) for number in (0, 9_000, 9_001, 9_002, 9_003)]
    world = _World(tmp_path, first)
    world.change([_document(number, 0.5) for number in reversed(range(1, many))], [])
    for tiers in ((BEGINS,), (EVEN, BEGINS)):
        expected = world.expected(even_first=len(tiers) > 1)
        for offset, limit in ((0, 8), (0, many + 5), (many // 2, 20), (many - 2, 20)):
            assert world.found(tiers, offset, limit) == expected[offset : offset + limit]
