"""Valid shops that make searches slow, as a hostile feed could state them; the same number gives the same shops.

Each has the most aliases and categories that a catalogue allows, and texts of one kind: few distinct characters, one
beginning, Han, combining marks, or single letters.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from bench.invented import CATEGORIES

_SEED: Final = 20_261_126
_ALIASES: Final = 50
_TEXT_MAX: Final = 300
_FILLING: Final = 20  # categories of one shop
_HAN: Final = "株式会社銀座市場本店屋商"
_MARKS: Final = "\u0301\u0308\u0323\u0327\u0338\u20dd"
PREFIX: Final = "superduperdiscountmegamarketworldwide"

Text = Callable[[random.Random], str]


def _two_runs(chance: random.Random) -> str:
    runs = chance.randint(100, 200)
    return "a" * runs + "b" * chance.randint(1, _TEXT_MAX - runs)


def _two_letters(chance: random.Random) -> str:
    return "ab" * chance.randint(50, 140) + chance.choice("abc") * chance.randint(1, 9)


def _random_two_letters(chance: random.Random) -> str:
    return "".join(chance.choices("ab", k=chance.randint(100, _TEXT_MAX)))


def _one_beginning(chance: random.Random) -> str:
    return PREFIX + "".join(chance.choices("abcdefghij", k=chance.randint(4, 12)))


def _han(chance: random.Random) -> str:
    return "".join(chance.choices(_HAN, k=chance.randint(60, 200)))


def _marks(chance: random.Random) -> str:
    return "".join(letter + chance.choice(_MARKS) * 3 for letter in chance.choices("aeo", k=chance.randint(20, 70)))


def _letters(chance: random.Random) -> str:
    return " ".join(chance.choices("abcdefgh", k=chance.randint(10, 40)))


def _words(chance: random.Random) -> str:
    return " ".join(chance.choices(CATEGORIES, k=chance.randint(2, 12)))


KINDS: Final[tuple[Text, ...]] = (
    _two_runs,
    _two_letters,
    _random_two_letters,
    _one_beginning,
    _han,
    _marks,
    _letters,
    _words,
)


def hostile_shops() -> Iterator[dict[str, Any]]:
    """Lines of `shops` without end, one of each kind in turn."""
    chance = random.Random(_SEED)
    number = 0
    while True:
        text = KINDS[number % len(KINDS)]
        labels = ".".join(chance.sample(CATEGORIES, 4))
        yield {
            "id": f"hostile_{number:08d}",
            "name": text(chance),
            "domain": f"{labels}.hostile-{number}.internal",
            "categories": [{"slug": slug, "name": slug.title()} for slug in _categories(chance)],
            "countries": [],
            "popularity": None if chance.random() < 0.5 else round(chance.random(), 4),
            "aliases": [text(chance) for _ in range(_ALIASES)],
            "source": "invented",
            "visibility": "public",
        }
        number += 1


def mixed_with_hostile(lines: Iterable[dict[str, Any]], every: int) -> Iterator[dict[str, Any]]:
    """The lines of any corpus, with a hostile shop after each `every` of them."""
    hostile = hostile_shops()
    shops = iter(lines)
    while chunk := list(islice(shops, every)):
        yield from chunk
        yield next(hostile)


def _categories(chance: random.Random) -> list[str]:
    more = [f"{slug}-{other}" for slug in CATEGORIES for other in CATEGORIES if slug != other]
    return [*CATEGORIES, *chance.sample(more, _FILLING - len(CATEGORIES))]
