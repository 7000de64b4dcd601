"""A catalogue that is hard on the typeahead: many characters follow one beginning, and many shops have one word.

A quarter of the shops are named by two Han characters and more behind the same four, as Japanese companies are; others
by Hangul, kana, letters, or words of which a few are in most names. The same seed gives the same shops.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from tests.support.catalogues import shop

CATEGORIES: Final = ("books", "shoes", "garden", "toys", "tools", "music", "food", "sports", "beauty", "travel")
COMMON: Final = (
    *("shop", "store", "online", "the", "de", "company", "market", "group", "and", "center", "world"),
    *("best", "home", "international", "trading", "house"),
)
COUNTRIES: Final = ("DE", "AT", "FR", "GB", "US", "JP", "SE", "PL")
COMPANY: Final = "株式会社"
HAN: Final = "".join(map(chr, range(0x4E00, 0x9FA5)))
HANGUL: Final = "".join(map(chr, range(0xAC00, 0xD7A3, 5)))
KANA: Final = "".join(map(chr, range(0x30A2, 0x30F0)))
_ONSETS: Final = ("b", "br", "ch", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "sh", "t", "tr", "v")
_T = TypeVar("_T")


def crowded(count: int, seed: int = 7) -> Iterator[tuple[str, dict[str, Any]]]:
    chance = random.Random(seed)  # noqa: S311 - the same each time
    han = chance.sample(HAN, len(HAN))
    for number in range(count):
        domain = f"{chance.choice(('', '', '', 'shop.', 'store.'))}{_word(chance, 2)}{number}.com"
        yield (
            f"s{number:07d}",
            shop(
                _name(chance, han),
                domain,
                popularity=None if chance.random() < 1 / 3 else round((number + 1) ** -0.5, 4),
                countries=chance.sample(COUNTRIES, chance.choice((0, 1, 1, 2))),
                categories=chance.sample(CATEGORIES, chance.choice((1, 1, 2))),
            ),
        )


def _name(chance: random.Random, han: Sequence[str]) -> str:
    kind = chance.randrange(8)
    if kind < 2:
        return COMPANY + "".join(_often_early(chance, han) for _ in range(chance.randint(2, 6)))
    letters = (HANGUL, KANA)
    if kind < 4:
        return "".join(chance.choices(letters[kind - 2], k=chance.randint(3, 12)))
    if kind == 4:
        return " ".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9)))
    common = [_often_early(chance, COMMON) for _ in range(chance.randint(0, 4))]
    return " ".join(
        [*common, *(_word(chance, chance.randint(1, 3)) for _ in range(chance.randint(0 if common else 1, 2)))]
    )


def _word(chance: random.Random, syllables: int) -> str:
    return "".join(f"{chance.choice(_ONSETS)}{chance.choice('aeiou')}" for _ in range(syllables))


def _often_early(chance: random.Random, items: Sequence[_T]) -> _T:
    return items[min(len(items), int(len(items) ** chance.random())) - 1]
