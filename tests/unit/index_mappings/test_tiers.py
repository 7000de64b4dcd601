"""The sortable key: its order is the rule's order for all numbers and ids there can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.tiers import coupon_rank_key, newest_first_key, rank_key, suggestion_score

popularities = st.one_of(
    st.none(),
    st.floats(min_value=0.0, allow_nan=False, allow_infinity=False),
    st.sampled_from((0.0, -0.0, 5e-324, 1e-300, 0.1, 1.0, 1.0000000000000002, 1.7976931348623157e308)),
    st.integers(0, 10**15).map(float),
)
ids = st.text("ABCXYZabcxyz0129_-", min_size=1, max_size=64)
ranked = st.tuples(popularities, ids)


@pytest.mark.rule("M1")
@given(st.lists(ranked, max_size=12))
def test_the_order_of_the_keys_is_popularity_descending_then_id(shops: list[tuple[float | None, str]]) -> None:
    by_key = sorted(shops, key=lambda shop: rank_key(*shop))
    by_rule = sorted(shops, key=lambda shop: (-(shop[0] or 0.0), shop[1]))
    assert [(shop[0] or 0.0, shop[1]) for shop in by_key] == [(shop[0] or 0.0, shop[1]) for shop in by_rule]


@pytest.mark.rule("M1")
@given(ids)
def test_no_popularity_is_popularity_zero_of_either_sign(shop_id: str) -> None:
    assert rank_key(None, shop_id) == rank_key(0.0, shop_id) == rank_key(-0.0, shop_id)


@pytest.mark.rule("M1")
def test_a_key_is_sixteen_hexadecimal_digits_and_the_id() -> None:
    assert rank_key(1.0, "shop_1") == "c00fffffffffffffshop_1"
    assert rank_key(None, "Z-9") == "ffffffffffffffffZ-9"


@pytest.mark.rule("M9.score")
def test_a_score_is_the_tier_and_a_part_below_one() -> None:
    assert [suggestion_score(*shop) for shop in ((8, None), (8, 0.0), (6, 1.0), (3, 3.0))] == [8.0, 8.0, 6.5, 3.75]


instants = st.one_of(st.none(), st.integers(-(2**62), 2**62), st.integers(-2, 2))


@pytest.mark.rule("M11.other_lists")
@given(st.lists(st.tuples(instants, ids), max_size=12))
def test_the_newest_come_first_those_without_a_time_last_and_then_the_smaller_id(
    records: list[tuple[int | None, str]],
) -> None:
    by_rule = sorted(records, key=lambda record: (record[0] is None, -(record[0] or 0), record[1]))
    assert sorted(records, key=lambda record: newest_first_key(*record)) == by_rule


@pytest.mark.rule("M11.other_lists")
@given(st.lists(st.tuples(st.booleans(), instants, ids), max_size=12))
def test_coupons_that_were_applied_come_before_all_others(coupons: list[tuple[bool, int | None, str]]) -> None:
    by_rule = sorted(coupons, key=lambda one: (not one[0], one[1] is None, -(one[1] or 0), one[2]))
    by_key = sorted(coupons, key=lambda one: coupon_rank_key(applied=one[0], last_verified_us=one[1], coupon_id=one[2]))
    assert by_key == by_rule
