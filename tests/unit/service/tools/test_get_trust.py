"""What get_trust tells its callers beside the signals."""

import pytest

from service.tools.get_trust import GET_TRUST
from service.tools.schema import response_schema


@pytest.mark.rule("I35")
def test_callers_are_told_that_coverage_is_not_for_ranking_or_filtering() -> None:
    coverage = response_schema(GET_TRUST.response)["properties"]["signal_coverage"]["description"]
    for told in (GET_TRUST.description, coverage):
        assert "never rank or filter" in told
        assert "data" in told
