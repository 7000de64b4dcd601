"""The tiers of one typing error (3), and of two, none in the first character (2).

With two errors the sorted texts are searched as a trie. Each step down the trie computes one row of the optimal string
alignment distance (X3, M9), of which only the five cells near the diagonal can be two or less. When no further error is
allowed, the remainder is found by binary search.

The number of visited nodes grows with the square of the number of characters that follow one prefix. There can be
thousands of Han characters; so errors never involve a character of the key from FIXED_FROM on, and among those only
characters that are near the same position in the query are visited.
"""

from typing import Final

import numpy as np

from index_mappings.tiers import FIXED_FROM, HALF_MIN
from shop_directory.typeahead.kernel.arrays import (
    IN_ORDER,
    MAX_INT,
    WITHOUT_SECOND,
    Array,
    KeyOrder,
    Lookup,
    Ranges,
    Ranking,
    Scratch,
    Texts,
    after_letter,
    inner,
    letter_at,
    narrow_range,
    prefix_range,
    seek_letter,
)
from shop_directory.typeahead.kernel.ranking import add_range, collect_ranges
from shop_directory.typeahead.segment import ANY_FULL, LACKING

# The maximum number of ranges that are added between two checks of the capacity.
_ONE_TYPO_MAX_ADDED: Final = 8
# So many texts with the same character are searched; of fewer texts each is looked at.
_FEW_TEXTS: Final = 8
MAX_ERRORS: Final = 2
# Cell `k` of row `d` is the distance of d characters of a key to d + k - MAX_ERRORS characters of the query.
CELLS: Final = 2 * MAX_ERRORS + 1
_FAR: Final = MAX_ERRORS + 1
# The maximum number of ranges that are added between two checks of the capacity: two for each cell of a row.
_TWO_TYPOS_MAX_ADDED: Final = 2 * CELLS


@inner
def collect_one_typo(texts: Texts, query: Array, mark: int, ranges: Ranges, ranking: Ranking, count: int) -> int:
    """Insert the shops with a text that has a prefix one error away from the query, by postings with a mark.

    A full form (ANY_FULL) is one error away as a whole, or at most twice the length of a query of HALF_MIN or more.
    """
    lookup = texts.lookup
    offsets, letters, firsts = lookup.offsets, lookup.letters, lookup.firsts
    order = KeyOrder(offsets, letters, offsets, IN_ORDER)
    size = len(query)
    half = size >= HALF_MIN
    whole = mark == ANY_FULL and not half
    longest = size + 1 if whole else 2 * size if mark == ANY_FULL else MAX_INT
    range_count = _add_early_errors(lookup, query, whole, ranges)
    # Among the texts that equal the query up to `depth`, find those with an error there.
    low, high = prefix_range(lookup, IN_ORDER, query, 0, len(LACKING))
    swapped = np.empty(size, np.int32)
    # A prefix with an error in the last character only is found at the end; for whole texts the error is placed.
    for depth in range(len(LACKING), size if mark == ANY_FULL else size - 1):
        if low == high:
            break
        # The query has one character too many.
        bounds = narrow_range(order, query, depth + 1, size, depth, low, high)
        range_count = _add_typo(lookup, ranges, range_count, bounds, IN_ORDER, size - 1, whole)
        swapped[0] = query[depth]
        swapped[1 : size - depth - 1] = query[depth + 2 :]
        if offsets[low + 1] - offsets[low] == depth:
            low += 1  # the text ends here
        below, above = narrow_range(order, query, depth, depth + 1, depth, low, high)
        for first, last in ((low, below), (above, high)):
            text = _next_alike(texts.lookup, query, depth, first, last, longest)
            while text < last:
                letter = letter_at(offsets, letters, firsts, text, depth)
                after = after_letter(offsets, letters, firsts, depth, letter, text, last)
                # The query has another character here, or lacks this one.
                for begin in (depth + 1, depth):
                    bounds = narrow_range(order, query, begin, size, depth + 1, text, after)
                    length = size if begin > depth else size + 1
                    range_count = _add_typo(lookup, ranges, range_count, bounds, IN_ORDER, length, whole)
                if depth + 1 < size and letter == query[depth + 1]:
                    # Two neighbours are swapped.
                    bounds = narrow_range(order, swapped, 0, size - depth - 1, depth + 1, text, after)
                    range_count = _add_typo(lookup, ranges, range_count, bounds, IN_ORDER, size, whole)
                if range_count > len(ranges) - _ONE_TYPO_MAX_ADDED:
                    if half:
                        ranges[:range_count, 3] = 2 * size
                    count = collect_ranges(texts, ranges, range_count, mark, ranking, count)
                    range_count = 0
                text = _next_alike(texts.lookup, query, depth, after, last, longest)
        low, high = below, above
    # All but the last character are equal, so the last one is the only error; or all are, and one may follow.
    range_count = _add_typo(lookup, ranges, range_count, (low, high), IN_ORDER, size + 1, False)
    if half:
        ranges[:range_count, 3] = 2 * size
    return collect_ranges(texts, ranges, range_count, mark, ranking, count)


