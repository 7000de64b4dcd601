"""What the embedded engine is asked for the longest queries: few searches, and none that a long text makes slow (M8).

A search for the beginning of a term by distance builds an automaton, which takes time quadratic in the number of
characters: 12 ms for 200 Han characters that are far apart in Unicode, and a plan has a dozen of them.
"""

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import tantivy

from index_mappings.ngrams import covering_runs
from service.search.embedded import queries
from service.search.embedded.engine import EmbeddedBackend
from service.search.protocol import FindQuery, Snapshot
from tests.engines.typeahead.crowded import HAN
from tests.support.catalogues import shop
from tests.support.worlds import embedded_world

# Characters that are next to one another in Unicode share most of their bytes, which makes the automaton small.
SPREAD: Final = "".join(random.Random(1).sample(HAN, 560))  # noqa: S311 - the same each time
NAMED: Final = SPREAD[:200]
UNKNOWN: Final = SPREAD[200:400]
TWO_WORDS: Final = (SPREAD[400:480], SPREAD[480:])
_LONGEST: Final = 64


@dataclass
class RecordedQueries:
    """The engine's queries: the methods that made one, in order, and the texts searched for by distance."""

    made: list[str] = field(default_factory=list)
    by_distance: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., tantivy.Query]:
        make = getattr(tantivy.Query, name)

        def recorded(*arguments: Any, **named: Any) -> tantivy.Query:  # noqa: ANN401 - as the method takes
            self.made.append(name)
            if name == "fuzzy_term_query":
                self.by_distance.append(arguments[2])
            query: tantivy.Query = make(*arguments, **named)
            return query

        return recorded


@pytest.fixture
async def snapshot(tmp_path: Path) -> AsyncIterator[Snapshot]:
    """A shop whose name has 200 Han characters, and one with a name that begins like it."""
    shops = [
        shop(NAMED, "named.internal"),
        shop(f"{NAMED[:40]}\u5e97", "short.internal"),
        shop(" ".join(TWO_WORDS), "words.internal"),
        shop("Lumen"),
    ]
    backend = EmbeddedBackend(embedded_world(tmp_path, shops))
    yield await backend.snapshot()
    await backend.close()


def _in_words(text: str) -> str:
    return " ".join(text[start : start + 15] for start in range(0, 180, 15))


@pytest.mark.rule("M8", "E3")
@pytest.mark.parametrize(
    ("text", "found", "most"),
    [
        pytest.param(UNKNOWN, 0, 12, id="no shop's name"),
        pytest.param(NAMED, 1, 12, id="a shop's name"),
        pytest.param(NAMED[:199], 1, 12, id="the beginning of a shop's name"),
        pytest.param(NAMED[:40] + UNKNOWN[40:], 0, 12, id="begins like a shop's name"),
        pytest.param(_in_words(UNKNOWN), 0, 60, id="12 words of no shop"),
        pytest.param(_in_words(NAMED), 1, 60, id="12 words of a shop"),
        pytest.param(" ".join(reversed(TWO_WORDS)), 1, 30, id="two words of a shop, the last one first"),
    ],
)
async def test_no_long_text_is_searched_for_by_distance(
    snapshot: Snapshot, text: str, found: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = RecordedQueries()
    monkeypatch.setattr(queries, "Query", recorded)
    result = await snapshot.find(FindQuery(text, None, None, 0, 50))
    assert result.total == found
    assert [len(text) for text in recorded.by_distance if len(text) > _LONGEST] == []
    # Looking up one term takes microseconds, and a text has fewer runs than characters.
    assert 0 < len([kind for kind in recorded.made if kind != "term_query"]) <= most
    assert recorded.made.count("term_query") <= len(text)
    # One for each of two fields or words, however many searches of the plan have it.
    assert recorded.made.count("regex_query") <= 2


@pytest.mark.rule("M8")
@pytest.mark.parametrize(("length", "runs"), [(3, 1), (4, 1), (7, 2), (8, 1), (15, 2), (16, 1), (47, 3), (200, 5)])
def test_a_part_of_any_length_is_a_phrase_of_five_runs_at_most(length: int, runs: int) -> None:
    covering = covering_runs(UNKNOWN[:length])
    assert len(covering) == runs
    assert {UNKNOWN[start : start + len(run)] for start, run in covering} == {run for _, run in covering}
    assert {place for start, run in covering for place in range(start, start + len(run))} == {*range(length)}
