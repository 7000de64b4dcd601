"""Invented shops in any number: seeded, so that the same number always gives the same shops.

A name is one to three words; a word is two to four syllables drawn from the syllables below. Popularity falls with the
rank as 1 / sqrt(rank), and a third of the shops has none. Domains end in `.internal`. Related records come from a
sequence of their own: some shops have coupons, offers, a shipping statement or trust signals, and few have all of them.
"""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from index_mappings.text import fold

_ONSETS: Final = sorted((*"bdfghklmnprtv", "br", "ch", "dr", "gr", "kl", "sh", "tr"))
_NUCLEI: Final = ("a", "e", "i", "o", "u", "ai", "ea", "ie", "oo", "ou", "ö", "ü", "é")
_CODAS: Final = ("", "", "", "l", "m", "n", "r", "s", "t", "nd", "rk", "st")
CATEGORIES: Final = ("books", "shoes", "garden", "toys", "tools", "music", "food", "sports", "beauty", "travel")
_COUNTRIES: Final = ("DE", "AT", "FR", "GB", "US", "JP", "SE", "PL")
_SEED: Final = 20_261_101
_RELATED_SEED: Final = 20_261_121
_TRUST: Final = {"tls_issuer": "Invented Authority", "tls_grade": "A", "registrar": "Invented Registrar"}


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
                {"slug": slug, "name": slug.title()} for slug in chance.sample(CATEGORIES, chance.choice((1, 1, 2)))
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


def invented_related_records(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines of the other record types with their types, shop by shop."""
    chance = random.Random(_RELATED_SEED)
    for number in range(count):
        shop_id = f"shop_{number:08d}"
        if chance.random() < 0.15:
            for each in range(chance.randint(1, 3)):
                yield "coupons", _coupon(chance, shop_id, each)
        if chance.random() < 0.15:
            for each in range(chance.randint(1, 4)):
                yield "offers", _offer(chance, shop_id, each)
        if chance.random() < 0.1:
            yield "shipping", _shipping(chance, shop_id)
        if chance.random() < 0.1:
            yield from (("trust", _signal(chance, shop_id, kind, value)) for kind, value in _TRUST.items())


def write_catalogue(directory: Path, count: int) -> Path:
    """Write invented shops and their related records as a catalogue directory."""
    directory.mkdir(parents=True)
    write_invented(directory / "shops.ndjson", count)
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context((directory / f"{kind}.ndjson").open("w", encoding="utf-8"))
            for kind in ("coupons", "offers", "shipping", "trust")
        }
        for kind, line in invented_related_records(count):
            files[kind].write(f"{json.dumps(line, ensure_ascii=False)}\n")
    return directory


def _coupon(chance: random.Random, shop_id: str, each: int) -> dict[str, Any]:
    verified = chance.random() < 0.6
    return {
        "id": f"coupon_{shop_id}_{each}",
        "shop_id": shop_id,
        "code": f"{_word(chance).encode('ascii', 'ignore').decode().upper()}{chance.randint(5, 40)}",
        "title": f"{_word(chance).title()} {_word(chance)}",
        "discount": {"kind": "percent", "value": str(chance.randint(5, 40))},
        "countries": chance.sample(_COUNTRIES, chance.choice((0, 1, 2))),
        "valid_until": f"2027-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
        "verification_status": "verified_applied" if verified else "unverified",
        "last_verified_at": _timestamp(chance) if verified else None,
        "source": "invented",
    }


def _offer(chance: random.Random, shop_id: str, each: int) -> dict[str, Any]:
    return {
        "id": f"offer_{shop_id}_{each}",
        "shop_id": shop_id,
        "title": " ".join(_word(chance) for _ in range(3)).title(),
        "price": {"amount": f"{chance.randint(1, 400)}.{chance.randint(0, 99):02d}", "currency": "EUR"},
        "availability": chance.choice(("in_stock", "out_of_stock", None)),
        "updated_at": _timestamp(chance),
    }


def _shipping(chance: random.Random, shop_id: str) -> dict[str, Any]:
    return {
        "shop_id": shop_id,
        "destinations": chance.sample(_COUNTRIES, 3),
        "delivery_time": {"min_days": 1, "max_days": chance.randint(2, 9), "as_stated": "a few days"},
        "checked_at": _timestamp(chance),
        "source": "policy_page",
    }


def _signal(chance: random.Random, shop_id: str, kind: str, value: str) -> dict[str, Any]:
    return {"shop_id": shop_id, "kind": kind, "value": value, "source": "invented", "checked_at": _timestamp(chance)}


def _timestamp(chance: random.Random) -> str:
    return f"2026-{chance.randint(1, 10):02d}-{chance.randint(1, 28):02d}T{chance.randint(0, 23):02d}:00:00Z"


def _word(chance: random.Random) -> str:
    return "".join(
        chance.choice(_ONSETS) + chance.choice(_NUCLEI) + chance.choice(_CODAS) for _ in range(chance.randint(2, 4))
    )