@inner
def _next_alike(lookup: Lookup, query: Array, depth: int, low: int, high: int, longest: int) -> int:
    """The first text of low:high, equal to the query before `depth`, that may go on as the query does; else `high`.

    It has at most `longest` characters. Each text is looked at, as thousands of Han characters can follow one prefix
    and most texts do not go on; but of many texts with the same character it is not known without a search.
    """
    offsets, letters, firsts = lookup.offsets, lookup.letters, lookup.firsts
    size = len(query)
    is_last = depth + 1 == size
    expected, other = query[depth], query[depth] if is_last else query[depth + 1]
    shortest = size - 1 if is_last else max(size - 1, depth + 2)
    while low < high:
        end = min(high, low + _FEW_TEXTS)
        if end - low == _FEW_TEXTS and letter_at(offsets, letters, firsts, low, depth) == letter_at(
            offsets, letters, firsts, end - 1, depth
        ):
            return low
        for text in range(low, end):
            start = offsets[text]
            length = offsets[text + 1] - start
            if shortest <= length <= longest:
                following = letters[start + depth + 1]
                if following in (expected, other) or (is_last and (length <= size or longest > size + 1)):
                    return text
        low = end
    return high


@inner
def _add_typo(
    lookup: Lookup,
    ranges: Ranges,
    count: int,
    bounds: tuple[int, int],
    lacking: int,
    length: int,
    whole: bool,  # noqa: FBT001 - compiled functions have no keyword arguments
) -> int:
    """Add a range whose texts match as a whole if they have at most this length. Returns the new number of ranges.

    With `whole` only the texts that match as a whole are added. They are no longer than what all texts of the range
    begin with, so they come first: of 28,000 that begin with `stor` the only one of four letters is the first.

    Without any one of its equal characters a text is the same, so a range may follow itself, and is added once.
    """
    low, high = bounds
    if whole:
        order = lookup.rests_1 if lacking == WITHOUT_SECOND else lookup.rests_0
        end = low
        while end < high:
            text = end if lacking == IN_ORDER else order[end]
            if lookup.offsets[text + 1] - lookup.offsets[text] > length:
                break
            end += 1
        high = end
    if count:
        last = ranges[count - 1]
        if last[0] == low and last[1] == high and last[2] == lacking and last[3] == length:
            return count
    ranges[count, 3] = length
    return add_range(ranges, count, (low, high), lacking)


@inner
def _add_early_errors(
    lookup: Lookup,
    query: Array,
    whole: bool,  # noqa: FBT001 - compiled functions have no keyword arguments
    ranges: Ranges,
) -> int:
    """Add the ranges with an error in the first two characters, by the orders of keys without one of these.

    Returns the number of ranges.
    """
    size = len(query)
    other = np.empty(size, np.int32)
    range_count = 0
    for lacking in range(len(LACKING)):
        other[:lacking] = query[:lacking]
        other[lacking : size - 1] = query[lacking + 1 :]
        # The query has another character here, lacks one, or has one too many.
        bounds = prefix_range(lookup, lacking, other, 0, size - 1)
        range_count = _add_typo(lookup, ranges, range_count, bounds, lacking, size, whole)
        bounds = prefix_range(lookup, lacking, query, 0, size)
        range_count = _add_typo(lookup, ranges, range_count, bounds, lacking, size + 1, whole)
        bounds = prefix_range(lookup, IN_ORDER, other, 0, size - 1)
        range_count = _add_typo(lookup, ranges, range_count, bounds, IN_ORDER, size - 1, whole)
        # Two neighbours are swapped.
        other[:] = query
        other[lacking], other[lacking + 1] = query[lacking + 1], query[lacking]
        bounds = prefix_range(lookup, IN_ORDER, other, 0, size)
        range_count = _add_typo(lookup, ranges, range_count, bounds, IN_ORDER, size, whole)
    return range_count


