"""No request of find_shop or /suggest takes long, whatever its text, and whatever shops a feed states (M8, M9).

The short form asks the slowest requests of earlier runs, which `cases.json` has, and searches a little for slower ones.
SHOP_DIRECTORY_FUZZED_REQUESTS=100000 is the long form: so many requests of each kind among 100,000 shops. It prints the
slowest twenty of each kind, and replaces the cases by them.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time_ns
from typing import Final

import pytest

from bench.hostile import mixed_with_hostile
from index_mappings.forms import query_forms
from index_mappings.tiers import SUGGEST_CUT
from indexer.sinks.embedded.sink import EmbeddedSink
from service.search.embedded.engine import EmbeddedBackend
from service.search.protocol import FindQuery, SuggestQuery
from service.search.typeahead.compiled import compile_kernel
from service.tools.request import MAX_QUERY, MAX_QUERY_WORDS
from tests.engines.slow_requests.slowest import Request, least, slowest
from tests.engines.typeahead.crowded import crowded
from tests.engines.typeahead.test_bounded_work import WORST
from tests.support.catalogues import build_into, write_catalogue

_FUZZED: Final = int(os.environ.get("SHOP_DIRECTORY_FUZZED_REQUESTS", "0"))
_SHOPS: Final = 100_000 if _FUZZED else 1_000
_HOSTILE_EVERY: Final = 200 if _FUZZED else 120
_SEARCHED: Final = _FUZZED or 100
_CASES: Final = Path(__file__).parent / "cases.json"
_PRINTED: Final = 20


@dataclass(frozen=True)
class Timed:
    """A kind of request.

    Attributes:
        milliseconds: asks one, and returns its processor time; 0 if a caller may not ask it.
        longest: the maximum number of characters.
        bound: in milliseconds of processor time.
        known: requests that took longest before, besides the cases.
    """

    milliseconds: Callable[[Request], float]
    longest: int
    bound: float
    known: tuple[Request, ...]


@dataclass(frozen=True)
class World:
    """An index that has hostile shops: the names in it, and the kinds of request."""

    texts: list[str]
    kinds: dict[str, Timed]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The shops that are hard on the typeahead, and among them what a hostile feed could state."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = list(mixed_with_hostile(({**line, "id": shop_id} for shop_id, line in crowded(_SHOPS)), _HOSTILE_EVERY))
    build_into(EmbeddedSink(folder / "index"), write_catalogue(folder / "shops.ndjson", lines))
    compile_kernel()
    backend = EmbeddedBackend(folder / "index")
    with asyncio.Runner() as runner:
        snapshot = runner.run(backend.snapshot())

        def find(request: Request) -> float:
            if len(query_forms(request.text).words) > MAX_QUERY_WORDS:
                return 0.0
            return runner.run(timed(FindQuery(request.text, request.country, None, 0, request.limit)))

        async def timed(query: FindQuery) -> float:
            start = process_time_ns()  # of all threads: searches run in threads
            await snapshot.find(query)
            return (process_time_ns() - start) / 1e6

        def suggest(request: Request) -> float:
            start = process_time_ns()
            snapshot.suggest(SuggestQuery.of(*request))
            return (process_time_ns() - start) / 1e6

        worst = tuple(Request(text, country) for text in WORST for country in (None, "SE"))
        kinds = {"find_shop": Timed(find, MAX_QUERY, 10.0, ()), "suggest": Timed(suggest, SUGGEST_CUT, 5.0, worst)}
        yield World([text for line in lines for text in (line["name"], *line["aliases"])], kinds)
        runner.run(backend.close())


@pytest.mark.rule("M8", "M9.typos", "M9.words")
@pytest.mark.timeout(60 + _FUZZED // 10)
@pytest.mark.parametrize("kind", ["find_shop", "suggest"])
def test_the_slowest_requests_among_hostile_shops_take_a_few_milliseconds_of_a_processor(
    world: World, kind: str
) -> None:
    timed = world.kinds[kind]
    cases: dict[str, list[list[object]]] = json.loads(_CASES.read_text(encoding="utf-8"))
    known = [*timed.known, *(Request(*case) for case in cases[kind])]  # type: ignore[arg-type]  # as they were written
    found = [
        *(least(timed.milliseconds, request, 5) for request in known),
        *slowest(timed.milliseconds, world.texts, _SEARCHED, timed.longest),
    ]
    found.sort(reverse=True)
    if _FUZZED:
        print(*found[:_PRINTED], sep="\n")  # noqa: T201 - figures
        cases[kind] = [list(one.request) for one in found[:_PRINTED]]
        _CASES.write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert [one for one in found if one.ms >= timed.bound] == []
