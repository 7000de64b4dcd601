"""The accepted country codes (R4), and where statements say that a shop ships (A7, `country_groups.toml`)."""

import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import pycountry

WORLDWIDE: Final = "WORLDWIDE"
# By code, the markets that shops may state. XK is a user-assigned code, not one of ISO; shops that trade there need it.
MARKET_NAMES: Final[dict[str, str]] = {
    **{country.alpha_2: getattr(country, "common_name", country.name) for country in pycountry.countries},
    "XK": "Kosovo",
    WORLDWIDE: "Worldwide",
}
COUNTRY_CODES: Final = frozenset(MARKET_NAMES) - {WORLDWIDE}

_TABLES: Final = tomllib.loads(Path(__file__).with_name("country_groups.toml").read_text(encoding="utf-8"))
GROUPS: Final[dict[str, frozenset[str]]] = {name: frozenset(codes.split()) for name, codes in _TABLES["groups"].items()}
GROUP_NAMES: Final[dict[str, str]] = {WORLDWIDE: MARKET_NAMES[WORLDWIDE], **_TABLES["group_names"]}
# What a shipping statement may name.
DESTINATIONS: Final = COUNTRY_CODES | GROUPS.keys() | {WORLDWIDE}

# The state of each territory.
TERRITORIES: Final[dict[str, str]] = {
    territory: state for state, territories in _TABLES["territories"].items() for territory in territories.split()
}

Verdict = Literal["yes", "no", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("yes", "no", "unknown")
# In the terms of a shop's verdicts: every country without a separate term.
OTHER_COUNTRIES: Final = "*"


@cache
def country_names() -> dict[str, tuple[str, ...]]:
    """By the folded name of one to four words, the codes of the countries (M3 e), as CLDR has them (`make golden`)."""
    names: dict[str, str] = json.loads(Path(__file__).with_name("country_names.json").read_text(encoding="utf-8"))
    return {name: tuple(codes.split()) for name, codes in names.items()}


@cache
def words_of_countries() -> frozenset[str]:
    """The words of `country_names`, by which most queries are seen to name none."""
    return frozenset(word for name in country_names() for word in name.split())


@cache
def groups_of(country: str) -> frozenset[str]:
    """The groups that a country is in."""
    return frozenset({WORLDWIDE, *(name for name, members in GROUPS.items() if country in members)})


def ships_to(stated: Mapping[str, Any] | None, country: str) -> Verdict:
    """Whether a shop ships to a country: no if excluded, yes if named, no if the list is complete, else unknown.

    `stated` is a shipping statement as documents store it; None if there is none. What names the country itself counts
    before groups. A complete list with a state says nothing of its territories.
    """
    if stated is None:
        return "unknown"
    excluded, named = frozenset(stated["excluded"]), frozenset(stated["destinations"] or ())
    for names in (frozenset({country}), groups_of(country)):
        if names & excluded:
            return "no"
        if names & named:
            return "yes"
    state = TERRITORIES.get(country)
    if state is not None and named & {state, *groups_of(state)}:
        return "unknown"
    is_complete = stated["destinations"] is not None and stated["destinations_exhaustive"]
    return "no" if is_complete else "unknown"


def shipping_terms(stated: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The terms of all verdicts of `ships_to`: one for most countries and one for each other, as `yes:*`, `no:CH`."""
    usual = ships_to(stated, OTHER_COUNTRIES)
    if stated is None:
        return (f"{usual}:{OTHER_COUNTRIES}",)
    names = {*stated["excluded"], *(stated["destinations"] or ())}
    named = names.union(*(GROUPS.get(name, ()) for name in names))
    # A country that is neither named nor a territory of a named one has the verdict of any other such country.
    named.update(territory for territory, state in TERRITORIES.items() if state in named)
    own = {country: ships_to(stated, country) for country in sorted(COUNTRY_CODES & named)}
    counts = Counter({usual: len(COUNTRY_CODES) - len(own)}) + Counter(own.values())
    most = max(VERDICTS, key=counts.__getitem__)
    if most != usual:
        own = {country: ships_to(stated, country) for country in sorted(COUNTRY_CODES)}
    return (f"{most}:{OTHER_COUNTRIES}", *(f"{own[country]}:{country}" for country in own if own[country] != most))
