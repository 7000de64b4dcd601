"""A search for the slowest suggest requests: seeded chance, and mutations of the slowest that were found so far."""

import random
from collections.abc import Sequence
from time import thread_time_ns
from typing import Final, NamedTuple

from index_mappings.tiers import SUGGEST_CUT
from service.search.protocol import SuggestQuery
from service.search.typeahead.typeahead import Typeahead
from tests.engines.typeahead.crowded import CATEGORIES, COMMON, COMPANY, HAN, HANGUL, KANA

_ALPHABETS: Final = ("abcdefghijklmnopqrstuvwxyz", "0123456789", HAN, HANGUL, KANA, "абвгдежзийклмноп", "eaiorn", ".- ")
_COUNTRIES: Final = (None, None, "DE", "AQ")
_POOL: Final = 60
_AGAIN: Final = 3


class Found(NamedTuple):
    """A request and the processor time that it took at least, in milliseconds."""

    ms: float
    query: SuggestQuery


def milliseconds(typeahead: Typeahead, query: SuggestQuery, times: int = 1) -> float:
    """The processor time of a request in milliseconds, the least of so many."""
    taken = []
    for _ in range(times):
        start = thread_time_ns()
        typeahead.suggest(query)
        taken.append(thread_time_ns() - start)
    return min(taken) / 1e6


def slowest(typeahead: Typeahead, texts: Sequence[str], requests: int, seed: int) -> list[Found]:
    """The slowest of so many requests, made from texts of the catalogue, the worst first."""
    chance = random.Random(seed)  # noqa: S311 - the same each time
    found: dict[SuggestQuery, float] = {}
    for _ in range(requests):
        query = _changed(chance, texts, chance.choice(list(found))) if found and chance.random() < 0.6 else None
        query = query or SuggestQuery(_text(chance, texts), chance.choice(_COUNTRIES), chance.choice((1, 8, 20)))
        least = min(found.values()) if len(found) == _POOL else 0.0
        if query in found or milliseconds(typeahead, query) <= least:
            continue
        # What else the machine does only ever adds.
        if (ms := milliseconds(typeahead, query, _AGAIN)) > least:
            found[query] = ms
            if len(found) > _POOL:
                del found[min(found, key=found.__getitem__)]
    return sorted((Found(ms, query) for query, ms in found.items()), key=lambda one: -one.ms)


def _text(chance: random.Random, texts: Sequence[str]) -> str:
    kind = chance.randrange(4)
    if kind == 0:
        return "".join(chance.choices(chance.choice(_ALPHABETS), k=chance.randint(1, SUGGEST_CUT)))
    if kind == 1:
        start = chance.choice((*texts[:100], COMPANY, *COMMON))[: chance.randint(1, SUGGEST_CUT)]
        return start + "".join(chance.choices(chance.choice(_ALPHABETS), k=chance.randint(0, 60)))
    words = chance.choice((1, 2, 2, 3, 3, 4, 6, 8, 12, 32))
    between = " " if kind == 2 else chance.choice(("", "-", "."))
    return between.join(_word(chance, texts) for _ in range(words))[:SUGGEST_CUT]


def _word(chance: random.Random, texts: Sequence[str]) -> str:
    known = chance.choice((chance.choice(texts).split()[0], chance.choice(COMMON), chance.choice(CATEGORIES)))
    return known if chance.random() < 0.6 else known[: chance.randint(1, len(known))]


def _changed(chance: random.Random, texts: Sequence[str], query: SuggestQuery) -> SuggestQuery:
    text = query.text
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
        )[:SUGGEST_CUT]
    return SuggestQuery(text, chance.choice((query.country, *_COUNTRIES)), query.limit)
