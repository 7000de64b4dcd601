"""The tier of one typing error."""

from typing import Final

import numpy as np

from index_mappings.typeahead import KEY, LACKING
from service.search.typeahead_kernel.arrays import Array, Ranges, Texts, inner
from service.search.typeahead_kernel.places import IN_ORDER, begun, going_on, letter_at, place_after
from service.search.typeahead_kernel.ranges import best_of, noted_range

# At most so many ranges are noted between two looks at how many there are.
_NOTED_AT_ONCE: Final = 8


@inner
def misspelt(texts: Texts, asked: Array, passing: Array, ranges: Ranges, found: Array, better: int, count: int) -> int:
    """Take the shops with a key of which a beginning is one error away from the text. Returns as `taken`."""
    offsets, letters = texts.offsets, texts.letters
    size = len(asked)
    noted = _misspelt_at_first(texts, asked, ranges)
    # Of the texts that are as asked up to `depth`, those with an error right there.
    low, high = begun(texts, IN_ORDER, asked, 0, len(LACKING))
    swapped = np.empty(size, np.int32)
    for depth in range(len(LACKING), size - 1):
        if low == high:
            break
        # There is one too many.
        first, last = going_on(offsets, letters, offsets, IN_ORDER, asked, depth + 1, size, depth, low, high)
        noted = noted_range(ranges, noted, first, last, IN_ORDER)
        swapped[0] = asked[depth]
        swapped[1 : size - depth - 1] = asked[depth + 2 :]
        below, above = high, high
        if offsets[low + 1] - offsets[low] == depth:
            low += 1  # ends here
        while low < high:
            letter = letter_at(texts, low, depth)
            after = place_after(texts, depth, letter, low, high)
            if letter == asked[depth]:
                below, above = low, after
            else:
                # Another one stands there, or one is missing.
                for begin in (depth + 1, depth):
                    first, last = going_on(
                        offsets, letters, offsets, IN_ORDER, asked, begin, size, depth + 1, low, after
                    )
                    noted = noted_range(ranges, noted, first, last, IN_ORDER)
                if letter == asked[depth + 1]:
                    # Two have changed places.
                    first, last = going_on(
                        offsets, letters, offsets, IN_ORDER, swapped, 0, size - depth - 1, depth + 1, low, after
                    )
                    noted = noted_range(ranges, noted, first, last, IN_ORDER)
            low = after
            if noted > len(ranges) - _NOTED_AT_ONCE:
                count = best_of(texts, ranges, noted, KEY, passing, found, better, count)
                noted = 0
        low, high = below, above
    # All but the last character is as asked: whatever follows, that one is the error.
    noted = noted_range(ranges, noted, low, high, IN_ORDER)
    return best_of(texts, ranges, noted, KEY, passing, found, better, count)


@inner
def _misspelt_at_first(texts: Texts, asked: Array, ranges: Ranges) -> int:
    """Note where keys are with an error in the first two characters: without one of them, all are in order as well.

    Returns:
        how many ranges there are.
    """
    size = len(asked)
    other = np.empty(size, np.int32)
    noted = 0
    for lacking in range(len(LACKING)):
        other[:lacking] = asked[:lacking]
        other[lacking : size - 1] = asked[lacking + 1 :]
        # Another one stands there, one is missing, and there is one too many.
        first, last = begun(texts, lacking, other, 0, size - 1)
        noted = noted_range(ranges, noted, first, last, lacking)
        first, last = begun(texts, lacking, asked, 0, size)
        noted = noted_range(ranges, noted, first, last, lacking)
        first, last = begun(texts, IN_ORDER, other, 0, size - 1)
        noted = noted_range(ranges, noted, first, last, IN_ORDER)
        # Two have changed places.
        other[:] = asked
        other[lacking], other[lacking + 1] = asked[lacking + 1], asked[lacking]
        first, last = begun(texts, IN_ORDER, other, 0, size)
        noted = noted_range(ranges, noted, first, last, IN_ORDER)
    return noted
