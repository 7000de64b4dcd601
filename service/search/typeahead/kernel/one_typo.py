"""The tier of one typing error (3)."""

from typing import Final

import numpy as np

from index_mappings.typeahead.segment import KEY, LACKING
from service.search.typeahead.kernel.arrays import Array, Lookup, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, after_letter, letter_at, narrowed, prefix_range
from service.search.typeahead.kernel.ranges import add_range, collect_ranges

# At most so many ranges are added between two checks for room.
_ADDED_AT_ONCE: Final = 8


@inner
def collect_one_typo(
    texts: Texts, asked: Array, passing: Array, ranges: Ranges, found: Array, better: int, count: int
) -> int:
    """Insert the shops with a key of which a beginning is one error away from the text. Returns as `insert_ranked`."""
    lookup = texts.lookup
    offsets, letters, firsts = lookup.offsets, lookup.letters, lookup.firsts
    size = len(asked)
    number_of = _errors_at_first(lookup, asked, ranges)
    # Of the texts that equal the asked one up to `depth`, those with an error right there.
    low, high = prefix_range(lookup, IN_ORDER, asked, 0, len(LACKING))
    swapped = np.empty(size, np.int32)
    for depth in range(len(LACKING), size - 1):
        if low == high:
            break
        # The asked text has one character too many.
        first, last = narrowed(offsets, letters, offsets, IN_ORDER, asked, depth + 1, size, depth, low, high)
        number_of = add_range(ranges, number_of, first, last, IN_ORDER)
        swapped[0] = asked[depth]
        swapped[1 : size - depth - 1] = asked[depth + 2 :]
        below, above = high, high
        if offsets[low + 1] - offsets[low] == depth:
            low += 1  # the text ends here
        while low < high:
            letter = letter_at(offsets, letters, firsts, low, depth)
            after = after_letter(offsets, letters, firsts, depth, letter, low, high)
            if letter == asked[depth]:
                below, above = low, after
            else:
                # Another character stands there, or one is missing from the asked text.
                for begin in (depth + 1, depth):
                    first, last = narrowed(
                        offsets, letters, offsets, IN_ORDER, asked, begin, size, depth + 1, low, after
                    )
                    number_of = add_range(ranges, number_of, first, last, IN_ORDER)
                if letter == asked[depth + 1]:
                    # Two neighbours are swapped.
                    first, last = narrowed(
                        offsets, letters, offsets, IN_ORDER, swapped, 0, size - depth - 1, depth + 1, low, after
                    )
                    number_of = add_range(ranges, number_of, first, last, IN_ORDER)
            low = after
            if number_of > len(ranges) - _ADDED_AT_ONCE:
                count = collect_ranges(texts, ranges, number_of, KEY, passing, found, better, count)
                number_of = 0
        low, high = below, above
    # All but the last character is equal: whatever follows, the last one is the error.
    number_of = add_range(ranges, number_of, low, high, IN_ORDER)
    return collect_ranges(texts, ranges, number_of, KEY, passing, found, better, count)


@inner
def _errors_at_first(lookup: Lookup, asked: Array, ranges: Ranges) -> int:
    """Add the ranges with an error in the first two characters: keys are sorted without each of these as well.

    Returns:
        the number of ranges.
    """
    size = len(asked)
    other = np.empty(size, np.int32)
    number_of = 0
    for lacking in range(len(LACKING)):
        other[:lacking] = asked[:lacking]
        other[lacking : size - 1] = asked[lacking + 1 :]
        # Another character stands there, one is missing from the asked text, and the asked text has one too many.
        first, last = prefix_range(lookup, lacking, other, 0, size - 1)
        number_of = add_range(ranges, number_of, first, last, lacking)
        first, last = prefix_range(lookup, lacking, asked, 0, size)
        number_of = add_range(ranges, number_of, first, last, lacking)
        first, last = prefix_range(lookup, IN_ORDER, other, 0, size - 1)
        number_of = add_range(ranges, number_of, first, last, IN_ORDER)
        # Two neighbours are swapped.
        other[:] = asked
        other[lacking], other[lacking + 1] = asked[lacking + 1], asked[lacking]
        first, last = prefix_range(lookup, IN_ORDER, other, 0, size)
        number_of = add_range(ranges, number_of, first, last, IN_ORDER)
    return number_of
