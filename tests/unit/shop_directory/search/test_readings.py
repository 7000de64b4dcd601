"""The readings of a query, and which words of one word's categories count in the order (M3, M4)."""

from typing import Final

import pytest

from index_mappings.category_forms import category_forms
from index_mappings.documents import CategoryEntry
from index_mappings.tiers import FindTier
from shop_directory.search.plan import NO_FILTERS, Filters, Plan
from shop_directory.search.protocol import CouponQuery
from shop_directory.search.shop_search import SearchPlanner, planned
from shop_directory.words.categories import CategoryTable
from shop_directory.words.query_words import find_forms

_NAMES: Final = {
    "bicycle": ("Bicycles", [("de", "Fahrräder")], [("en", "e-bike"), ("en", "bike")]),
    "motorcycle": ("Motorcycles", [], [("en", "bike")]),
    "coffee": ("Coffee", [], []),
    "cannabis": ("Cannabis", [], [("nl", "coffeeshop")]),
    "pet": ("Pet Shop", [("it", "Cani")], []),
    "alcohol": ("Alcohol", [("es", "Vino"), ("fr", "Vin")], [("en", "whisky"), ("en", "beer"), ("ja", "酒")]),
    "marketplace": ("Marketplaces", [], []),
    "charity": ("Charity", [], [("en", "op shop")]),
}


def _entry(number: int, slug: str) -> CategoryEntry:
    forms = category_forms(slug, *_NAMES[slug])
    return CategoryEntry(slug, slug, number, forms.words, forms.names)


_TABLE: Final = CategoryTable(_entry(number, slug) for number, slug in enumerate(_NAMES, 1))


def _readings(query: str) -> list[dict[str, set[str]]]:
    """By word of each reading, the categories that it means."""
    found = planned(find_forms(query), _TABLE, 50, NO_FILTERS)
    return [{word.text: set(word.slugs) for word in reading} for reading in found.readings]


def _both_count(query: str) -> bool:
    """Whether the second reading counts whatever the first one matches."""
    found = planned(find_forms(query), _TABLE, 50, NO_FILTERS)
    return len(found.readings) > 1 and found.wish is None


@pytest.mark.rule("M3.wishes", "M5.runs")
def test_a_table_word_stays_inside_the_name_of_a_category_unless_it_is_a_word_for_a_shop() -> None:
    assert _readings("e-bike") == [{"e": {"bicycle"}, "bike": {"bicycle"}}]
    assert _readings("cheap e-bike") == [
        {"cheap": set(), "e": {"bicycle"}, "bike": {"bicycle"}},
        {"e": {"bicycle"}, "bike": {"bicycle"}},
    ]
    assert _readings("pet shop") == [{"pet": {"pet"}, "shop": {"pet"}}, {"pet": {"pet"}}]
    # Of table words alone there is one reading.
    assert _readings("op shop") == [{"op": {"charity"}, "shop": {"charity"}}]


@pytest.mark.rule("M5.runs")
def test_table_words_next_to_others_name_nothing_and_no_synonym_is_joined_from_a_word_for_a_shop() -> None:
    assert _readings("can i bike")[1:] == [{"bike": {"bicycle", "motorcycle"}}]
    assert _readings("coffee shop") == [{"coffee": {"coffee"}, "shop": set()}, {"coffee": {"coffee"}}]
    assert _readings("coffeeshop") == [{"coffeeshop": {"cannabis"}}]


@pytest.mark.rule("M3.wishes")
def test_a_word_that_only_begins_a_name_makes_no_wish() -> None:
    assert _both_count("bike shop")
    assert _both_count("shop germany bike")
    assert not _both_count("mark shop")
    assert not _both_count("qqxx shop")


def _first_tier_by_category(query: str) -> int:
    plan: Plan = planned(find_forms(query), _TABLE, 50, NO_FILTERS).plan
    return max(tier for tier, clause in plan.tiers if "primary" in repr(clause) or "categories" in repr(clause))


@pytest.mark.rule("M4.one_word")
def test_of_one_word_a_short_synonym_or_a_stem_only_hints_at_its_category() -> None:
    named, hinted = ("coffee", "vino", "whisky", "酒", "beer shop"), ("vin", "beer", "beers", "whisk")
    tiers = dict.fromkeys(named, FindTier.FIRST_CATEGORY) | dict.fromkeys(hinted, FindTier.BEGINNINGS)
    assert {query: _first_tier_by_category(query) for query in tiers} == tiers


@pytest.mark.rule("M5")
def test_a_planner_answers_by_the_table_and_the_filters_that_it_is_given() -> None:
    planner, fewer = SearchPlanner(), CategoryTable([_entry(1, "bicycle")])
    for _ in range(2):
        for table in (_TABLE, fewer):
            for filters in (NO_FILTERS, Filters(countries=("DE",)), Filters(categories=("motorcycle",))):
                expected = planned(find_forms("bike shop"), table, 50, filters)
                assert planner.of_text("bike shop", table, filters) == expected


@pytest.mark.rule("F3")
def test_a_planner_takes_the_time_of_each_search_for_codes() -> None:
    planner = SearchPlanner()
    plans = [
        planner.of_text("bike", _TABLE, Filters(coupons=CouponQuery(None, now_us, "web", None, None))).plan
        for now_us in (1_000_000, 9_000_000_000_000_000)
    ]
    assert plans[0].filters != plans[1].filters
