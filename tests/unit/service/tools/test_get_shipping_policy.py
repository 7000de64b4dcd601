"""What a shipping statement says about one country: every branch of the rule (A7)."""

from typing import Any

import pytest

from service.tools.get_shipping_policy import ships_to


def _stated(
    destinations: list[str] | None, excluded: tuple[str, ...] = (), *, complete: bool = False
) -> dict[str, Any]:
    return {"destinations": destinations, "excluded": list(excluded), "destinations_exhaustive": complete}


@pytest.mark.rule("A7", "I27", "I28")
@pytest.mark.parametrize(
    ("stated", "country", "verdict"),
    [
        (None, "AT", "unknown"),
        (_stated(None), "AT", "unknown"),
        (_stated(None, complete=True), "AT", "unknown"),
        (_stated(None, ("AT",)), "AT", "no"),
        (_stated(["AT"]), "AT", "yes"),
        (_stated(["DACH"]), "AT", "yes"),
        (_stated(["EEA"]), "NO", "yes"),
        (_stated(["EEA"]), "CH", "unknown"),
        (_stated(["EU"]), "CH", "unknown"),
        (_stated(["FR", "NORDICS"]), "IS", "yes"),
        (_stated(["WORLDWIDE"]), "XK", "yes"),
        (_stated(["AT"], ("AT",)), "AT", "no"),
        (_stated(["WORLDWIDE"], ("EU",)), "AT", "no"),
        (_stated(["WORLDWIDE"], ("EU",)), "CH", "yes"),
        (_stated(["EU"], ("FR",), complete=True), "FR", "no"),
        (_stated(["EU"], ("FR",), complete=True), "DE", "yes"),
        (_stated(["DE"]), "AT", "unknown"),
        (_stated(["DE"], complete=True), "AT", "no"),
        (_stated(["EU"], complete=True), "GB", "no"),
        (_stated(["EU"]), "GB", "unknown"),
        (_stated([]), "AT", "unknown"),
        (_stated([], complete=True), "AT", "no"),
        # A country by itself counts before groups, for what is excluded as for what is named.
        (_stated(["WORLDWIDE", "CH"], ("DACH",)), "CH", "yes"),
        (_stated(["DACH"], ("WORLDWIDE",)), "CH", "no"),
        (_stated(["CH"], ("CH", "WORLDWIDE")), "CH", "no"),
        (_stated(["NO"], ("EEA",), complete=True), "NO", "yes"),
        # A complete list with a state, or a group with it, leaves its territories open.
        (_stated(["FR"], complete=True), "GP", "unknown"),
        (_stated(["EU"], complete=True), "RE", "unknown"),
        (_stated(["NORDICS"], complete=True), "FO", "unknown"),
        (_stated(["DACH"], complete=True), "GP", "no"),
        (_stated(["FR"], ("GP",), complete=True), "GP", "no"),
        (_stated(["FR", "RE"], complete=True), "RE", "yes"),
        (_stated(["BRITISH_ISLES"], complete=True), "JE", "yes"),
        (_stated(["RE"], complete=True), "FR", "no"),
    ],
)
def test_excluded_is_no_then_named_is_yes_then_a_complete_list_is_no_and_the_rest_is_unknown(
    stated: dict[str, Any] | None, country: str, verdict: str
) -> None:
    assert ships_to(stated, country) == verdict
