"""The order of results: the tiers of a match, and the sort keys within a tier.

Tiers are small integers, the better ones first (M2, M4, M9); the lengths that decide them are here as well. Within a
tier the order is popularity descending, then id ascending by code point (M1); M11 states the other orders.
"""

import struct
from enum import IntEnum
from typing import Final

# The minimum length of a part of a name that counts as evidence; in Han, kana and Hangul it is 1 (M3).
INFIX_MIN: Final = 3
# The minimum length of a word that may be a prefix of a category's word; shorter ones must equal it (M9).
CATEGORY_PREFIX_MIN: Final = 3
# The minimum length of the words of a category's names that count alone; in Han and kana it is 1 (M5).
ALONE_MIN: Final = 3
# The minimum length of a word that names a category and may be two letters shorter than the name's word that it begins;
# a shorter one may be one letter shorter (M3): `food` is Foods, and `pet` not Peter.
CLIPPED_MIN: Final = 4
# While a query is one word, the minimum length with which a category's name in another language counts as its own does;
# in Han, kana and Hangul it is 1 (M4).
OTHER_LANGUAGE_MIN: Final = 4
# The same for a synonym (M4).
SYNONYM_MIN: Final = 5
# The minimum length of a stem by which a name that is not a category's own counts (M5).
STEM_MIN: Final = 4
# The minimum length of a text with which a compound ends (M5); in Han, kana and Hangul it is 1.
ENDING_MIN: Final = 4
# The maximum number of neighbouring words that are compared with whole names of categories (M5), and of countries (M3).
CATEGORY_RUN: Final = 6
COUNTRY_RUN: Final = 4
# Categories of a query that is being typed (M10). The minimum length of the text left after table words and of the last
# words of a query alone, and where it is not an own name; of the beginning of a name in another language; and of the
# beginning of a synonym, or of a word of such names. In Han, kana and Hangul they are 1.
LEFT_MIN: Final = 3
LEFT_OTHER_MIN: Final = 4
OTHER_NAME_MIN: Final = 2
SYNONYM_BEGINNING_MIN: Final = 3
# The same of the beginning of a word for a shop, and of a text with one typing error.
BEGUN_SHOP_WORD_MIN: Final = 2
CATEGORY_TYPO_MIN: Final = 5
# Typeahead: how many characters of a query count, and the minimum lengths for one and two typing errors (M9).
SUGGEST_CUT: Final = 64
ONE_TYPO_MIN: Final = 4
TWO_TYPOS_MIN: Final = 8
# No two typing errors touch a character of the key from here on: Han and rare scripts have too many (M9).
FIXED_FROM: Final = 0x3400
OVERLAP_WORDS: Final = 6
# The minimum length of an ignored word of a search that is compared alone with misspelt names (M6).
ASKED_ALONE_MIN: Final = 4
# Up to this length of a spaced form one shop is in the best tier: it is more often a prefix (M9).
ONE_SHOP_MAX: Final = 5
# From this length on, a prefix of a name must be at least half of it (M9.names).
HALF_MIN: Final = 6
# Words of a longer query that are a whole name have at least one letter in this many of the query's.
NAMED_PART: Final = 4

_ALL_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF
# Added to signed numbers of 64 bits so that they sort as unsigned ones.
_SIGN: Final = 2**63


class FindTier(IntEnum):
    """The tiers of find_shop, best last (M4). Each word of a reading has the evidence that the tier names, or better.

    A search without a query has only the tiers of categories.
    """

    PARTS = 1  # a part of a name
    BEGINNINGS = 2  # begins a word, any category that it means, or a label of the domain or a country
    BEGINS_KEY = 3  # the whole query
    BEGINS_FULL = 4  # the whole query
    ANY_CATEGORY = 5  # a category that it names
    FIRST_CATEGORY = 6  # the shop's first category, or a country that the shop states
    WORDS = 7  # a word, for each of several words as typed
    FIRST_WORDS = 8  # the whole query is the first words of a full form
    EQUALS_FULL = 9


class SuggestTier(IntEnum):
    """The tiers of /suggest, best last (M9)."""

    HALF_OF_WORDS = 0  # half of the letters are in words of the shop, or one word is a whole name
    MOST_OF_WORDS = 1  # three quarters of the letters are in words of the shop
    PART_IS_NAME = 2  # the first or last words are a whole name
    TWO_TYPOS = PART_IS_NAME  # none in the first character, and only if no shop is in a better tier
    ONE_TYPO = 3
    WORDS_AND_CATEGORY = 4
    WORDS = 5  # or q is a prefix of a key; or the first words are a whole name, and the others mean its categories
    BEGINS_FORM = 6  # or q equals a key; or as below, of a shop that is not known to sell in the country
    BEGINS_NAME = 7  # with at least half of the name (HALF_MIN); or q equals the main label
    EQUALS_NAME = 8  # or the domain


def rank_key(popularity: float | None, shop_id: str) -> str:
    """A text whose ascending order is M1's order.

    A popularity is finite and from 0 up; None counts as 0. The text is the inverted bits of the popularity as 16
    hexadecimal digits (the bits of a number >= 0 sort like the number), and the ASCII id.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", (popularity or 0.0) + 0.0))
    return f"{_ALL_BITS - bits:016x}{shop_id}"


def suggestion_score(tier: int, popularity: float | None) -> float:
    """The score that /suggest shows: the tier plus p / (1 + p), where p is the popularity (M9)."""
    p = popularity or 0.0
    return tier + p / (1.0 + p)


def newest_first_key(timestamp_us: int | None, record_id: str) -> str:
    """A text whose ascending order is newest first, none last, then the ASCII id (M11)."""
    bits = 0 if timestamp_us is None else timestamp_us + _SIGN
    return f"{_ALL_BITS - bits:016x}{record_id}"


def coupon_rank_key(*, applied: bool, last_verified_us: int | None, coupon_id: str) -> str:
    """A text whose ascending order is M11's of coupons: applied ones first, then the last verified, then id."""
    return f"{0 if applied else 1}{newest_first_key(last_verified_us, coupon_id)}"
