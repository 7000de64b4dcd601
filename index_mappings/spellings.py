"""Alternative spellings of a name: `&` as a word, letters spelt out, no leading article (X2)."""

from collections.abc import Iterator
from typing import Final
from unicodedata import category, normalize

from index_mappings.characters import APOSTROPHES
from index_mappings.text import fold, without_ignorable

_AND: Final = str.maketrans({"&": " and ", "+": " and ", "＆": " and ", "＋": " and "})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_NORDIC: Final = str.maketrans({"ø": "oe", "å": "aa", "Ø": "Oe", "Å": "Aa"})
# The list of X2. The French and Italian `l'` is missing, because it is written together with its word.
_ARTICLES: Final = frozenset(
    ("the", "der", "die", "das", "le", "la", "les", "el", "los", "las", "il", "gli", "het", "de")
)


def readings(text: str) -> tuple[str, ...]:
    """The text, and the text with `&` and `+` as words."""
    return tuple(dict.fromkeys((text, text.translate(_AND))))


def spellings(text: str) -> tuple[str, ...]:
    """Each reading unchanged, with all umlauts spelt out, and with ø and å spelt out."""
    if text.isascii():
        return readings(text)
    return tuple(dict.fromkeys(spelling for reading in readings(text) for spelling in _spelt_out(reading)))


def without_articles(names: tuple[str, ...]) -> Iterator[str]:
    """The remainder of each name with a leading article, if it has a letter or a number."""
    for name in names:
        rest = _after_article(without_ignorable(name).strip())
        if any(category(char)[0] in "LN" for char in fold(rest)):
            yield rest


def _after_article(name: str) -> str:
    if name[:1] in ("l", "L") and name[1:2] in tuple(APOSTROPHES):
        return name[2:].strip()
    first, *rest = name.split(maxsplit=1) or [""]
    return rest[0] if rest and fold(first) in _ARTICLES else ""


def _spelt_out(reading: str) -> tuple[str, ...]:
    composed = normalize("NFC", reading)
    return reading, composed.translate(_UMLAUTS), composed.translate(_NORDIC)
