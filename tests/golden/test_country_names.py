"""The table of the names of countries is what CLDR says, by `babel`, in English and their official languages (M3 e)."""

from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
from babel import Locale, UnknownLocaleError
from babel.languages import get_official_languages

import index_mappings.countries
from index_mappings.countries import COUNTRY_CODES, country_names
from index_mappings.text import words_of
from index_mappings.tiers import COUNTRY_RUN
from tests.golden.golden import assert_golden

# What people write although it is no name in CLDR.
_SHORT: Final = {"uk": "GB", "usa": "US", "uae": "AE"}


def _locale(language: str) -> Locale | None:
    try:
        return Locale.parse(language)
    except UnknownLocaleError:
        return None


def _names() -> dict[str, str]:
    found = defaultdict(set)
    for code in COUNTRY_CODES:
        languages = get_official_languages(code, regional=False, de_facto=True)
        for locale in map(_locale, ("en", *languages)):
            words = words_of(locale.territories.get(code, "")) if locale else ()
            if 0 < len(words) <= COUNTRY_RUN:
                found[" ".join(words)].add(code)
    for name, code in _SHORT.items():
        found[name].add(code)
    return {name: " ".join(sorted(codes)) for name, codes in found.items()}


@pytest.mark.rule("M3.labels")
def test_the_names_of_countries_are_those_of_cldr() -> None:
    assert_golden("country_names.json", _names(), directory=Path(index_mappings.countries.__file__).parent)
    names = {
        name: country_names()[name] for name in ("germany", "deutschland", "united kingdom", "uk", "suisse", "日本")
    }
    assert names == {
        "germany": ("DE",), "deutschland": ("DE",), "united kingdom": ("GB",), "uk": ("GB",), "suisse": ("CH",),
        "日本": ("JP",),
    }  # fmt: skip
