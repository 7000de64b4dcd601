"""Groups of countries in shipping statements: one table, and what it says of a country (A7)."""

import pytest

from index_mappings.countries import COUNTRY_CODES, DESTINATIONS, GROUPS, TERRITORIES, WORLDWIDE, groups_of


@pytest.mark.rule("A7")
def test_a_group_is_never_a_country_and_holds_assigned_countries_only() -> None:
    assert COUNTRY_CODES.isdisjoint({*GROUPS, WORLDWIDE})
    assert COUNTRY_CODES.issuperset(code for group in GROUPS.values() for code in group)
    assert {"EU", WORLDWIDE, "AT", "eu", "EUROPE", ""} & DESTINATIONS == {"EU", WORLDWIDE, "AT"}


def test_the_european_union_has_27_members_and_is_within_the_economic_area() -> None:
    assert len(GROUPS["EU"]) == 27
    assert GROUPS["EEA"] - GROUPS["EU"] == {"IS", "LI", "NO"}


@pytest.mark.rule("A7")
def test_a_territory_and_its_state_are_countries_and_no_state_is_a_territory() -> None:
    assert COUNTRY_CODES.issuperset({*TERRITORIES, *TERRITORIES.values()})
    assert TERRITORIES.keys().isdisjoint(TERRITORIES.values())
    of = {state: {code for code, whose in TERRITORIES.items() if whose == state} for state in ("FR", "FI", "DK", "GB")}
    assert {"GP", "MQ", "GF", "RE", "YT"} <= of["FR"]
    assert {"GG", "GI", "IM", "JE"} <= of["GB"]
    assert (of["FI"], of["DK"], TERRITORIES["SJ"]) == ({"AX"}, {"FO", "GL"}, "NO")


@pytest.mark.rule("A7")
def test_the_groups_of_a_country_are_those_that_have_it_and_the_whole_world() -> None:
    assert groups_of("CH") == {"DACH", "EFTA", WORLDWIDE}
    assert groups_of("XK") == {WORLDWIDE}
