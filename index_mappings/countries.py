"""The country codes that both sides accept (R4), and the groups and territories of shipping statements (A7).

Sources of the groups: the member lists of the European Union (2020 on) and of the European Economic Area, and common
usage in trade for the others. A group that is not here is an error in a catalogue. The territories are those areas
that ISO 3166-1 gives a code of their own although a state administers them.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final

import pycountry

# XK, Kosovo, is a user-assigned code, not one of ISO; shops that trade there need it.
COUNTRY_CODES: Final = frozenset(country.alpha_2 for country in pycountry.countries) | {"XK"}
WORLDWIDE: Final = "WORLDWIDE"

_EU: Final = frozenset(
    "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK".split()  # noqa: SIM905
)
_NORDICS: Final = frozenset({"DK", "FI", "IS", "NO", "SE"})

GROUPS: Final[dict[str, frozenset[str]]] = {
    "EU": _EU,
    "EEA": _EU | {"IS", "LI", "NO"},
    "EFTA": frozenset({"CH", "IS", "LI", "NO"}),
    "DACH": frozenset({"AT", "CH", "DE"}),
    "BENELUX": frozenset({"BE", "LU", "NL"}),
    "NORDICS": _NORDICS,
    "BALTICS": frozenset({"EE", "LT", "LV"}),
    "IBERIA": frozenset({"ES", "PT"}),
    "BRITISH_ISLES": frozenset({"GB", "GG", "IE", "IM", "JE"}),
    "NORTH_AMERICA": frozenset({"CA", "MX", "US"}),
    "ANZ": frozenset({"AU", "NZ"}),
}

# What a shipping statement may name.
DESTINATIONS: Final = COUNTRY_CODES | GROUPS.keys() | {WORLDWIDE}

# The state of each territory.
TERRITORIES: Final[dict[str, str]] = {
    territory: state
    for state, territories in {
        "AU": "CC CX HM NF", "CN": "HK MO", "DK": "FO GL", "FI": "AX",
        "FR": "BL GF GP MF MQ NC PF PM RE TF WF YT",
        "GB": "AI BM FK GG GI GS IM IO JE KY MS PN SH TC VG",
        "NL": "AW BQ CW SX", "NO": "BV SJ", "NZ": "CK NU TK", "US": "AS GU MP PR UM VI",
    }.items()
    for territory in territories.split()
}  # fmt: skip


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
