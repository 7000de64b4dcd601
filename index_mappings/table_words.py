"""Table words by language (`table_words.toml`, M3): words for a shop, joining words and words of asking."""

import tomllib
from pathlib import Path
from typing import Final
from unicodedata import category, normalize

from index_mappings.text import PLAIN, fold

_TABLE: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("table_words.toml").read_text(encoding="utf-8")
)


def unfolded(typed: str) -> str:
    """A typed word with its marks, in lower case, NFC, without punctuation, as table words and stems take it."""
    if typed.isascii() and typed.isalnum():
        return typed.lower()
    composed = normalize("NFC", typed.translate(PLAIN).lower())
    return "".join(char for char in composed if category(char)[0] in "LMN")


def _words(*kinds: str) -> frozenset[str]:
    return frozenset(unfolded(word) for kind in kinds for words in _TABLE.values() for word in words[kind].split())


def words_in(language: str, *kinds: str) -> tuple[str, ...]:
    """The words of a language as the table has them; none of a language that it lacks."""
    return tuple(word for kind in kinds for word in _TABLE.get(language, {}).get(kind, "").split())


# The languages of the table, as in BCP 47. The names of countries are known in each of them (M3 e).
LANGUAGES: Final = tuple(_TABLE)
# The words for a shop, its seller, and "online".
SHOP_WORDS: Final = _words("shop")
TABLE_WORDS: Final = _words("shop", "joining", "asking")
# The words for a shop as folded texts, with which a compound may end (M5), the longest first.
SHOP_ENDINGS: Final = tuple(sorted({fold(word) for word in SHOP_WORDS}, key=lambda word: (-len(word), word)))


def is_table_word(typed: str) -> bool:
    """Whether a word is a table word as it is typed: `thé` is not `the`."""
    return unfolded(typed) in TABLE_WORDS
