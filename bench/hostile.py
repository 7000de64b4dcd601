"""Valid shops that make searches slow, as a hostile feed could state them; the same number gives the same shops.

Each has the most aliases and categories that a catalogue allows, and texts of one kind: few distinct characters, one
beginning, Han, combining marks, or single letters. Coupons have distinct times, as many as a feed likes.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from bench.invented import CATEGORIES
from index_mappings.countries import COUNTRY_CODES

_SEED: Final = 20_261_126
_ALIASES: Final = 50
_TEXT_MAX: Final = 300
_FILLING: Final = 20  # categories of one shop
_MANY: Final = 1_000  # coupons, and offers, of one shop
_CODES: Final = sorted(COUNTRY_CODES)
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_YEARS_US: Final = 10 * 365 * 86_400_000_000
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


def hostile_records(shops: Sequence[Mapping[str, Any]], coupons: int) -> dict[str, list[dict[str, Any]]]:
    """Lines of the other files, by kind; the first shop has the most records of each.

    No two coupons begin or end at the same time. Those of the first shop name up to all countries as valid and as
    blocked, and shipping statements name up to all as destinations.
    """
    chance = random.Random(_SEED)
    shop_ids, domains = ([shop[name] for shop in shops] for name in ("id", "domain"))
    many, *others = shop_ids
    return {
        "coupons": [
            _coupon(chance, number, many, len(_CODES))
            if number < _MANY
            else _coupon(chance, number, others[number % len(others)], 3)
            for number in range(coupons)
        ],
        "offers": [
            {
                "id": f"hostile_{number:08d}",
                "shop_id": many if number < _MANY else chance.choice(others),
                "title": "Offer",
                "updated_at": _time(chance),
            }
            for number in range(2 * _MANY)
        ],
        "shipping": [
            {
                "shop_id": shop_id,
                "destinations": _countries(chance, len(_CODES)),
                "destinations_exhaustive": chance.random() < 0.5,
            }
            for shop_id in shop_ids[::2]
        ],
        "policies": [
            {
                "shop_id": many,
                "kind": "returns",
                "country": country,
                "category": "unlimited",
                "source": "test",
                "checked_at": _time(chance),
            }
            for country in _CODES
        ],
        "redirects": [
            {"from_domain": domains[0], "to_domain": domain, "observed_at": _time(chance)}
            for domain in domains[1:_MANY:10]
        ],
    }


def _coupon(chance: random.Random, number: int, shop_id: str, countries: int) -> dict[str, Any]:
    """A coupon, of which one in five is valid, and one in five blocked, in up to so many countries."""
    start, end = sorted((_time(chance), _time(chance)))
    verified = chance.random() < 0.3
    return {
        "id": f"hostile_{number:08d}",
        "shop_id": shop_id,
        "code": f"CODE{number}",
        "verification_status": chance.choice(("verified_applied", "verified_rejected")) if verified else "unverified",
        "last_verified_at": start if verified else None,
        "valid_from": start,
        "valid_until": end,
        "countries": _countries(chance, countries) if chance.random() < 0.2 else [],
        "blocked_countries": _countries(chance, countries) if chance.random() < 0.2 else [],
        "blocked_channels": chance.choice(([], [], [], ["mcp"], ["rest", "stdio"])),
    }


def _time(chance: random.Random) -> str:
    return f"{_EPOCH + timedelta(microseconds=chance.randrange(_YEARS_US)):%Y-%m-%dT%H:%M:%S.%fZ}"


def _countries(chance: random.Random, most: int) -> list[str]:
    return chance.sample(_CODES, chance.choice((1, 2, most)))
