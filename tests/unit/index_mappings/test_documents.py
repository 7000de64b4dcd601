"""The documents: the stored part of one comes back as it went in, and each engine is given finished terms."""

import json
from dataclasses import fields, replace
from typing import Any, Final

import pytest

from index_mappings.documents import (
    ANY_MARKET,
    DOCUMENTS,
    Category,
    CategoryDocument,
    CategoryEntry,
    Shop,
    ShopDocument,
    category_from_stored,
    shop_from_stored,
    stored_part,
)
from index_mappings.embedded import BAND_COLUMN, STORED_COLUMN, Column, column_values, columns
from index_mappings.opensearch import mapping, wire_document
from index_mappings.roles import Form, declared_fields, engine_fields

SHOP = ShopDocument(
    id="s1",
    refs=("s1", "ab.internal"),
    rank="ff-s1",
    name="Äb",
    aliases=("Ab & Co",),
    domain="ab.internal",
    categories=("books", "garden"),
    primary="books",
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
    full=("ab", "ab.internal"),
    keys=("ab", "abcd"),
    words=("ab",),
    infixes=("abc", "緑b"),
    labels=("internal",),
    dotted=(),
    rests=(),
)
# What both engines are given of it.
TERMS: Final[dict[str, Any]] = {
    "id": "s1",
    "refs": ["s1", "ab.internal"],
    "rank": "ff-s1",
    "categories": ["books", "garden"],
    "primary": "books",
    "markets": ["*"],
    "registrable": "ab.internal",
    "main_label": "ab",
    "full": ["ab", "ab.internal"],
    "keys": ["ab", "abcd"],
    "words": ["ab"],
    "labels": ["internal"],
    "full_short": ["a", "ab", "ab."],
    "keys_short": ["a", "ab", "abc"],
    "words_short": ["a", "ab"],
    # Of fewer than three characters, only a part with a Han, kana or Hangul character counts.
    "infixes_short": ["緑", "緑b"],
}
CATEGORY = CategoryDocument(
    id="books", rank="ff-books", name="Books", count=3, words=("books", "buch"), alone=("books",), whole=("books",)
)


@pytest.mark.rule("X4")
def test_the_cluster_is_given_finished_terms_of_a_shop_and_nothing_else() -> None:
    values = wire_document(SHOP)
    several = {name: sorted(value) for name, value in values.items() if name.endswith("_short")}
    assert values | several == TERMS | {
        "name": "Äb",
        "aliases": ["Ab & Co"],
        "domain": "ab.internal",
        "countries": [],
        "popularity": 0.25,
        "offers": [{"offer_id": "o1"}],
        "offers_total": 4,
        "redirects": [],
        "infixes_suffixes": ["abc"],
    }


@pytest.mark.rule("X4")
def test_the_embedded_engine_is_given_finished_terms_of_a_shop_and_nothing_else() -> None:
    values = column_values("shops", SHOP)
    several = {name: sorted(value) for name, value in values.items() if name.endswith("_short")}
    assert values | several == TERMS | {"infixes_runs": ["abc", " "]}


def test_the_cluster_is_given_a_category() -> None:
    assert wire_document(CATEGORY) == {
        "id": "books",
        "rank": "ff-books",
        "name": "Books",
        "count": 3,
        "words": ["books", "buch"],
        "alone": ["books"],
        "whole": ["books"],
    }


@pytest.mark.rule("X4")
def test_an_ending_is_never_cut() -> None:
    suffixes = wire_document(replace(SHOP, infixes=("緑" * 300,)))["infixes_suffixes"]
    assert suffixes == ["緑" * length for length in range(3, 301)]


@pytest.mark.rule("X4")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_is_written_has_exactly_the_fields_that_are_declared(kind: str) -> None:
    samples = {Form.TERMS: "x", Form.WHOLE: 1, Form.NUMBER: 1.0, Form.CARRIED: {}}
    document = DOCUMENTS[kind](**{field.name: samples[field.form] for field in declared_fields(DOCUMENTS[kind])})
    assert list(wire_document(document)) == list(mapping(kind)["properties"])
    assert [*column_values(kind, document), BAND_COLUMN] == [column.name for column in columns(kind)]


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
    assert category_from_stored(stored) == CategoryEntry.of(CATEGORY)
    assert CategoryEntry.of(CATEGORY).shown() == Category("books", "Books", 3)


@pytest.mark.rule("X4")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_text_of_every_index_is_a_keyword_and_an_undeclared_field_is_refused(kind: str) -> None:
    mapped = mapping(kind)
    others = {field.name for field in engine_fields(DOCUMENTS[kind]) if field.form is not Form.TERMS}
    types = {name: value["type"] for name, value in mapped["properties"].items()}
    assert mapped["dynamic"] == "strict"
    assert {type_ for name, type_ in types.items() if name not in others} == {"keyword"}
    assert {types[name] for name in others} <= {"long", "double", "object"}


def test_a_structure_is_carried_along_and_a_bound_can_be_compared() -> None:
    properties = mapping("coupons")["properties"]
    assert properties["view"] == {"type": "object", "enabled": False}
    assert properties["valid_until_us"] == {"type": "long", "doc_values": False}


@pytest.mark.rule("X4")
def test_the_embedded_engine_has_term_columns_and_one_blob() -> None:
    assert columns("categories") == (
        Column("id", sortable=True),
        Column("rank", sortable=True),
        Column(BAND_COLUMN, whole=True, sortable=True),
    )
    assert Column("valid_until_us", whole=True) in columns("coupons")
    for kind in DOCUMENTS:
        assert STORED_COLUMN not in {column.name for column in columns(kind)}
        assert "view" not in {column.name for column in columns(kind)}
