"""The documents: the stored part of one comes back as it went in, and each engine is given finished terms."""

import json
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final

import pytest

from index_mappings.documents import (
    ANY_MARKET,
    DOCUMENTS,
    Category,
    CategoryDocument,
    CategoryEntry,
    Form,
    Role,
    Shop,
    ShopDocument,
    category_from_stored,
    declared_fields,
    shop_from_stored,
    stored_part,
)
from index_mappings.embedded import column_values, columns
from index_mappings.opensearch import mapping, wire_document

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
    "full_short": ["a", "ab", "ab.", "ab.i", "ab.inter"],
    "keys_short": ["a", "ab", "abc", "abcd"],
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
    assert values | several == TERMS | {"infixes_runs": ["abc"]}


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
    assert list(column_values(kind, document)) == [column.name for column in columns(kind)]


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
def test_a_field_without_a_role_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Careless:
        id: Annotated[str, Role.EXACT]
        secret: str

    with pytest.raises(TypeError, match="field secret of a document declares no role"):
        declared_fields(Careless)
