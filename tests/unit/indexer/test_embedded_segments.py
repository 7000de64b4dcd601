"""A build of the embedded engine ends as one segment, with every document in it and nothing else."""

from pathlib import Path
from typing import Final

import pytest
import tantivy

from indexer.sinks.embedded_segments import SegmentedBuild

# Documents said to be so large that some hundred fill the memory between two commits.
LARGE: Final = 10_000.0


def _built(directory: Path, count: int, expected: int, terms_each: float = LARGE) -> tuple[int, list[str]]:
    """How many segments a build of so many documents ends as, and the ids in it."""
    schema = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw").build()
    build = SegmentedBuild(tantivy.Index(schema, path=str(directory)), expected, terms_each)
    for number in range(count):
        build.add(tantivy.Document(id=f"s{number:05d}"), 1)
    build.finish()
    searcher = tantivy.Index.open(str(directory)).searcher()
    found = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs + 1)
    return searcher.num_segments, sorted(searcher.doc(address)["id"][0] for _, address in found.hits)


@pytest.mark.parametrize("count", [1, 100, 111, 880, 1_000])
def test_a_build_ends_as_one_segment(tmp_path: Path, count: int) -> None:
    segments, ids = _built(tmp_path, count, expected=count)
    assert (segments, ids) == (1, [f"s{number:05d}" for number in range(count)])


def test_what_is_too_much_for_one_segment_becomes_a_few_of_them(tmp_path: Path) -> None:
    # 320 documents fill the memory between two commits, and 64 commits make a segment.
    segments, ids = _built(tmp_path, 40_000, expected=40_000, terms_each=3_437.0)
    assert (segments, ids) == (2, [f"s{number:05d}" for number in range(40_000)])


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (0, 500), (300, 1_000), (1_500, 1_000), (500, 0)])
def test_a_wrong_expectation_loses_no_document(tmp_path: Path, count: int, expected: int) -> None:
    _, ids = _built(tmp_path, count, expected)
    assert ids == [f"s{number:05d}" for number in range(count)]


def test_documents_that_turn_out_larger_are_committed_sooner_and_none_is_lost(tmp_path: Path) -> None:
    schema = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw").build()
    build = SegmentedBuild(tantivy.Index(schema, path=str(tmp_path)), 50, 1.0)
    for number in range(50):
        build.add(tantivy.Document(id=f"s{number}"), 1_000_000)
    build.finish()
    assert tantivy.Index.open(str(tmp_path)).searcher().num_docs == 50
