"""What says nothing new beside others is not asked of an engine, and nothing else is left out (M4)."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.forms import query_forms, shop_forms
from index_mappings.tiers import FindTier
from service.search.clauses import AllOf, AnyOf, Clause, Exact, Infix, NoneOf, Prefix, meets
from service.search.narrowing import implies, narrowed, union
from service.search.plan import Plan, find_plan
from tests.conformance.strategies import SLUGS, domains, names

Fields = dict[str, tuple[str, ...]]


def _tier(shop: Fields, plan: Plan) -> int | None:
    return next((tier for tier, clause in plan.tiers if meets(shop, clause)), None)


@st.composite
def _shops(draw: st.DrawFn) -> Fields:
    forms = shop_forms(draw(names), draw(st.lists(names, max_size=2)), draw(domains))
    return {**asdict(forms), "categories": tuple(draw(st.lists(st.sampled_from(SLUGS), max_size=2)))}


@st.composite
def _shops_and_clauses(draw: st.DrawFn) -> tuple[Fields, list[Clause]]:
    """A shop, and clauses about beginnings of its own forms, so that they often hold and often follow."""
    shop = draw(_shops())
    own = (*shop["words"], *shop["keys"], *shop["full"])
    # Few texts, so that clauses often speak of the same one.
    longest = draw(st.lists(st.sampled_from(own), min_size=1, max_size=2))
    text = st.sampled_from(sorted({whole[:end] for whole in longest for end in (1, 3, len(whole))}))
    look_ups: st.SearchStrategy[Clause] = st.one_of(
        st.builds(Exact, st.sampled_from(("full", "words")), st.lists(text, min_size=1, max_size=2).map(tuple)),
        st.builds(Prefix, st.sampled_from(("full", "keys", "words")), text),
        st.builds(Infix, st.just("infixes"), text),
    )
    # Look-ups too, not only what is made of them: of two of those one follows more often.
    clauses = st.one_of(look_ups, st.recursive(look_ups, _several, max_leaves=5))
    return shop, draw(st.lists(clauses, min_size=2, max_size=8))


def _several(parts: st.SearchStrategy[Clause]) -> st.SearchStrategy[Clause]:
    some = st.lists(parts, max_size=3).map(tuple)
    return st.one_of(st.builds(AllOf, some), st.builds(AnyOf, some), st.builds(NoneOf, some))


A = Prefix("words", "a")
B = Prefix("words", "b")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (A, A),
        (A, Prefix("keys", "a")),
        (Prefix("full", "ab"), Prefix("full", "a")),
        (Exact("full", ("ab", "ac")), Prefix("full", "a")),
        (Exact("full", ("ab",)), Exact("full", ("ab", "ac"))),
        (AllOf((A, B)), A),
        (A, AnyOf((B, A))),
        (AnyOf((A, AllOf((A, B)))), Prefix("keys", "a")),
        (AllOf((AnyOf((A,)),)), AllOf((A,))),
        (AnyOf(()), A),
        (A, AllOf(())),
    ],
)
def test_what_follows_from_the_clauses_is_seen(narrow: Clause, wide: Clause) -> None:
    assert implies(narrow, wide)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (Prefix("keys", "a"), A),
        (Prefix("full", "a"), Prefix("keys", "a")),
        (Prefix("full", "a"), Prefix("full", "ab")),
        (Exact("full", ("ab", "b")), Prefix("full", "a")),
        (Exact("words", ("a",)), Exact("full", ("a",))),
        (AnyOf((A, B)), A),
        (A, AllOf((A, B))),
        (AllOf(()), A),
        (A, AnyOf(())),
        (NoneOf((B,)), A),
        (Infix("infixes", "a"), A),
    ],
)
def test_what_does_not_follow_is_not_claimed(narrow: Clause, wide: Clause) -> None:
    assert not implies(narrow, wide)


@pytest.mark.rule("M4")
@given(_shops_and_clauses())
def test_a_shop_that_meets_a_clause_meets_what_is_implied(drawn: tuple[Fields, list[Clause]]) -> None:
    shop, clauses = drawn
    implied = [(one, other) for one in clauses for other in clauses if implies(one, other) and meets(shop, one)]
    assert all(meets(shop, other) for _, other in implied)


@pytest.mark.rule("M4")
@given(_shops_and_clauses())
def test_a_union_holds_the_same_shops_with_no_more_clauses(drawn: tuple[Fields, list[Clause]]) -> None:
    shop, clauses = drawn
    found = union(clauses)
    assert meets(shop, found) is any(meets(shop, clause) for clause in clauses)
    assert set(found.clauses) <= set(clauses)


@pytest.mark.rule("M4")
@given(_shops(), names, st.integers(1, 12), st.booleans())
def test_every_shop_keeps_its_tier(shop: Fields, text: str, length: int, known: bool) -> None:  # noqa: FBT001
    query = query_forms(text[:length])
    plan = find_plan(query, dict.fromkeys(query.words, SLUGS[:2] if known else ()), ())
    assert _tier(shop, narrowed(plan)) == _tier(shop, plan)


@pytest.mark.rule("M4")
def test_one_letter_has_only_the_tiers_of_beginnings() -> None:
    plan = narrowed(find_plan(query_forms("z"), {"z": ()}, ()))
    assert [tier for tier, _ in plan.tiers] == [FindTier.EQUALS_FULL, FindTier.BEGINS_FULL, FindTier.BEGINS_KEY]


@pytest.mark.rule("M4")
def test_a_word_that_is_a_category_keeps_the_categorys_tier() -> None:
    plan = narrowed(find_plan(query_forms("garden"), {"garden": ("garden",)}, ()))
    assert [tier for tier, _ in plan.tiers] == [
        FindTier.EQUALS_FULL,
        FindTier.BEGINS_FULL,
        FindTier.BEGINS_KEY,
        FindTier.INFIX,
        FindTier.CATEGORY,
    ]


def test_an_equal_clause_stays_in_a_union_once() -> None:
    assert union([A, A, AllOf((A, B))]) == AnyOf((A,))
