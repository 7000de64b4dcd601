"""The query bodies to the letter: constant scores for tiers, finished terms, exact totals, one order (M2, X4)."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from index_mappings.forms import query_forms
from service.search.engine import SearchRequest
from service.search.opensearch.engine import scan_body, search_body
from service.search.plan import MATCH_ALL, Filters, Plan, Word, find_plan, word_evidence
from service.search.protocol import CouponQuery
from service.search.shop_details import coupon_plan, withheld_reasons
from tests.golden.golden import assert_golden

TIMEOUT_MS: Final = 1_500
LONG: Final = "a name that goes on and on until it is longer than what a suggest request compares"
ENGINE_TEXT_QUERIES: Final = {"match", "match_phrase", "multi_match", "query_string", "simple_query_string", "wildcard"}


def _find(text: str, slugs: Mapping[str, tuple[str, ...]] | None = None, **filters: str | None) -> Plan:
    query = query_forms(text)
    words = [Word(word, (slugs or {}).get(word, ())) for word in dict.fromkeys(query.words)]
    return find_plan(query.texts, words, Filters(filters.get("country"), filters.get("category")))


PLANS: Final[Mapping[str, Plan]] = {
    "browse": _find("", country="DE", category="garden"),
    "one_word": _find("Zalando"),
    "two_words": _find("amazon uk"),
    "two_words_with_categories": _find("garden shoes", {"garden": ("garden", "garden-tools"), "shoes": ("shoes",)}),
    "domain": _find("https://www.tui.co.uk/x", country="GB"),
    "punctuation": _find("???"),
    "cjk_character": _find("緑"),
    "long_text": _find(LONG.replace(" ", "-")),
}


def _keys(body: object) -> set[str]:
    if isinstance(body, Mapping):
        return {*body}.union(*map(_keys, body.values()))
    if isinstance(body, list):
        return set[str]().union(*map(_keys, body))
    return set()


def _body(plan: Plan) -> dict[str, Any]:
    return search_body(SearchRequest(plan, 25, offset=50, total=True), timeout_ms=TIMEOUT_MS)


@pytest.mark.rule("M2", "X4")
@pytest.mark.parametrize("name", PLANS)
def test_the_body_of_each_kind_of_query_is_the_golden_one(name: str) -> None:
    assert_golden(f"query_{name}.json", _body(PLANS[name]))


@pytest.mark.rule("M6", "M6.word_counts")
def test_a_body_that_counts_the_shops_with_evidence_of_a_word_is_the_golden_one() -> None:
    plan = Plan("shops", ((0, word_evidence(Word("zalando"), label=True)),), Filters("DE").clauses())
    assert_golden("query_count.json", search_body(SearchRequest(plan, 0, total=True), timeout_ms=TIMEOUT_MS))


@pytest.mark.rule("A4", "A5")
def test_coupons_are_counted_by_their_first_reason_and_listed_by_one_body() -> None:
    query = CouponQuery("s1", now_us=1_935_817_689_000_000, channel="mcp", country="AT", list_limit=None)
    ask = SearchRequest(coupon_plan(query), 1_000, total=True, buckets=withheld_reasons(query))
    assert_golden("query_coupons.json", search_body(ask, timeout_ms=TIMEOUT_MS))


@pytest.mark.rule("M11.other_lists")
def test_a_list_without_an_end_is_read_on_from_the_last_rank() -> None:
    plan = Plan("coupons", ((0, MATCH_ALL),))
    assert_golden("query_every.json", [scan_body(plan, "pit", after, limit=5_000) for after in (None, ["0ff"])])


@pytest.mark.rule("X4")
@pytest.mark.parametrize("name", PLANS)
def test_no_body_asks_the_engine_to_analyse_text(name: str) -> None:
    assert _keys(_body(PLANS[name])["query"]) & ENGINE_TEXT_QUERIES == set()
