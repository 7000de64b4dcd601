"""The only text folding there is: names when they are indexed, queries when they are typed (X1).

Both sides call the same function, so that no engine's analyzer takes part in matching (X4).
"""

import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final

_APOSTROPHES: Final = "'‘’ʼ′´`＇"

# Latin letters that Unicode does not decompose; their usual spelling without the special key.
_UNDECOMPOSABLE: Final = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ı": "i",
        "ȷ": "j",
        "ħ": "h",
        "ŧ": "t",
        "ŋ": "n",
        "ĸ": "k",
        "ƒ": "f",
        "ə": "e",
        "ɛ": "e",
        "ɔ": "o",
        "ɖ": "d",
        "ɓ": "b",
        "ɗ": "d",
        "ƙ": "k",
        "ƴ": "y",
        "ŀ": "l",
    }
)
_ASCII_PUNCTUATION: Final = {
    code: " " for code in range(128) if not chr(code).isalnum() and chr(code) not in _APOSTROPHES
} | {ord(mark): None for mark in _APOSTROPHES if ord(mark) < 128}  # noqa: PLR2004 - the end of ASCII

# Alphabets, marks and punctuation, without the many thousands of ideographs.
_REMEMBERED: Final = 0x3000


class _Characters(dict[int, str | None]):
    """For `str.translate`: what becomes of each character, decided when it is first met.

    Only so many are remembered: queries may hold any character there is.
    """

    def __init__(self, becomes: Callable[[str], str | None]) -> None:
        super().__init__()
        self._becomes = becomes

    def __missing__(self, code: int) -> str | None:
        becomes = self._becomes(chr(code))
        if code < _REMEMBERED:
            self[code] = becomes
        return becomes


def _is_format(char: str) -> bool:
    return unicodedata.category(char) == "Cf"


_WITHOUT_FORMAT: Final = _Characters(lambda char: None if _is_format(char) else char)
_KEPT: Final = _Characters(lambda char: None if _is_format(char) or char in _APOSTROPHES else char)
_BARE: Final = _Characters(lambda char: None if "\u0300" <= char <= "\u036f" else char)
_SPACED: Final = _Characters(lambda char: char if unicodedata.category(char)[0] in "LMN" else " ")

# How Unicode's names of Han, kana and Hangul characters begin, and their scripts.
_SCRIPTS: Final = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HIRAGANA": "Hiragana",
    "KATAKANA": "Katakana",
    "HANGUL": "Hangul",
}
_STARTS: Final = tuple(_SCRIPTS)
_LATIN: Final = frozenset(("LATIN",))


def without_format_characters(text: str) -> str:
    """Drop format characters (general category Cf): joiners, soft hyphens, direction marks."""
    if text.isascii():
        return text
    return text.translate(_WITHOUT_FORMAT)


def is_blank(text: str) -> bool:
    """Whether nothing but white space and format characters is there."""
    return not without_format_characters(text).strip()


@lru_cache(maxsize=16_384)
def fold(text: str) -> str:
    """Fold text for comparison: lower case, no marks, words separated by one space (X1).

    Args:
        text: any text; its length is the caller's business.

    Returns:
        The folded words, or, for text that has no letter, mark or number and is not blank, its lower-cased trimmed
        self. Folding twice changes nothing.
    """
    current = text
    while (folded := _fold_once(current)) != current:
        current = folded
        if current.isascii():
            break  # as it is folded already, once more changes nothing
    return current or without_format_characters(text).strip().lower()


def joined(folded: str) -> str:
    """The folded text without its spaces: ``mc donalds`` as ``mcdonalds``."""
    return folded.replace(" ", "")


def words_of(text: str) -> tuple[str, ...]:
    """The folded words of a text; empty for punctuation alone, which is no word (M6)."""
    folded = fold(text)
    return tuple(folded.split()) if has_word_character(folded) else ()


def has_word_character(text: str) -> bool:
    """Whether any letter, mark or number is in the text as folding sees it."""
    if text.isascii():
        return text.isalnum() or any(map(str.isalnum, text))
    return any(unicodedata.category(char)[0] in "LMN" for char in text) and _fold_once(text) != ""


def is_ideographic(text: str) -> bool:
    """Whether a Han, kana or Hangul character is in the text: there one character already says something (M3)."""
    return not text.isascii() and any(unicodedata.name(char, "").startswith(_STARTS) for char in text)


def script_starts(text: str) -> Iterator[int]:
    """The places inside words at which the script changes from or to Han, kana or Hangul: 銀座|コージーコーナー.

    Where words are not spaced, most begin so. Two characters of a script at least begin one (トイザらス has one word).
    """
    if text.isascii():
        return
    place = 0
    for script, characters in groupby(text, _script):
        size = len(tuple(characters))
        if place and size > 1 and " " not in (script, text[place - 1]):
            yield place
        place += size


def scripts_of(text: str) -> frozenset[str]:
    """The scripts of the letters of a text, each by the first word of its letters' names in Unicode."""
    if text.isascii():
        return _LATIN if any(map(str.isalpha, text)) else frozenset()
    return frozenset(unicodedata.name(char, "").partition(" ")[0] for char in text if char.isalpha())


def _script(char: str) -> str:
    """What tells Han, kana and Hangul from each other and from all others; a space is none of them."""
    if char == " ":
        return char
    name = unicodedata.name(char, "")
    return next((script for start, script in _SCRIPTS.items() if name.startswith(start)), "")


def _fold_once(text: str) -> str:
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII_PUNCTUATION).split())
    folded = unicodedata.normalize("NFKC", text.translate(_KEPT)).casefold()
    bare = unicodedata.normalize("NFD", folded).translate(_BARE)
    composed = unicodedata.normalize("NFC", bare).translate(_UNDECOMPOSABLE)
    if composed.isascii() or composed.translate(_KEPT) != composed:
        # Compatibility forms of an apostrophe (｀) appear only now: they are dropped, not made a space.
        return _fold_once(composed)
    return " ".join(composed.translate(_SPACED).split())
