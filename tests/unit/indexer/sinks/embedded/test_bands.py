"""Bands order documents as their ranks do, in whatever order they come, and after any change (M1)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.sinks.embedded.generation import Bands
from indexer.sinks.failures import SinkError

RANKS = st.text("ab", min_size=1, max_size=5)

pytestmark = pytest.mark.rule("M1")


@given(st.lists(RANKS, unique=True), st.lists(RANKS, unique=True), st.integers(1, 3))
def test_a_lower_band_is_always_a_better_rank(built: list[str], added: list[str], width: int) -> None:
    bands = Bands(width)
    banded = [(bands.assign(rank), rank) for rank in built]
    banded += [(bands.of(rank), rank) for rank in added]
    wrong = [(one, other) for one in banded for other in banded if one[0] < other[0] and one[1] >= other[1]]
    assert wrong == []


@given(st.lists(RANKS, unique=True), st.integers(1, 3))
def test_a_document_has_the_band_that_it_was_built_with(built: list[str], width: int) -> None:
    bands = Bands(width)
    banded = [bands.assign(rank) for rank in built]
    assert [bands.of(rank) for rank in built] == banded


def test_documents_in_the_order_of_their_ranks_make_even_bands() -> None:
    bands = Bands(width=2)
    assert [bands.assign(rank) for rank in "abcdefg"] == [0, 0, 1, 1, 2, 2, 3]
    assert [bands.of(rank) for rank in ("A", "bb", "c", "cc", "z")] == [0, 0, 1, 1, 3]


def test_bands_that_were_written_down_are_the_same_when_read(tmp_path: Path) -> None:
    bands = Bands(width=1)
    for rank in ("a", "c", "e"):
        bands.assign(rank)
    bands.write(tmp_path / "anchors.json")
    read = Bands.read(tmp_path / "anchors.json")
    assert [read.of(rank) for rank in "abcdef"] == [bands.of(rank) for rank in "abcdef"]


@pytest.mark.parametrize("text", [None, "", "{}", '{"anchors": 1}', "[]"])
def test_an_index_without_its_bands_takes_no_documents(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "anchors.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(SinkError, match="build a new generation"):
        Bands.read(path)
