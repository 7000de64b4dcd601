"""The country codes that both sides accept (R4), and the groups and territories of shipping statements (A7).

`country_groups.toml` has the groups and territories with their sources.
"""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

import pycountry

# XK, Kosovo, is a user-assigned code, not one of ISO; shops that trade there need it.
COUNTRY_CODES: Final = frozenset(country.alpha_2 for country in pycountry.countries) | {"XK"}
WORLDWIDE: Final = "WORLDWIDE"

_TABLES: Final = tomllib.loads(Path(__file__).with_name("country_groups.toml").read_text(encoding="utf-8"))
GROUPS: Final[dict[str, frozenset[str]]] = {name: frozenset(codes.split()) for name, codes in _TABLES["groups"].items()}
# What a shipping statement may name.
DESTINATIONS: Final = COUNTRY_CODES | GROUPS.keys() | {WORLDWIDE}

# The state of each territory.
TERRITORIES: Final[dict[str, str]] = {
    territory: state for state, territories in _TABLES["territories"].items() for territory in territories.split()
}


@cache
def country_names() -> dict[str, tuple[str, ...]]:
    """The codes of the countries of each name, by the folded name of one to four words (M3 e).

    The file is made of CLDR's names, by `babel`, in English and the official languages of each country (`make golden`).
    It is read at the first use.
    """
    names: dict[str, str] = json.loads(Path(__file__).with_name("country_names.json").read_text(encoding="utf-8"))
    return {name: tuple(codes.split()) for name, codes in names.items()}


@cache
def words_of_countries() -> frozenset[str]:
    """The words of `country_names`, by which most queries are seen to name none."""
    return frozenset(word for name in country_names() for word in name.split())


def groups_of(country: str) -> frozenset[str]:
    """The groups that a country is in."""
    return frozenset({WORLDWIDE, *(name for name, members in GROUPS.items() if country in members)})
