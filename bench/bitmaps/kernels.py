"""Compiled loops over bitmaps of shops, as words of 64 bits, and over the postings that fill them.

Bounds are checked, unlike those of the typeahead's kernel: an item that was damaged after its file was verified raises
IndexError, which becomes a failure of the search.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import njit

from shop_directory.typeahead.segment import POSTING_BITS

Items = np.ndarray[tuple[int], np.dtype[Any]]
Words = np.ndarray[tuple[int], np.dtype[np.uint64]]

_F = TypeVar("_F", bound=Callable[..., object])
_ONE: Final = np.uint64(1)
_ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_PAIRS: Final = np.uint64(0x5555_5555_5555_5555)
_FOURS: Final = np.uint64(0x3333_3333_3333_3333)
_EIGHTS: Final = np.uint64(0x0F0F_0F0F_0F0F_0F0F)
_BYTES: Final = np.uint64(0x0101_0101_0101_0101)


def compiled(function: _F) -> _F:
    """Compile a function with checked bounds when it is first called."""
    return cast("_F", njit(cache=True, boundscheck=True)(function))


@compiled
def bits_of(word: np.uint64) -> int:
    """The number of set bits of a word."""
    word = word - ((word >> _ONE) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _EIGHTS
    return np.int64((word * _BYTES) >> np.uint64(56))  # type: ignore[return-value]  # an int to numba


@compiled
def add_numbers(numbers: Items, start: int, end: int, words: Words) -> None:
    """Set the bits of some numbers."""
    for index in range(start, end):
        number = numbers[index]
        words[number >> 6] |= _ONE << np.uint64(number & 63)


@compiled
def add_postings(  # noqa: PLR0917 - numba takes no keywords
    postings: Items, start: int, end: int, wanted: int, unwanted: int, words: Words
) -> None:
    """Set the bits of the shops of postings with one of the wanted marks, and none of the unwanted."""
    for index in range(start, end):
        posting = postings[index]
        if posting & wanted and not posting & unwanted:
            number = posting >> POSTING_BITS
            words[number >> 6] |= _ONE << np.uint64(number & 63)


@compiled
def compare(items: Items, start: int, end: int, query: Items) -> int:
    """Whether what begins at `start` is before a query (-1), begins with it (0) or comes after all that do (1)."""
    for index in range(len(query)):
        if start + index >= end:
            return -1
        if items[start + index] != query[index]:
            return -1 if items[start + index] < query[index] else 1
    return 0


@compiled
def texts_with_prefix(letters: Items, offsets: Items, query: Items) -> tuple[int, int]:
    """The range of the sorted texts that begin with a query."""
    low, high = 0, len(offsets) - 1
    while low < high:
        middle = (low + high) >> 1
        if compare(letters, offsets[middle], offsets[middle + 1], query) < 0:
            low = middle + 1
        else:
            high = middle
    first, high = low, len(offsets) - 1
    while low < high:
        middle = (low + high) >> 1
        if compare(letters, offsets[middle], offsets[middle + 1], query) <= 0:
            low = middle + 1
        else:
            high = middle
    return first, low


@compiled
def suffixes_with_prefix(data: Items, suffixes: Items, query: Items) -> tuple[int, int]:
    """The range of the sorted suffixes that begin with the bytes of a query; a zero byte ends each text of `data`."""
    low, high = 0, len(suffixes)
    while low < high:
        middle = (low + high) >> 1
        if compare(data, suffixes[middle], len(data), query) < 0:
            low = middle + 1
        else:
            high = middle
    first, high = low, len(suffixes)
    while low < high:
        middle = (low + high) >> 1
        if compare(data, suffixes[middle], len(data), query) <= 0:
            low = middle + 1
        else:
            high = middle
    return first, low


@compiled
def add_suffixes(  # noqa: PLR0917 - numba takes no keywords
    suffixes: Items, start: int, end: int, starts: Words, before: Items, words: Words
) -> None:
    """Set the bits of the shops in whose texts the suffixes begin.

    `starts` is a bitmap of the bytes at which a shop's texts start, `before` the number of them before each word of it.
    """
    for index in range(start, end):
        place = suffixes[index]
        upto = starts[place >> 6] & (_ALL >> np.uint64(63 - (place & 63)))
        number = before[place >> 6] + bits_of(upto) - 1
        words[number >> 6] |= _ONE << np.uint64(number & 63)


@compiled
def count(words: Words) -> int:
    """The number of set bits."""
    total = 0
    for word in words:
        total += bits_of(word)
    return total


@compiled
def count_both(words: Words, others: Words) -> int:
    """The number of bits that are set in both bitmaps."""
    total = 0
    for index in range(len(words)):
        total += bits_of(words[index] & others[index])
    return total


@compiled
def lowest(words: Words, start: int, skipped: int, found: Items) -> int:
    """Write the lowest set bits from the number `start` on into `found`, without the first ones; returns how many."""
    filled = 0
    for index in range(start >> 6, len(words)):
        word = words[index]
        if index == start >> 6:
            word &= _ALL << np.uint64(start & 63)
        size = bits_of(word)
        if skipped >= size:
            skipped -= size
            continue
        while word:
            bit = word & (~word + _ONE)
            word ^= bit
            if skipped:
                skipped -= 1
                continue
            if filled == len(found):
                return filled
            found[filled] = (index << 6) + bits_of(bit - _ONE)
            filled += 1
    return filled


@compiled
def count_values(words: Words, heads: Items, values: Items, counts: Items) -> int:
    """Count the values of all set bits, each of which has a list of them; returns the number of empty lists."""
    missing = 0
    for index in range(len(words)):
        word = words[index]
        while word:
            bit = word & (~word + _ONE)
            word ^= bit
            number = (index << 6) + bits_of(bit - _ONE)
            missing += heads[number] == heads[number + 1]
            for place in range(heads[number], heads[number + 1]):
                counts[values[place]] += 1
    return missing
