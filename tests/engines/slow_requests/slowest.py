"""A search for the slowest requests: seeded chance, and mutations of the slowest that were found so far."""

import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tests.engines.typeahead.crowded import CATEGORIES, COMMON, COMPANY, HAN, HANGUL, KANA

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


class Request(NamedTuple):
    """A request of /suggest or find_shop."""

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
    """The slowest of so many requests, the worst first.

    Args:
        milliseconds: asks a request, and returns its processor time.
        texts: of the catalogue, from which requests are made.
        requests: how many.
        longest: the maximum number of characters of a request.
        seed: of all that is drawn.
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
