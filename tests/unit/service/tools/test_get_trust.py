"""What callers of get_trust can read besides the signals."""

import pytest

from service.tools.get_trust import GET_TRUST
from service.tools.tool import response_schema


@pytest.mark.rule("I35")
def test_callers_can_read_that_coverage_is_not_for_ranking_or_filtering() -> None:
    coverage = response_schema(GET_TRUST.response)["properties"]["signal_coverage"]["description"]
    for text in (GET_TRUST.description, coverage):
        assert "never rank or filter" in text
        assert "data" in text


@pytest.mark.rule("A8", "V2")
def test_callers_can_read_that_an_answer_does_not_mean_that_the_shop_is_known() -> None:
    assert "it does not mean that the shop is known" in GET_TRUST.description
