"""The documents: the stored part of one comes back as the shop or the category that went in."""

import json
from dataclasses import fields

import pytest

from index_mappings.documents import (
    ANY_MARKET,
    Category,
    CategoryDocument,
    Shop,
    ShopDocument,
    category_from_stored,
    shop_from_stored,
    stored_part,
)
from index_mappings.embedded import STORED_COLUMN, Column, columns
from index_mappings.opensearch import mapping
from index_mappings.roles import engine_fields, engine_values

SHOP = ShopDocument(
    id="s1",
    refs=("s1", "ab.internal"),
    rank="ff-s1",
    name="Äb",
    aliases=("Ab & Co",),
    domain="ab.internal",
    categories=("books", "garden"),
    countries=(),
    markets=(ANY_MARKET,),
    popularity=0.25,
    full=("ab", "ab.internal"),
    keys=("ab",),
    words=("ab",),
    infixes=("ab",),
)
CATEGORY = CategoryDocument(id="books", rank="ff-books", name="Books", count=3)


@pytest.mark.rule("X4")
def test_an_engine_is_given_finished_terms_of_a_shop_and_nothing_else() -> None:
    assert engine_values(SHOP) == {
        "id": "s1",
        "refs": ["s1", "ab.internal"],
        "rank": "ff-s1",
        "name": "Äb",
        "aliases": ["Ab & Co"],
        "domain": "ab.internal",
        "categories": ["books", "garden"],
        "countries": [],
        "markets": ["*"],
        "popularity": 0.25,
        "full": ["ab", "ab.internal"],
        "full_edges": [
            "a", "ab", "ab.", "ab.i", "ab.in", "ab.int", "ab.inte", "ab.inter", "ab.intern", "ab.interna", "ab.internal"
        ],
        "full_long": [],
        "keys_edges": ["a", "ab"],
        "keys_long": [],
        "words": ["ab"],
        "words_edges": ["a", "ab"],
        "words_long": [],
        "infixes_suffixes": ["ab", "b"],
    }  # fmt: skip


def test_an_engine_is_given_a_category() -> None:
    assert engine_values(CATEGORY) == {"id": "books", "rank": "ff-books", "name": "Books", "count": 3}


def test_the_stored_part_of_a_shop_survives_json_and_has_no_term_in_it() -> None:
    stored = json.loads(json.dumps(stored_part(SHOP)))
    assert list(stored) == [field.name for field in fields(Shop)]
    assert shop_from_stored(stored) == Shop(
        id="s1",
        name="Äb",
        aliases=("Ab & Co",),
        domain="ab.internal",
        categories=("books", "garden"),
        countries=(),
        popularity=0.25,
    )


def test_the_stored_part_of_a_category_survives_json() -> None:
    stored = json.loads(json.dumps(stored_part(CATEGORY)))
    assert category_from_stored(stored) == Category("books", "Books", 3)


@pytest.mark.rule("X4")
def test_every_text_of_every_index_is_a_keyword_and_an_undeclared_field_is_refused() -> None:
    for kind, document in (("shops", ShopDocument), ("categories", CategoryDocument)):
        mapped = mapping(kind)
        numbers = {field.name for field in engine_fields(document) if field.number}
        texts = {name: kind["type"] for name, kind in mapped["properties"].items() if name not in numbers}
        assert mapped["dynamic"] == "strict"
        assert set(texts.values()) == {"keyword"}


@pytest.mark.rule("X4")
def test_the_embedded_engine_has_term_columns_and_one_blob() -> None:
    assert columns("categories") == (Column("id", sortable=False), Column("rank", sortable=True))
    assert STORED_COLUMN not in {column.name for column in columns("shops")}
