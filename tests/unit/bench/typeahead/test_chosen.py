"""Who takes part in the comparison of typeaheads."""

import pytest

from bench.typeahead.__main__ import chosen


def _named(only: list[str], without: list[str]) -> list[str]:
    others, bare = chosen(only, without, "1g")
    return [*(one.name for one in others), *(["bare"] if bare else [])]


def test_all_take_part_but_those_that_are_left_out() -> None:
    everybody = _named([], [])
    assert {"embedded-cold", "opensearch-warm", "sonic", "orama", "bare"} < {*everybody}
    assert _named([], ["orama", "bare"]) == [name for name in everybody if name not in {"orama", "bare"}]


def test_only_those_that_are_named_take_part() -> None:
    assert _named(["bare"], []) == ["bare"]
    assert _named(["sonic", "embedded-cold"], []) == ["embedded-cold", "sonic"]
    assert _named(["sonic", "embedded-cold", "bare"], ["sonic"]) == ["embedded-cold", "bare"]


@pytest.mark.parametrize(
    ("only", "without"), [(["unknown-engine"], []), ([], ["unknown-engine"]), (["bare"], ["orama", "unknown-engine"])]
)
def test_an_unknown_name_is_refused_and_all_names_are_listed(only: list[str], without: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"unknown: unknown-engine; there are bare, embedded-cold, .*tantivy-raw"):
        chosen(only, without, "1g")


def test_at_least_one_engine_remains() -> None:
    with pytest.raises(SystemExit, match="no system is left"):
        chosen(["bare"], ["bare"], "1g")
