"""The contract to the letter: mappings, columns, folded examples, query bodies, names of countries."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from babel import Locale, UnknownLocaleError
from babel.languages import get_official_languages

import index_mappings.countries
from index_mappings.countries import COUNTRY_CODES, country_names
from index_mappings.documents import DOCUMENTS, SCHEMA_VERSION, Form, declared_fields
from index_mappings.embedded import BAND_COLUMN, column_values, columns
from index_mappings.forms import query_forms, shop_forms
from index_mappings.generations import STAMP
from index_mappings.opensearch import mapping, settings, wire_document
from index_mappings.table_words import LANGUAGES
from index_mappings.text import fold, words_of
from index_mappings.tiers import COUNTRY_RUN, rank_key
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from shop_directory.search.engine import Facet, SearchRequest
from shop_directory.search.opensearch.engine import scan_body, search_body
from shop_directory.search.plan import (
    FACET_FIELDS,
    MATCH_ALL,
    NO_FILTERS,
    Filters,
    Plan,
    Word,
    find_plan,
    word_evidence,
)
from shop_directory.search.protocol import CouponQuery, Position
from shop_directory.search.shop_details import coupon_plans, withheld_reasons
from shop_directory.typeahead.segment import ARRAYS
from tests.golden.golden import DIRECTORY, assert_golden
from tests.support.catalogues import shop as line_of

KINDS: Final = (*DOCUMENTS, STAMP)
REMINDER: Final = "A generation built before the change would answer wrongly: raise SCHEMA_VERSION as well."
TEXTS: Final = (
    "Marks & Spencer", "McDonald's", "Straße", "Œuvre Øre", "İstanbul", "パン屋", "ร้านดาว", "दीपक", "한빛", "Ёлка",
    "متجر الياسمين", "???", "½ Ⅳ ﬁne", "co\u00adop", "K+K", "みどり", "쿠팡", "값", "کتاب مؤسسة", "❤\ufe0f", "שָׁלוֹם",
    "Hitfox™ Games", "Café℠", "無印良品",
)  # fmt: skip
SHOPS: Final = (
    ("Marks & Spencer", ("M&S",), "marksandspencer.com"),
    ("Müller+Söhne", (), "xn--mller-kva.co.uk"),
    ("緑の店", (), "midori-mise.myshopify.com"),
    ("Солнце", ("Sonne",), "shop.solntse.internal"),
    ("???", (), "q.internal"),
    ("The Smörgås House", ("L'Or",), "smorgas.internal"),
    ("コーヒーしまむら", ("커피",), "coffee.internal"),
    ("Hitfox™ Games", ("Gämes℠",), "hitfox.internal"),
    ("淘寶網", (), "taobao.internal"),
)


_LONG: Final = project_shop(ShopRecord.model_validate(line_of("Ab緑 Cd" * 50, "long.internal")))


def _columns(kind: str) -> list[dict[str, Any]]:
    fields = [(one.name, one.form is Form.WHOLE, one.sortable, one.ordered, one.counted) for one in columns(kind)]
    names = ("name", "whole", "sortable", "ordered", "counted")
    return [dict(zip(names, field, strict=True)) for field in (*fields, (BAND_COLUMN, True, True, False, False))]


@pytest.mark.rule("X4", "G4.schema")
@pytest.mark.parametrize("kind", KINDS)
def test_the_mapping_of_each_index_is_the_golden_one(kind: str) -> None:
    assert_golden(f"mapping_{kind}.json", mapping(kind), reminder=REMINDER)


@pytest.mark.rule("G1")
def test_the_settings_of_each_index_are_the_golden_ones() -> None:
    derived = {kind: settings(kind, shards=3, replicas=1) for kind in KINDS}
    assert_golden("settings.json", derived, reminder=REMINDER)


@pytest.mark.rule("X4", "G4.schema")
def test_the_columns_of_the_embedded_engine_are_the_golden_ones() -> None:
    derived = {kind: _columns(kind) for kind in DOCUMENTS}
    assert_golden("embedded_columns.json", derived, reminder=REMINDER)


@pytest.mark.rule("X1", "X2", "G4.schema")
def test_the_text_pipeline_makes_of_the_examples_what_it_made_of_them_before() -> None:
    derived = {
        "folded": {text: fold(text) for text in TEXTS},
        "forms": {name: asdict(shop_forms(name, aliases, domain)) for name, aliases, domain in SHOPS},
    }
    assert_golden("text.json", derived, reminder=REMINDER)


@pytest.mark.rule("G4.schema")
def test_the_schema_version_belongs_to_this_fingerprint_of_the_contract() -> None:
    contract = {
        "roles": {kind: [str(field) for field in declared_fields(document)] for kind, document in DOCUMENTS.items()},
        "mappings": {kind: mapping(kind) for kind in KINDS},
        "columns": {kind: _columns(kind) for kind in DOCUMENTS},
        "folded": [fold(text) for text in TEXTS],
        # Another version of the table may be another contract.
        "han": fold("".join(map(chr, range(0x4E00, 0xA000)))),
        "forms": [asdict(shop_forms(*shop)) for shop in SHOPS],
        "rank": [rank_key(popularity, "s") for popularity in (None, 0.5, 7.0)],
        "segment": dict(ARRAYS),
        # Of a name that is longer than the longest run and prefix.
        "terms": [
            {name: sorted(value) for name, value in values.items() if isinstance(value, list)}
            for values in (wire_document(_LONG), column_values("shops", _LONG))
        ],
    }
    fingerprint = sha256(json.dumps(contract, sort_keys=True).encode()).hexdigest()
    derived = {"schema_version": SCHEMA_VERSION, "fingerprint": fingerprint}
    known = json.loads((DIRECTORY / "schema.json").read_text(encoding="utf-8"))
    # One version is one contract: unlike other golden files, its fingerprint can't be renewed.
    assert known == derived or known["schema_version"] < SCHEMA_VERSION, REMINDER
    assert_golden("schema.json", derived, reminder=REMINDER)


TIMEOUT_MS: Final = 1_500
LONG: Final = "a name that goes on and on until it is longer than what a suggest request compares"


# At noon, half a second past.
COUPONS: Final = CouponQuery(None, now_us=1_935_835_200_500_000, channel="mcp", country="AT", list_limit=None)


def _find(text: str, slugs: Mapping[str, tuple[str, ...]] | None = None, filters: Filters = NO_FILTERS) -> Plan:
    query = query_forms(text)
    found = {word: (slugs or {}).get(word, ()) for word in query.words}
    words = [Word(word, of, counts=bool(of), is_category=bool(of) and len(found) > 1) for word, of in found.items()]
    return find_plan(query.texts, (words,), filters)


PLANS: Final[Mapping[str, Plan]] = {
    "browse": _find("", filters=Filters(("DE",), ("garden",))),
    "facts": _find("", filters=Filters(("DE",), (), "CH", ("yes", "unknown"), COUPONS)),
    "one_word": _find("Zalando"),
    "two_words": _find("amazon uk"),
    "two_words_with_categories": _find("garden shoes", {"garden": ("garden", "garden-tools"), "shoes": ("shoes",)}),
    "domain": _find("https://www.tui.co.uk/x", filters=Filters(("GB",))),
    "punctuation": _find("???"),
    "cjk_character": _find("緑"),
    "long_text": _find(LONG.replace(" ", "-")),
}


def _body(plan: Plan) -> dict[str, Any]:
    return search_body(SearchRequest(plan, 25, offset=50, total=True), timeout_ms=TIMEOUT_MS)


@pytest.mark.rule("M2", "X4", "F1", "F2", "F4")
@pytest.mark.parametrize("name", PLANS)
def test_the_body_of_each_kind_of_query_is_the_golden_one(name: str) -> None:
    assert_golden(f"query_{name}.json", _body(PLANS[name]))


@pytest.mark.rule("F5", "F7")
def test_a_body_that_counts_by_facets_behind_a_position_is_the_golden_one() -> None:
    filters = Filters(("DE", "AT"), ("garden", "shoes"))
    facets = tuple(Facet(field, filters.without(kind).clauses()) for kind, field in FACET_FIELDS.items())
    plan, after = find_plan(("garden",), ([Word("garden")],), filters), Position(9, "c00fffffffffffffshop_1")
    asked = SearchRequest(plan, 26, total=True, after=after, facets=facets)
    assert_golden("query_facets_after.json", search_body(asked, timeout_ms=TIMEOUT_MS))


@pytest.mark.rule("M6", "M6.word_counts")
def test_a_body_that_counts_the_shops_with_evidence_of_a_word_is_the_golden_one() -> None:
    plan = Plan("shops", ((0, word_evidence([Word("zalando")], label=True)),), Filters(("DE",)).clauses())
    assert_golden("query_count.json", search_body(SearchRequest(plan, 0, total=True), timeout_ms=TIMEOUT_MS))


@pytest.mark.rule("A4", "A5")
def test_coupons_are_counted_by_their_first_reason_and_listed_by_one_body() -> None:
    query = CouponQuery(("s1",), now_us=1_935_817_689_000_000, channel="mcp", country="AT", list_limit=None)
    (plan,) = coupon_plans(query)
    ask = SearchRequest(plan, 1_000, total=True, buckets=withheld_reasons(query))
    assert_golden("query_coupons.json", search_body(ask, timeout_ms=TIMEOUT_MS))


@pytest.mark.rule("M11.other_lists")
def test_a_list_without_an_end_is_read_on_from_the_last_rank() -> None:
    plan = Plan("coupons", ((0, MATCH_ALL),))
    assert_golden("query_every.json", [scan_body(plan, "pit", after, limit=5_000) for after in (None, ["0ff"])])


# What people write although CLDR does not have it.
_COLLOQUIAL: Final = {
    "uk": "GB", "great britain": "GB", "britain": "GB", "england": "GB", "scotland": "GB", "wales": "GB",
    "grossbritannien": "GB", "angleterre": "GB", "inglaterra": "GB", "inghilterra": "GB", "engeland": "GB",
    "anglia": "GB", "ingiltere": "GB", "англия": "GB", "イギリス": "GB", "英国": "GB", "usa": "US", "us": "US",
    "america": "US", "amerika": "US", "amérique": "US", "сша": "US", "アメリカ": "US", "uae": "AE", "emirates": "AE",
    "holland": "NL", "hollande": "NL", "holanda": "NL", "olanda": "NL", "korea": "KR", "turkey": "TR",
    "czech republic": "CZ", "tschechien": "CZ", "hong kong": "HK", "macau": "MO", "swiss": "CH",
}  # fmt: skip


def _locale(language: str) -> Locale | None:
    try:
        return Locale.parse(language)
    except UnknownLocaleError:
        return None


def _names() -> dict[str, str]:
    found = defaultdict(set)
    for code in COUNTRY_CODES:
        languages = get_official_languages(code, regional=False, de_facto=True)
        for locale in map(_locale, dict.fromkeys((*LANGUAGES, *languages))):
            words = words_of(locale.territories.get(code, "")) if locale else ()
            if 0 < len(words) <= COUNTRY_RUN:
                found[" ".join(words)].add(code)
    for name, code in _COLLOQUIAL.items():
        found[fold(name)].add(code)
    return {name: " ".join(sorted(codes)) for name, codes in found.items()}


@pytest.mark.rule("M3.labels")
def test_the_names_of_countries_are_those_of_cldr() -> None:
    assert_golden("country_names.json", _names(), directory=Path(index_mappings.countries.__file__).parent)
    names = {
        name: country_names()[name] for name in ("germany", "deutschland", "united kingdom", "uk", "suisse", "日本")
    }
    assert names == {
        "germany": ("DE",), "deutschland": ("DE",), "united kingdom": ("GB",), "uk": ("GB",), "suisse": ("CH",),
        "日本": ("JP",),
    }  # fmt: skip
