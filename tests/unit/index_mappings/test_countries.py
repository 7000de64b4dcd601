"""Groups of countries in shipping statements: one table, and what it says of a country (A7)."""

import pytest

from index_mappings.countries import COUNTRY_CODES, GROUPS, WORLDWIDE, covers, is_destination_group


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    ("destinations", "country", "covered"),
    [
        (("AT",), "AT", True),
        (("AT",), "DE", False),
        (("DACH",), "CH", True),
        (("EU",), "CH", False),
        (("EU",), "GB", False),
        (("EEA",), "NO", True),
        (("EEA",), "CH", False),
        (("FR", "NORDICS"), "IS", True),
        ((WORLDWIDE,), "XK", True),
        ((), "AT", False),
    ],
)
def test_a_country_is_covered_when_it_is_named_by_itself_or_in_a_group(
    destinations: tuple[str, ...], country: str, *, covered: bool
) -> None:
    assert covers(destinations, country) is covered


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
