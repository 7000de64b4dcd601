"""Searches as they are sent: each with the bounds that make an answer whole and its work end (E3)."""

import pytest

from service.search.opensearch.engine import search_target, searches_body


@pytest.mark.rule("E3")
def test_one_search_and_each_of_several_name_an_index_and_their_bounds() -> None:
    bounds = "allow_partial_search_results=false&cancel_after_time_interval=20ms"
    assert search_target("shops-1", 20) == f"/shops-1/_search?{bounds}"
    # At a point in time it names no index.
    assert search_target("", 20) == f"/_search?{bounds}"
    bounds = '"allow_partial_search_results":false,"cancel_after_time_interval":"20ms"'
    assert searches_body([("shops-1", {"size": 1}), ("facts-1", {"size": 2})], 20).decode() == (
        f'{{"index":"shops-1",{bounds}}}\n{{"size":1}}\n{{"index":"facts-1",{bounds}}}\n{{"size":2}}\n'
    )
