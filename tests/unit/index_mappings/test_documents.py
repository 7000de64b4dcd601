"""The documents: the stored part of one comes back as the shop or the category that went in."""

import json
from dataclasses import fields

import pytest

from index_mappings.documents import (
    ANY_MARKET,
    DOCUMENTS,
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
from index_mappings.roles import Form, engine_fields, engine_values

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
    offers=({"offer_id": "o1"},),
    offers_total=4,
    redirects=(),
    registrable="ab.internal",
    main_label="ab",
    names=("ab", "ab.internal"),
    leading=("ab",),
    begun=(),
    full=("ab", "ab.internal"),
    keys=("ab", "abcd"),
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
        "offers": [{"offer_id": "o1"}],
        "offers_total": 4,
        "redirects": [],
        "registrable": "ab.internal",
        "main_label": "ab",
        "names": ["ab", "ab.internal"],
        "leading_edges": ["a", "ab"],
        "leading_long": [],
        "begun": [],
        "full": ["ab", "ab.internal"],
        "full_edges": [
            "a", "ab", "ab.", "ab.i", "ab.in", "ab.int", "ab.inte", "ab.inter", "ab.intern", "ab.interna", "ab.internal"
        ],
        "full_long": [],
        "keys": ["ab", "abcd"],
        "keys_edges": ["a", "ab", "abc", "abcd"],
        "keys_long": [],
        "keys_lack_0": ["bcd"],
        "keys_lack_1": ["acd"],
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
        offers=({"offer_id": "o1"},),
        offers_total=4,
        redirects=(),
    )


def test_the_stored_part_of_a_category_survives_json() -> None:
    stored = json.loads(json.dumps(stored_part(CATEGORY)))
    assert category_from_stored(stored) == Category("books", "Books", 3)


@pytest.mark.rule("X4")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_text_of_every_index_is_a_keyword_and_an_undeclared_field_is_refused(kind: str) -> None:
    mapped = mapping(kind)
    terms = {field.name for field in engine_fields(DOCUMENTS[kind]) if field.form is Form.TERMS}
    types = {name: value["type"] for name, value in mapped["properties"].items()}
    assert mapped["dynamic"] == "strict"
    assert {types[name] for name in terms} == {"keyword"}
    assert {type_ for name, type_ in types.items() if name not in terms} <= {"long", "double", "object"}


def test_a_structure_is_carried_along_and_a_bound_can_be_compared() -> None:
    properties = mapping("coupons")["properties"]
    assert properties["view"] == {"type": "object", "enabled": False}
    assert properties["valid_until_us"] == {"type": "long", "doc_values": False}


@pytest.mark.rule("X4")
def test_the_embedded_engine_has_term_columns_and_one_blob() -> None:
    assert columns("categories") == (
        Column("id", whole=False, sortable=True),
        Column("rank", whole=False, sortable=True),
    )
    assert Column("valid_until_us", whole=True, sortable=False) in columns("coupons")
    for kind in DOCUMENTS:
        assert STORED_COLUMN not in {column.name for column in columns(kind)}
        assert "view" not in {column.name for column in columns(kind)}
