"""Searches as they are sent: each with the bounds that make an answer whole and its work end (E3)."""

import pytest

from service.search.opensearch.queries import search_target, searches_body


@pytest.mark.rule("E3")
def test_a_search_names_its_index_and_its_bounds() -> None:
    bounds = "allow_partial_search_results=false&cancel_after_time_interval=1350ms"
    assert search_target("shops-1", 1350) == f"/shops-1/_search?{bounds}"


@pytest.mark.rule("E3")
def test_a_search_at_a_point_in_time_names_no_index() -> None:
    bounds = "allow_partial_search_results=false&cancel_after_time_interval=20ms"
    assert search_target("", 20) == f"/_search?{bounds}"


@pytest.mark.rule("E3")
def test_several_searches_are_bounded_each() -> None:
    bounds = '"allow_partial_search_results":false,"cancel_after_time_interval":"20ms"'
    assert searches_body([("shops-1", {"size": 1}), ("facts-1", {"size": 2})], 20).decode() == (
        f'{{"index":"shops-1",{bounds}}}\n{{"size":1}}\n{{"index":"facts-1",{bounds}}}\n{{"size":2}}\n'
    )
