"""The tier of one typing error (3)."""

from typing import Final

import numpy as np

from index_mappings.tiers import HALF_MIN
from index_mappings.typeahead.segment import FULL, LACKING
from service.search.typeahead.kernel.arrays import Array, Lookup, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, after_letter, letter_at, narrow_range, prefix_range
from service.search.typeahead.kernel.ranges import add_range, collect_ranges

# The maximum number of ranges that are added between two checks of the capacity.
_MAX_ADDED: Final = 8


@inner
def collect_one_typo(
    texts: Texts, query: Array, mark: int, passing: Array, ranges: Ranges, found: Array, better: int, count: int
) -> int:
    """Insert the shops with a text that has a prefix one error away from the query, by postings with a mark.

    Full forms (FULL) have to be one error away as a whole, or to be at most twice as long as a query of at least
    HALF_MIN characters. Returns as `insert_ranked`.
    """
    lookup = texts.lookup
    offsets, letters, firsts = lookup.offsets, lookup.letters, lookup.firsts
    size = len(query)
    half = size >= HALF_MIN
    range_count = _add_early_errors(lookup, query, ranges)
    # Among the texts that equal the query up to `depth`, find those with an error there.
    low, high = prefix_range(lookup, IN_ORDER, query, 0, len(LACKING))
    swapped = np.empty(size, np.int32)
    # A prefix with an error in the last character only is found at the end; for whole texts the error is placed.
    for depth in range(len(LACKING), size if mark == FULL else size - 1):
        if low == high:
            break
        # The query has one character too many.
        bounds = narrow_range(offsets, letters, offsets, IN_ORDER, query, depth + 1, size, depth, low, high)
        range_count = _add_typo(ranges, range_count, bounds, IN_ORDER, size - 1)
        swapped[0] = query[depth]
        swapped[1 : size - depth - 1] = query[depth + 2 :]
        below, above = high, high
        if offsets[low + 1] - offsets[low] == depth:
            low += 1  # the text ends here
        while low < high:
            letter = letter_at(offsets, letters, firsts, low, depth)
            after = after_letter(offsets, letters, firsts, depth, letter, low, high)
            if letter == query[depth]:
                below, above = low, after
            else:
                # The query has another character here, or lacks this one.
                for begin in (depth + 1, depth):
                    bounds = narrow_range(
                        offsets, letters, offsets, IN_ORDER, query, begin, size, depth + 1, low, after
                    )
                    length = size if begin > depth else size + 1
                    range_count = _add_typo(ranges, range_count, bounds, IN_ORDER, length)
                if depth + 1 < size and letter == query[depth + 1]:
                    # Two neighbours are swapped.
                    bounds = narrow_range(
                        offsets, letters, offsets, IN_ORDER, swapped, 0, size - depth - 1, depth + 1, low, after
                    )
                    range_count = _add_typo(ranges, range_count, bounds, IN_ORDER, size)
            low = after
            if range_count > len(ranges) - _MAX_ADDED:
                if half:
                    ranges[:range_count, 3] = 2 * size
                count = collect_ranges(texts, ranges, range_count, mark, passing, found, better, count)
                range_count = 0
        low, high = below, above
    # All but the last character are equal, so the last one is the only error; or all are, and one may follow.
    range_count = _add_typo(ranges, range_count, (low, high), IN_ORDER, size + 1)
    if half:
        ranges[:range_count, 3] = 2 * size
    return collect_ranges(texts, ranges, range_count, mark, passing, found, better, count)


@inner
def _add_typo(ranges: Ranges, count: int, bounds: tuple[int, int], lacking: int, length: int) -> int:
    """Add a range whose texts match as a whole if they have at most this length. Returns the new number of ranges."""
    ranges[count, 3] = length
    return add_range(ranges, count, bounds, lacking)


@inner
def _add_early_errors(lookup: Lookup, query: Array, ranges: Ranges) -> int:
    """Add the ranges with an error in the first two characters, by the orders of keys without one of these.

    Returns:
        The number of ranges.
    """
    size = len(query)
    other = np.empty(size, np.int32)
    range_count = 0
    for lacking in range(len(LACKING)):
        other[:lacking] = query[:lacking]
        other[lacking : size - 1] = query[lacking + 1 :]
        # The query has another character here, lacks one, or has one too many.
        range_count = _add_typo(ranges, range_count, prefix_range(lookup, lacking, other, 0, size - 1), lacking, size)
        range_count = _add_typo(ranges, range_count, prefix_range(lookup, lacking, query, 0, size), lacking, size + 1)
        bounds = prefix_range(lookup, IN_ORDER, other, 0, size - 1)
        range_count = _add_typo(ranges, range_count, bounds, IN_ORDER, size - 1)
        # Two neighbours are swapped.
        other[:] = query
        other[lacking], other[lacking + 1] = query[lacking + 1], query[lacking]
        range_count = _add_typo(ranges, range_count, prefix_range(lookup, IN_ORDER, other, 0, size), IN_ORDER, size)
    return range_count