@inner
def collect_two_typos(texts: Texts, query: Array, mark: int, scratch: Scratch, ranking: Ranking, count: int) -> int:
    """Insert the shops with a text that has the query's first character and a prefix at most two errors away.

    Postings have the mark; full forms (ANY_FULL) are at most twice as long as the query.
    """
    offsets, letters, firsts = texts.lookup.offsets, texts.lookup.letters, texts.lookup.firsts
    order = KeyOrder(offsets, letters, offsets, IN_ORDER)
    ranges, rows, path, walk = scratch.ranges, scratch.rows, scratch.path, scratch.walk
    size = len(query)
    ranges[:, 3] = 2 * size
    # For each depth: the row, the character that led there, and the range of texts that is not visited yet.
    for cell in range(CELLS):
        rows[0, cell] = cell - MAX_ERRORS if cell >= MAX_ERRORS else _FAR
    path[1] = query[0]
    _fill_row(rows, path, query, 1)
    walk[1, 0], walk[1, 1] = prefix_range(texts.lookup, IN_ORDER, query, 0, 1)
    range_count = 0
    depth = 1
    while depth:
        low, high = walk[depth, 0], walk[depth, 1]
        if low >= high:
            depth -= 1
            continue
        if offsets[low + 1] - offsets[low] == depth:
            walk[depth, 0] = low + 1  # the text ends here
            continue
        letter = letter_at(offsets, letters, firsts, low, depth)
        target = letter if letter < FIXED_FROM else _next_in_query(query, depth, letter)
        if target > letter:
            if target == MAX_INT:
                depth -= 1
            else:
                walk[depth, 0] = seek_letter(offsets, letters, firsts, depth, target, low, high)
            continue
        after = after_letter(offsets, letters, firsts, depth, letter, low, high)
        walk[depth, 0] = after
        below = depth + 1
        path[below] = letter
        least = _fill_row(rows, path, query, below)
        end = size - below + MAX_ERRORS
        if 0 <= end < CELLS and rows[below, end] <= MAX_ERRORS:
            # The whole query is matched, so all texts with this prefix are.
            range_count = add_range(ranges, range_count, (low, after), IN_ORDER)
        elif least == MAX_ERRORS:
            range_count = _add_exact_rests(order, scratch, query, below, low, after, range_count)
        elif least < MAX_ERRORS:
            walk[below, 0], walk[below, 1] = low, after
            depth = below
        if range_count > len(ranges) - _TWO_TYPOS_MAX_ADDED:
            count = collect_ranges(texts, ranges, range_count, mark, ranking, count)
            range_count = 0
    return collect_ranges(texts, ranges, range_count, mark, ranking, count)


@inner
def _next_in_query(query: Array, depth: int, letter: int) -> int:
    """The least character of the query near `depth` that is not less than this one; MAX_INT where there is none."""
    least = MAX_INT
    for position in range(max(0, depth - MAX_ERRORS), min(len(query), depth + CELLS - MAX_ERRORS)):
        if letter <= query[position] < least:
            least = query[position]
    return least


@inner
def _fill_row(rows: Ranges, path: Array, query: Array, depth: int) -> int:
    """Compute the row of `depth` from the two before it. Returns its least cell."""
    letter, size = path[depth], len(query)
    open_to_errors = letter < FIXED_FROM
    swappable = open_to_errors and depth > 1 and path[depth - 1] < FIXED_FROM
    least = _FAR
    for cell in range(CELLS):
        column = depth + cell - MAX_ERRORS
        best = _FAR
        if column == 0:
            best = rows[depth - 1, cell + 1] + 1 if open_to_errors else _FAR
        elif 0 < column <= size:
            if open_to_errors or letter == query[column - 1]:
                best = rows[depth - 1, cell] + (letter != query[column - 1])
            if open_to_errors and cell + 1 < CELLS:
                best = min(best, rows[depth - 1, cell + 1] + 1)
            if cell:
                best = min(best, rows[depth, cell - 1] + 1)
            if swappable and column > 1 and letter == query[column - 2] and path[depth - 1] == query[column - 1]:
                best = min(best, rows[depth - 2, cell] + 1)
        rows[depth, cell] = min(best, _FAR)
        least = min(least, rows[depth, cell])
    return least


@inner
def _add_exact_rests(
    order: KeyOrder, scratch: Scratch, query: Array, depth: int, low: int, high: int, range_count: int
) -> int:
    """Add the parts of a range, equal up to `depth`, that continue exactly as the query. Returns the number of ranges.

    One more error is allowed if the last character is the first half of a swap: its second half.
    """
    ranges, rows, path, size = scratch.ranges, scratch.rows, scratch.path, len(query)
    for cell in range(CELLS):
        column = depth + cell - MAX_ERRORS
        if 0 <= column < size and rows[depth, cell] == MAX_ERRORS:
            bounds = narrow_range(order, query, column, size, depth, low, high)
            range_count = add_range(ranges, range_count, bounds, IN_ORDER)
        # A swap of query[start:start + 2] ends with the next character.
        start = column - 1
        if (
            rows[depth - 1, cell] < MAX_ERRORS
            and 0 <= start < size - 1
            and path[depth] == query[start + 1]
            and max(path[depth], query[start]) < FIXED_FROM
        ):
            first, last = narrow_range(order, query, start, start + 1, depth, low, high)
            bounds = narrow_range(order, query, start + 2, size, depth + 1, first, last)
            range_count = add_range(ranges, range_count, bounds, IN_ORDER)
    return range_count
