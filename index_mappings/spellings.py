"""How a name may be spelt besides as it is stated: `&` as a word, letters spelt out, no leading article (X2)."""

from collections.abc import Iterator
from typing import Final
from unicodedata import category, normalize

from index_mappings.characters import APOSTROPHES
from index_mappings.text import fold, without_ignorable

_AND: Final = str.maketrans({"&": " and ", "+": " and ", "＆": " and ", "＋": " and "})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_NORDIC: Final = str.maketrans({"ø": "oe", "å": "aa", "Ø": "Oe", "Å": "Aa"})
# More only by X2's table. The French and Italian `l'` is written together with its word, and so is no token.
_ARTICLES: Final = frozenset(
    ("the", "der", "die", "das", "le", "la", "les", "el", "los", "las", "il", "gli", "het", "de")
)


def readings(text: str) -> tuple[str, ...]:
    """The text as it is, and with `&` and `+` as words."""
    return tuple(dict.fromkeys((text, text.translate(_AND))))


def spellings(text: str) -> tuple[str, ...]:
    """Each reading as it is, with all umlauts spelt out, and with ø and å spelt out."""
    if text.isascii():
        return readings(text)  # there is nothing to spell in another way
    return tuple(dict.fromkeys(spelling for reading in readings(text) for spelling in _spelt_out(reading)))


def without_articles(names: tuple[str, ...]) -> Iterator[str]:
    """What is behind the articles that lead some of the names, where it has a letter or a number."""
    for name in names:
        rest = _behind_article(without_ignorable(name).strip())
        if any(category(char)[0] in "LN" for char in fold(rest)):
            yield rest


def _behind_article(name: str) -> str:
    if name[:1] in ("l", "L") and name[1:2] in tuple(APOSTROPHES):
        return name[2:].strip()
    first, *rest = name.split(maxsplit=1) or [""]
    return rest[0] if rest and fold(first) in _ARTICLES else ""


def _spelt_out(reading: str) -> tuple[str, ...]:
    composed = normalize("NFC", reading)
    return reading, composed.translate(_UMLAUTS), composed.translate(_NORDIC)
