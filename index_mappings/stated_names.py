"""The names of a shop as its source states them, to be compared with those of another shop (A12).

Being found is generous: `forms.whole_names` holds transliterations and joined spellings too. Two shops that meet only
there need not have one name.
"""

from collections.abc import Iterable
from typing import Final
from unicodedata import normalize

from index_mappings.documents import Shop
from index_mappings.text import fold

_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_AND: Final = str.maketrans({"&": " and ", "+": " and ", "＆": " and ", "＋": " and "})


def stated_names(name: str, aliases: Iterable[str]) -> frozenset[str]:
    """The spaced folded forms of a name and its aliases, without transliteration."""
    return frozenset(form for text in (name, *aliases) for form in _spaced_forms(text) if form)


def shared_names(first: Shop, second: Shop) -> frozenset[str]:
    """The names that both shops state (A12's "same name"); empty where there are none."""
    return stated_names(first.name, first.aliases) & stated_names(second.name, second.aliases)


def _spaced_forms(text: str) -> Iterable[str]:
    for reading in (text, text.translate(_AND)):
        yield fold(reading)
        yield fold(normalize("NFC", reading).translate(_UMLAUTS))
