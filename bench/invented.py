"""Invented shops in any number: seeded, so that the same number always gives the same shops.

A name is one to three words; a word is two to four syllables drawn from the syllables below. Popularity falls with the
rank as 1 / sqrt(rank), and a third of the shops has none. Domains end in `.internal`.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from index_mappings.text import fold

_ONSETS: Final = (
    "b",
    "br",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "r",
    "sh",
    "t",
    "tr",
    "v",
)
_NUCLEI: Final = ("a", "e", "i", "o", "u", "ai", "ea", "ie", "oo", "ou", "ö", "ü", "é")
_CODAS: Final = ("", "", "", "l", "m", "n", "r", "s", "t", "nd", "rk", "st")
_CATEGORIES: Final = ("books", "shoes", "garden", "toys", "tools", "music", "food", "sports", "beauty", "travel")
_COUNTRIES: Final = ("DE", "AT", "FR", "GB", "US", "JP", "SE", "PL")
_SEED: Final = 20_261_101


def invented_shops(count: int) -> Iterator[dict[str, Any]]:
    """Lines of `shops`."""
    chance = random.Random(_SEED)
    for number in range(count):
        name = " ".join(_word(chance) for _ in range(chance.choice((1, 1, 2, 2, 3)))).title()
        yield {
            "id": f"shop_{number:08d}",
            "name": name,
            "domain": f"{fold(_word(chance))}-{number}.internal",
            "categories": [
                {"slug": slug, "name": slug.title()} for slug in chance.sample(_CATEGORIES, chance.choice((1, 1, 2)))
            ],
            "countries": chance.sample(_COUNTRIES, chance.choice((0, 1, 1, 2))),
            "popularity": None if chance.random() < 1 / 3 else round((number + 1) ** -0.5, 4),
            "aliases": [_word(chance).title()] if chance.random() < 0.2 else [],
            "visibility": "under_review" if chance.random() < 0.02 else "public",
        }


def write_invented(path: Path, count: int) -> Path:
    """Write invented shops as one NDJSON file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line, ensure_ascii=False)}\n" for line in invented_shops(count))
    return path


def _word(chance: random.Random) -> str:
    return "".join(
        chance.choice(_ONSETS) + chance.choice(_NUCLEI) + chance.choice(_CODAS) for _ in range(chance.randint(2, 4))
    )
