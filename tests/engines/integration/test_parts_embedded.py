"""A part is found by its runs of characters exactly where it occurs, and in no two texts together (M3 d)."""

from dataclasses import replace
from typing import Final

import pytest
import tantivy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from index_mappings.documents import ShopDocument
from index_mappings.ngrams import is_part_evidence, short_parts
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.generation import finished, schema
from service.search.embedded.queries import OpenIndex, query_of
from service.search.plan import Infix
from tests.support.catalogues import shop

pytestmark = pytest.mark.rule("M3")

# Few characters, and longer texts that repeat themselves, so that parts occur often, and nearly.
_TEXTS: Final = st.one_of(
    st.text("ab緑", min_size=1, max_size=9),
    st.builds(
        lambda text, times, end: text * times + end,
        st.text("ab緑", min_size=1, max_size=4),
        st.integers(3, 50),
        st.text("ab", max_size=2),
    ),
)


def test_a_short_part_is_evidence_only_in_han_kana_or_hangul() -> None:
    assert short_parts(["ab", "a緑の"]) == ["a緑", "の", "緑", "緑の"]


@settings(max_examples=30, deadline=None)
@example(shops=[["zabcd", "bcdex"]], part="abcde", cut=0)
@example(shops=[["abcdefgh", "ghijklmn"]], part="abcdefghijklmn", cut=0)
@example(shops=[["a" * 70, "a" * 68]], part="a" * 100, cut=0)
@given(
    shops=st.lists(st.lists(_TEXTS, min_size=1, max_size=3), min_size=1, max_size=12),
    part=_TEXTS,
    cut=st.integers(0, 9),
)
def test_the_engine_finds_exactly_the_shops_with_the_part(shops: list[list[str]], part: str, cut: int) -> None:
    # A text of a shop, cut at both ends, is a part more often than any other one.
    part = shops[0][0][cut:-cut] if cut else part
    if not is_part_evidence(part):
        return
    index = tantivy.Index(schema("shops"))
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    documents = [_named(number, texts) for number, texts in enumerate(shops)]
    for document in documents:
        writer.add_document(finished("shops", document, lambda _: 0))
    writer.commit()
    index.reload()
    opened = OpenIndex("shops", "rank", index.schema, index.searcher())
    query = query_of(opened, Infix("infixes", part))
    found = () if query is None else opened.searcher.search(query, limit=50).hits
    expected = {number for number, texts in enumerate(shops) if any(part in text for text in texts)}
    assert {address.doc for _, address in found} == expected


def _named(number: int, infixes: list[str]) -> ShopDocument:
    line = shop("Any", f"d{number}.internal", id=f"s{number}")
    return replace(project_shop(ShopRecord.model_validate(line)), infixes=tuple(infixes))
