"""What /suggest would find if it weighed how well a shop fits against how well it is known, in place of tiers 7 to 5.

    python -m bench.typeahead.weighed --shops 100000 [--seed 7]

The rules put the tier first and popularity within it (M2, M1), so a shop that fits a little better comes before all
that are better known, and of two that are equally known the id decides. Here whole names come first as they do (tier
8), and all others by one number: which of the shop's texts q begins, the more of them it is the better, times a power
of its popularity. What q neither begins nor shares all its words with comes behind them as the service has it.
docs/relevance.md tells what that brings, and why it is not done.

The development data come from $SHOP_DIRECTORY_DEV_DATA, or ../shared/data.
"""

import argparse
import asyncio
import json
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.typeahead.corpus import SEED, write_corpus
from bench.typeahead.quality import Judged, Questions, questions
from bench.typeahead.workload import Typed
from index_mappings.documents import ShopDocument, is_known_to_sell_in, sells_in
from index_mappings.forms import QueryForms, query_forms
from index_mappings.tiers import SUGGEST_CUT
from indexer.project import project_shop
from indexer.records import ShopRecord
from indexer.sinks.embedded import EmbeddedSink
from service.search.embedded import EmbeddedBackend
from service.search.protocol import SearchBackend, SuggestQuery
from tests.catalogues import build_into
from tests.real.sources import Missing, find_dev_data
from tests.relevance.measures import DEPTH

# What a text that q begins is worth: the names that most people type, other names and the domain, and what only a word
# of them begins; and all words of q, in any order.
LEADING: Final = 1.0
FULL: Final = 0.5
KEY: Final = 0.15
WORDS: Final = 0.07
# Of a shop that is not known to sell in the country that is asked for.
ELSEWHERE: Final = 0.005
# A shop of popularity 1 is worth 10 to this of one that nobody knows; more where three characters or fewer are typed.
KNOWN_POWER: Final = 1.2
KNOWN_POWER_SHORT: Final = 2.0
SHORT: Final = 3

_LAST: Final = "\U0010ffff"


class _Texts:
    """Texts of all shops in order."""

    def __init__(self, texts: Iterable[tuple[str, int]]) -> None:
        self._sorted = sorted(texts)

    def begun(self, start: str) -> Iterator[tuple[str, int]]:
        """Those that begin so, and whose they are."""
        return iter(self._sorted[bisect_left(self._sorted, (start,)) : bisect_right(self._sorted, (start + _LAST,))])


class Weighed:
    """All shops, in the order that weighs."""

    def __init__(self, shops: Sequence[ShopDocument]) -> None:
        """Sort the texts of the shops, whatever their order is."""
        # By M1, so that what is equal stays in that order.
        self._shops = sorted(shops, key=lambda shop: shop.rank)
        numbered = list(enumerate(self._shops))
        self._kinds = (
            (LEADING, _Texts((text, number) for number, shop in numbered for text in shop.leading)),
            (FULL, _Texts((text, number) for number, shop in numbered for text in {*shop.full} - {*shop.leading})),
            (KEY, _Texts((text, number) for number, shop in numbered for text in {*shop.keys} - {*shop.full})),
        )
        self._words = _Texts((word, number) for number, shop in numbered for word in shop.words)

    def first(self, typed: Typed, most: int) -> list[str]:
        """The ids of so many shops that q begins or whose words it has, best first."""
        query = query_forms(typed.q, SUGGEST_CUT)
        weights: dict[int, float] = defaultdict(float)
        for worth, texts in self._kinds:
            for number, part in self._parts(query, texts).items():
                weights[number] += worth * part
        for number in self._with_words(query):
            weights[number] += WORDS * min(1.0, len(query.spaced) / len(self._shops[number].name))
        power = KNOWN_POWER_SHORT if len(query.spaced) <= SHORT else KNOWN_POWER
        places = []
        for number, weight in weights.items():
            shop = self._shops[number]
            if not sells_in(shop, typed.country):
                continue
            whole = any(text in shop.names for text in query.texts)
            known = 1.0 if is_known_to_sell_in(shop, typed.country) else ELSEWHERE
            weighed = 0.0 if whole else known * weight * 10 ** (power * (shop.popularity or 0.0))
            places.append((not whole, -weighed, number))
        return [self._shops[number].id for _, _, number in sorted(places)[:most]]

    @staticmethod
    def _parts(query: QueryForms, texts: _Texts) -> Mapping[int, float]:
        """Shops of which a text is begun: how much of it, at best, q is."""
        found: dict[int, float] = defaultdict(float)
        for start in query.texts:
            for text, number in texts.begun(start):
                found[number] = max(found[number], len(start) / len(text))
        return found

    def _with_words(self, query: QueryForms) -> set[int]:
        """Shops that have all words of q but the last, and a word that this one begins."""
        if len(query.words) < 2:
            return set()
        sets = [{number for word, number in self._words.begun(whole) if word == whole} for whole in query.words[:-1]]
        return set.intersection(*sets, {number for _, number in self._words.begun(query.words[-1])})


