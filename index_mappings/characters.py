"""Tables of single characters for text folding (X1)."""

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

APOSTROPHES: Final = "'‘’ʼ′´`＇"

# Unicode's Default_Ignorable_Code_Point, first and last of each range: joiners, fillers, variation selectors, tags.
_IGNORABLE_RUNS: Final = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Marks that are removed after NFD: those of Latin, Greek and Cyrillic letters, the points of Hebrew, then the optional
# marks of Arabic script.
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

# The keys that type the Hangul jamo of NFD, in the order of Unicode: an initial and a final share a key, and a double
# final or a compound vowel takes two.
_INITIALS: Final = (0x1100, "ㄱ ㄲ ㄴ ㄷ ㄸ ㄹ ㅁ ㅂ ㅃ ㅅ ㅆ ㅇ ㅈ ㅉ ㅊ ㅋ ㅌ ㅍ ㅎ")
_VOWELS: Final = (0x1161, "ㅏ ㅐ ㅑ ㅒ ㅓ ㅔ ㅕ ㅖ ㅗ ㅗㅏ ㅗㅐ ㅗㅣ ㅛ ㅜ ㅜㅓ ㅜㅔ ㅜㅣ ㅠ ㅡ ㅡㅣ ㅣ")
_FINALS: Final = (
    0x11A8,
    "ㄱ ㄲ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅅ ㅅ ㅆ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ",
)
_JAMO: Final = {
    chr(code): typed for first, jamo in (_INITIALS, _VOWELS, _FINALS) for code, typed in enumerate(jamo.split(), first)
}

# Latin letters that Unicode does not decompose, with their usual spelling on other keyboards.
_UNDECOMPOSABLE: Final = {
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

# The most characters that a table caches, more than a catalogue of many scripts has: 2 MB.
_MAX_CACHED: Final = 16_384


class Characters(dict[int, int | str | None]):
    """A table for `str.translate` that is computed by a rule, which removes a character by None, and cached.

    The cache is bounded, because queries may have any character.
    """

    def __init__(self, rule: Callable[[str], str | None]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> int | str | None:
        """Compute the replacement of a character that is not cached."""
        char = chr(code)
        replacement: int | str | None = self._rule(char)
        if replacement == char:
            replacement = code  # takes less memory
        if len(self) < _MAX_CACHED:
            self[code] = replacement
        return replacement


def _codes(runs: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(code for first, last in runs for code in range(first, last + 1))


_IGNORABLE: Final = _codes(_IGNORABLE_RUNS)
_REMOVED: Final[dict[str, str | None]] = {chr(code): None for code in _codes(_MARK_RUNS)}
_AS_KATAKANA: Final = {chr(code): chr(code + _TO_KATAKANA) for code in _codes(_HIRAGANA)}
_BY_SCRIPT: Final[dict[str, str | None]] = {**_REMOVED, **_ARABIC}
_AS_TYPED: Final[dict[str, str | None]] = {**_BY_SCRIPT, **_AS_KATAKANA, **_JAMO}


def _is_ignorable(char: str) -> bool:
    return ord(char) in _IGNORABLE or unicodedata.category(char) == "Cf"


# Removes invisible characters.
VISIBLE: Final = Characters(lambda char: None if _is_ignorable(char) else char)
# Removes invisible characters and apostrophes.
PLAIN: Final = Characters(lambda char: None if _is_ignorable(char) or char in APOSTROPHES else char)
# For NFD: removes marks, and unifies letters of Arabic script that people interchange.
BARE: Final = Characters(lambda char: _BY_SCRIPT.get(char, char))
# The same, and changes hiragana to katakana, and Hangul to the jamo that are typed; NFC composes neither again.
TYPED: Final = Characters(lambda char: _AS_TYPED.get(char, char))
# For NFC: Latin letters as they are spelt on other keyboards.
LATIN: Final = str.maketrans(_UNDECOMPOSABLE)
# Replaces all but letters, marks and numbers by spaces.
SPACED: Final = Characters(lambda char: char if unicodedata.category(char)[0] in "LMN" else " ")
# The same for ASCII text, in one step: removes apostrophes, replaces other punctuation by spaces.
ASCII: Final[dict[int, str | None]] = {
    code: None if chr(code) in APOSTROPHES else " " for code in range(128) if not chr(code).isalnum()
}
