"""The only text folding there is: names when they are indexed, queries when they are typed (X1).

Both sides call the same function, so that no engine's analyzer takes part in matching (X4).
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final

from index_mappings.characters import ASCII, BARE, LATIN, PLAIN, SPACED, TYPED, VISIBLE, Characters

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


def without_ignorable(text: str) -> str:
    """Drop what nobody sees: format characters (Cf) and default-ignorable ones, such as variation selectors."""
    return text if text.isascii() else text.translate(VISIBLE)


def is_blank(text: str) -> bool:
    """Whether nothing is there but white space and what nobody sees."""
    return not without_ignorable(text).strip()


@lru_cache(maxsize=16_384)
def fold(text: str) -> str:
    """Fold text for comparison: lower case, no marks, words separated by one space (X1).

    Hiragana is katakana, and Hangul the jamo that are typed, so that a syllable begun begins the whole one.

    Args:
        text: any text; its length is the caller's business.

    Returns:
        The folded words, or, for text that has no letter, mark or number and is not blank, its lower-cased trimmed
        self. Folding twice changes nothing.
    """
    return _folded(text, TYPED)


def fold_by_script(text: str) -> str:
    """The folded text with its hiragana and its Hangul syllables: by their scripts words are told apart (X2)."""
    return _folded(text, BARE)


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
    return any(unicodedata.category(char)[0] in "LMN" for char in text) and _fold_once(text, TYPED) != ""


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


def _folded(text: str, letters: Characters) -> str:
    current = text
    while (folded := _fold_once(current, letters)) != current:
        current = folded
        if current.isascii():
            break  # as it is folded already, once more changes nothing
    return current or without_ignorable(text).strip().lower()


def _fold_once(text: str, letters: Characters) -> str:
    if text.isascii():
        return " ".join(text.lower().translate(ASCII).split())
    folded = unicodedata.normalize("NFKC", text.translate(PLAIN)).casefold()
    bare = unicodedata.normalize("NFD", folded).translate(letters)
    composed = unicodedata.normalize("NFC", bare).translate(LATIN)
    if composed.isascii() or composed.translate(PLAIN) != composed:
        # Compatibility forms of an apostrophe (｀) appear only now: they are dropped, not made a space.
        return _fold_once(composed, letters)
    return " ".join(composed.translate(SPACED).split())