async def _by_tiers(backend: SearchBackend, asked: Questions) -> dict[Typed, list[str]]:
    """What the service has, ten deep."""
    snapshot = await backend.snapshot()
    answers = {}
    for typed in asked.requests:
        found = await snapshot.suggest(SuggestQuery(typed.q, typed.country, DEPTH))
        answers[typed] = [suggestion.shop.id for suggestion in found.shops]
    return answers


def _by_weight(weighed: Weighed, by_tiers: Mapping[Typed, Sequence[str]]) -> dict[Typed, list[str]]:
    """The shops that weigh most, and what else the service has behind them."""
    return {typed: list(dict.fromkeys((*weighed.first(typed, DEPTH), *found))) for typed, found in by_tiers.items()}


def _table(judged: Mapping[str, Judged], title: str) -> Table:
    table = Table("class", "queries", *(f"{order}, success@1 / @8" for order in judged), title=title)
    first = next(iter(judged.values()))
    for kind, quality in first.classes.items():
        figures = (found.classes[kind] for found in judged.values())
        table.add_row(kind, str(quality.queries), *(f"{each.success_1:.3f} / {each.success_8:.3f}" for each in figures))
    table.add_row("key presses", "", *(f"{found.keystrokes:.3f}" for found in judged.values()))
    return table


def compared(dev_data: Path, directory: Path, invented: int, seed: int) -> dict[str, Judged]:
    """The quality of both orders over one corpus.

    Args:
        dev_data: the folder of the development data.
        directory: an empty one for the corpus and the index.
        invented: how many invented shops.
        seed: of the corpus.
    """
    corpus = write_corpus(directory / "mixed.ndjson", dev_data, invented, seed)
    build_into(EmbeddedSink(directory / "index"), corpus)
    asked = questions(dev_data)
    backend = EmbeddedBackend(directory / "index")
    try:
        by_tiers = asyncio.run(_by_tiers(backend, asked))
    finally:
        asyncio.run(backend.close())
    with corpus.open(encoding="utf-8") as lines:
        weighed = Weighed([project_shop(ShopRecord.model_validate(json.loads(line))) for line in lines])
    return {"tiers": asked.judge(by_tiers), "weighed": asked.judge(_by_weight(weighed, by_tiers))}


def main() -> None:
    """Measure both orders and print them beside each other."""
    parser = argparse.ArgumentParser(prog="python -m bench.typeahead.weighed", description=__doc__.splitlines()[0])
    parser.add_argument("--shops", type=int, default=100_000, help="how many invented ones (100000)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the corpus; the published one where none is given")
    given = parser.parse_args()
    dev_data = find_dev_data()
    if isinstance(dev_data, Missing):
        sys.exit(f"There is nothing to measure: {dev_data.reason}")
    with TemporaryDirectory() as directory:
        judged = compared(dev_data, Path(directory), given.shops, given.seed)
    Console(width=100).print(_table(judged, f"Among {given.shops:,} invented shops, seed {given.seed}"))


if __name__ == "__main__":
    main()
