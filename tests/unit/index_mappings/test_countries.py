"""Groups of countries in shipping statements: one table, and what it says of a country (A7)."""

import pytest

from index_mappings.countries import COUNTRY_CODES, GROUPS, WORLDWIDE, is_destination_group


@pytest.mark.rule("A7")
def test_a_group_is_never_a_country_and_holds_assigned_countries_only() -> None:
    assert COUNTRY_CODES.isdisjoint({*GROUPS, WORLDWIDE})
    assert COUNTRY_CODES.issuperset(code for group in GROUPS.values() for code in group)
    assert [name for name in ("EU", WORLDWIDE, "AT", "eu", "EUROPE", "") if is_destination_group(name)] == [
        "EU",
        WORLDWIDE,
    ]


def test_the_european_union_has_27_members_and_is_within_the_economic_area() -> None:
    assert len(GROUPS["EU"]) == 27
    assert GROUPS["EEA"] - GROUPS["EU"] == {"IS", "LI", "NO"}
