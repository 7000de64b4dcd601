"""No request of find_shop or /suggest takes long, whatever its text, and whatever shops a feed states (M8, M9).

The short form asks the slowest requests of earlier runs, which `cases.json` has, and searches a little for slower ones.
SHOP_DIRECTORY_FUZZED_REQUESTS=100000 is the long form: so many requests of each kind among 100,000 shops. It prints the
slowest twenty of each kind, and replaces the cases by them. test_slow_calls.py asks the other tools.
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time_ns
from typing import Final, NamedTuple

import pytest

from index_mappings.forms import query_forms, shop_forms
from index_mappings.tiers import SUGGEST_CUT
from shop_directory.search.bounds import MAX_QUERY, MAX_QUERY_WORDS
from shop_directory.search.embedded.engine import EmbeddedBackend
from shop_directory.search.protocol import FindQuery
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.slow_requests.conftest import FUZZED, HostileIndex
from tests.engines.typeahead.crowded import CATEGORIES, COMMON, COMPANY, HAN, HANGUL, KANA
from tests.engines.typeahead.test_tiers import WORST
from tests.support.processor import slowness

_ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "0123456789",
    HAN,
    HANGUL,
    KANA,
    "абвгдежзийклмноп",
    "eaiorn",
    ".- ",
    "ab",
    "a",
)
_COUNTRIES: Final = (None, None, "DE", "AQ")
_POOL: Final = 60
_AGAIN: Final = 3
_SEARCHED: Final = FUZZED or 100
_CASES: Final = Path(__file__).parent / "cases.json"
_PRINTED: Final = 20


class Request(NamedTuple):
    text: str
    country: str | None = None
    limit: int = 20


class Found(NamedTuple):
    """A request and the processor time that it took at least, in milliseconds."""

    ms: float
    request: Request


def least(milliseconds: Callable[[Request], float], request: Request, times: int = _AGAIN) -> Found:
    """The time of a request asked so many times; what else the machine does only ever adds."""
    return Found(min(milliseconds(request) for _ in range(times)), request)


def slowest(
    milliseconds: Callable[[Request], float], texts: Sequence[str], requests: int, longest: int, seed: int = 1
) -> list[Found]:
    """The slowest of so many requests, the worst first; they are made of the texts of the catalogue.

    `milliseconds` asks a request of at most `longest` characters, and returns its processor time.
    """
    chance = random.Random(seed)  # noqa: S311 - the same each time
    found: dict[Request, float] = {}
    for _ in range(requests):
        text = _text(chance, texts, longest)
        request = Request(text, chance.choice(_COUNTRIES), chance.choice((1, 8, 20)))
        if found and chance.random() < 0.6:
            request = _changed(chance, texts, chance.choice(list(found)), longest)
        bound = min(found.values()) if len(found) == _POOL else 0.0
        if request in found or milliseconds(request) <= bound:
            continue
        if (ms := least(milliseconds, request).ms) > bound:
            found[request] = ms
            if len(found) > _POOL:
                del found[min(found, key=found.__getitem__)]
    return sorted((Found(ms, request) for request, ms in found.items()), key=lambda one: -one.ms)


def _text(chance: random.Random, texts: Sequence[str], longest: int) -> str:
    kind = chance.randrange(5)
    if kind == 0:
        return "".join(chance.choices(chance.choice(_ALPHABETS), k=chance.randint(1, longest)))
    if kind == 1:
        start = chance.choice((*texts[:100], COMPANY, *COMMON))[: chance.randint(1, longest)]
        return start + "".join(chance.choices(chance.choice(_ALPHABETS), k=chance.randint(0, 60)))
    if kind == 4:
        known = chance.choice(texts)
        first = chance.randrange(len(known))
        return known[first : first + chance.randint(1, longest)]
    words = chance.choice((1, 2, 2, 3, 3, 4, 6, 8, 12, 32))
    between = " " if kind == 2 else chance.choice(("", "-", "."))
    return between.join(_word(chance, texts) for _ in range(words))[:longest]


def _word(chance: random.Random, texts: Sequence[str]) -> str:
    known = chance.choice((chance.choice(texts).split()[0], chance.choice(COMMON), chance.choice(CATEGORIES)))
    return known if chance.random() < 0.6 else known[: chance.randint(1, len(known))]


def _changed(chance: random.Random, texts: Sequence[str], request: Request, longest: int) -> Request:
    text = request.text
    for _ in range(chance.randint(1, 3)):
        at, end = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        letter = chance.choice(chance.choice(_ALPHABETS))
        text = chance.choice(
            (
                text[:at] + letter + text[at:],
                text[:at] + text[at + 1 :],
                text[:at] + letter + text[at + 1 :],
                f"{text[:at]} {text[at:]}",
                text[:at] + text[end:] if end - at < len(text) else text,
                text[:end] + text[at:],
                f"{text} {_word(chance, texts)}",
            )
        )[:longest]
    return Request(text, chance.choice((request.country, *_COUNTRIES)), request.limit)


@dataclass(frozen=True)
class Timed:
    """A kind of request, of at most `longest` characters, and its bound in milliseconds of a usual processor's time.

    `milliseconds` asks one, and returns its processor time, 0 if a caller may not ask it. `known` requests took longest
    before, besides the cases.
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
def world(hostile_index: HostileIndex) -> Iterator[World]:
    """The hostile index, and all that is asked of it."""
    lines = hostile_index.shops
    backend = EmbeddedBackend(hostile_index.directory)
    with asyncio.Runner() as runner:
        snapshot = runner.run(backend.snapshot())

        def find(request: Request) -> float:
            if len(query_forms(request.text).words) > MAX_QUERY_WORDS:
                return 0.0
            countries = () if request.country is None else (request.country,)
            return runner.run(timed(FindQuery(request.text, countries, (), 0, request.limit)))

        async def timed(query: FindQuery) -> float:
            table = snapshot._typeahead.categories
            # Otherwise only the first request is planned.
            snapshot._planner._cached.clear()
            table._words.clear()
            table._levels._known._cached.clear()
            start = process_time_ns()  # of all threads: searches run in threads
            await snapshot.find(query)
            return (process_time_ns() - start) / 1e6

        def suggest(request: Request) -> float:
            start = process_time_ns()
            snapshot.suggest(SuggestQuery.of(*request))
            return (process_time_ns() - start) / 1e6

        worst = tuple(Request(text, country) for text in WORST for country in (None, "SE"))
        kinds = {"find_shop": Timed(find, MAX_QUERY, 10.0, ()), "suggest": Timed(suggest, SUGGEST_CUT, 5.0, worst)}
        names = [text for line in lines for text in (line["name"], *line["aliases"])]
        # Names that differ may begin alike in Latin letters.
        forms = (shop_forms(line["name"], line["aliases"], line["domain"]) for line in lines)
        yield World([*names, *(text for known in forms for text in known.full)], kinds)
        runner.run(backend.close())


@pytest.mark.rule("M8", "M9.typos", "M9.words")
@pytest.mark.timeout(60 + FUZZED // 10)
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
    if FUZZED:
        print(*found[:_PRINTED], sep="\n")  # noqa: T201 - figures
        cases[kind] = [list(one.request) for one in found[:_PRINTED]]
        _CASES.write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    bound = timed.bound * slowness()
    assert [one for one in found if one.ms >= bound] == []
