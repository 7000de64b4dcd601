"""The guess about the looser tiers of /suggest: it follows what was found, and never decides what is found."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from index_mappings.generations import Stamp
from index_mappings.tiers import SUGGEST_CUT
from indexer.sinks.embedded import EmbeddedSink
from service.search.categories import CategoryTable
from service.search.embedded import TantivyEngine
from service.search.engine import Ask, Page
from service.search.finding import Finding
from service.search.lookahead import Lookahead
from service.search.protocol import SuggestQuery
from tests.catalogues import build_into, shop, write_catalogue_directory


@pytest.mark.rule("M9")
def test_at_first_too_few_shops_are_expected_of_every_length() -> None:
    ahead = Lookahead()
    assert all(ahead.expects_few(letters) for letters in (1, 4, SUGGEST_CUT, SUGGEST_CUT + 10))


@pytest.mark.rule("M9")
def test_a_length_that_finds_enough_is_asked_for_the_strict_tiers_alone_until_it_finds_too_few_again() -> None:
    ahead = Lookahead()
    for _ in range(50):
        ahead.learn(4, few=False)
    assert [ahead.expects_few(letters) for letters in (3, 4, 5)] == [True, False, True]
    for _ in range(50):
        ahead.learn(4, few=True)
    assert ahead.expects_few(4)


@pytest.mark.rule("M9")
def test_texts_longer_than_any_that_counts_are_one_length() -> None:
    ahead = Lookahead()
    for _ in range(50):
        ahead.learn(SUGGEST_CUT + 5, few=False)
    assert not ahead.expects_few(SUGGEST_CUT)


class CountingEngine(TantivyEngine):
    """The embedded engine, asked as a distant one is, whose round trips count."""

    key_presses = None

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.trips = 0

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        self.trips += 1
        return await super().search(stamp, asks)


SHOPS = [
    shop("Gardena", "one.internal", id="s1", popularity=0.3),
    shop("Gardenia Rosa", "two.internal", id="s2", popularity=0.2),
    shop("Gradena", "three.internal", id="s3", popularity=0.5),
    shop("Lamp", "four.internal", id="s4", popularity=0.9),
]
FOUND = [("s1", 7), ("s2", 7), ("s3", 3)]


@pytest.mark.rule("M9")
async def test_all_tiers_of_one_round_trip_are_ranked_as_those_of_two(tmp_path: Path) -> None:
    build_into(EmbeddedSink(tmp_path / "index"), write_catalogue_directory(tmp_path / "catalogue", shops=SHOPS))
    engine = CountingEngine(tmp_path / "index")
    stamp = await engine.live()

    async def suggested(ahead: Lookahead | None, limit: int) -> tuple[list[tuple[str, int]], int]:
        engine.trips = 0
        finding = Finding(engine, stamp, CategoryTable(()), 50, ahead)
        answer = await finding.suggest(SuggestQuery("garden", None, limit))
        return [(found.shop.id, found.tier) for found in answer.shops], engine.trips

    confident = Lookahead()
    for _ in range(50):
        confident.learn(len("garden"), few=False)
    assert await suggested(Lookahead(), 8) == (FOUND, 1)
    assert await suggested(confident, 8) == (FOUND, 2)
    assert await suggested(None, 8) == (FOUND, 2)
    # The strict tiers fill the page: nothing else is asked, and nothing else is shown.
    assert await suggested(Lookahead(), 2) == (FOUND[:2], 1)
    assert await suggested(confident, 2) == (FOUND[:2], 1)
    await engine.close()
