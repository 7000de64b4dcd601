"""The tiers: a match's best evidence as a small integer; a better tier always comes first (M2, M4, M9)."""

from enum import IntEnum
from typing import Final

# A part of a name counts as evidence from so many characters up; in Han, kana and Hangul one says enough (M3).
INFIX_MIN: Final = 3
# A word begins a category's word from so many characters up; shorter ones must equal it (M5).
CATEGORY_PREFIX_MIN: Final = 3
# Words of a category's other names count from so many characters up; in Han and kana one says enough (M5).
OTHER_NAME_MIN: Final = 3
# From so many characters up one typing error is forgiven where a text begins no category's word (M10).
CATEGORY_TYPO_MIN: Final = 5
# Typeahead: how much of the text counts, and from which length one and two typing errors are allowed (M9).
SUGGEST_CUT: Final = 64
ONE_TYPO_MIN: Final = 4
TWO_TYPOS_MIN: Final = 8
# Of two typing errors none touches a character of the key from here on: Han characters, and scripts that few write.
# Those before it belong to alphabets, so that few of them follow one beginning (M9).
FIXED_FROM: Final = 0x3400
OVERLAP_WORDS: Final = 6
# Up to so many characters of the spaced form, only one shop is in the best tier: they are more often the beginning of a
# better-known name (M9).
ONE_SHOP_MAX: Final = 5
# From so many characters on, what begins a name holds at least half of it (M9.names).
HALF_MIN: Final = 6
# Words of a query that are a whole name, others beside them, hold at least one in so many of its letters.
NAMED_PART: Final = 4


class FindTier(IntEnum):
    """The tiers of find_shop, best last (M4)."""

    CATEGORY = 0  # some word is only a category's
    LABELS = 1  # every word is of a name, as below, or a label of the domain next to another word
    INFIX = 2  # every word is a word, begins one or is a part of a name
    WORDS = 3  # every word is a word or begins one
    BEGINS_KEY = 4
    BEGINS_FULL = 5
    EQUALS_FULL = 6


class SuggestTier(IntEnum):
    """The tiers of /suggest, best last (M9)."""

    HALF_OF_WORDS = 0  # half of the letters are in words of the shop, or one word is a whole name
    MOST_OF_WORDS = 1  # three quarters of the letters are
    PART_IS_NAME = 2  # the first or last words are a whole name
    TWO_TYPOS = PART_IS_NAME  # none in the first character, and only where no shop is in a better tier
    ONE_TYPO = 3
    WORDS_AND_CATEGORY = 4
    WORDS = 5  # or q begins a key, or its first words are a whole name, and the others say categories of the shop
    BEGINS_FORM = 6  # or is a whole key; or as below, of a shop that is not known to sell in the country
    BEGINS_NAME = 7  # of which it is not too little, or is the main label
    EQUALS_NAME = 8  # or the domain


def is_part_evidence(word: str, *, ideographic: bool) -> bool:
    """Whether the word is long enough to be looked for inside a name (M3 d)."""
    return ideographic or len(word) >= INFIX_MIN
