"""The tier of two typing errors, none in the first character (2): the sorted texts are searched as a trie.

Each step down the trie computes one row of the optimal string alignment distance (X3, M9), of which only the five cells
near the diagonal can be two or less. When no further error is allowed, the remainder is found by binary search.

The number of visited nodes grows with the square of the number of characters that follow one prefix. There can be
thousands of Han characters; so errors never involve a character of the key from FIXED_FROM on, and among those only
characters that are near the same position in the query are visited.
"""

from typing import Final

from index_mappings.tiers import FIXED_FROM
from service.search.typeahead.kernel.arrays import MAX_INT, Array, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.lookup import (
    IN_ORDER,
    after_letter,
    letter_at,
    narrow_range,
    prefix_range,
    seek_letter,
)
from service.search.typeahead.kernel.ranges import add_range, collect_ranges

MAX_ERRORS: Final = 2
# Cell `k` of row `d` is the distance of d characters of a key to d + k - MAX_ERRORS characters of the query.
CELLS: Final = 2 * MAX_ERRORS + 1
_FAR: Final = MAX_ERRORS + 1
# The maximum number of ranges that are added between two checks of the capacity: two for each cell of a row.
_MAX_ADDED: Final = 2 * CELLS


@inner
def collect_two_typos(
    texts: Texts, query: Array, mark: int, passing: Array, scratch: Scratch, found: Array, better: int, count: int
) -> int:
    """Insert the shops with a text that has the query's first character and a prefix at most two errors away.

    Postings have the mark; full forms (FULL) are at most twice as long as the query. Returns as `insert_ranked`.
    """
    offsets, letters, firsts = texts.lookup.offsets, texts.lookup.letters, texts.lookup.firsts
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
            range_count = _add_exact_rests(offsets, letters, rows, path, query, below, low, after, ranges, range_count)
        elif least < MAX_ERRORS:
            walk[below, 0], walk[below, 1] = low, after
            depth = below
        if range_count > len(ranges) - _MAX_ADDED:
            count = collect_ranges(texts, ranges, range_count, mark, passing, found, better, count)
            range_count = 0
    return collect_ranges(texts, ranges, range_count, mark, passing, found, better, count)


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
    offsets: Array,
    letters: Array,
    rows: Ranges,
    path: Array,
    query: Array,
    depth: int,
    low: int,
    high: int,
    ranges: Ranges,
    range_count: int,
) -> int:
    """Add the parts of a range, equal up to `depth`, that continue exactly as the query. Returns the number of ranges.

    One more error is allowed if the last character is the first half of a swap: its second half.
    """
    size = len(query)
    for cell in range(CELLS):
        column = depth + cell - MAX_ERRORS
        if 0 <= column < size and rows[depth, cell] == MAX_ERRORS:
            bounds = narrow_range(offsets, letters, offsets, IN_ORDER, query, column, size, depth, low, high)
            range_count = add_range(ranges, range_count, bounds, IN_ORDER)
        # A swap of query[start:start + 2] ends with the next character.
        start = column - 1
        if (
            rows[depth - 1, cell] < MAX_ERRORS
            and 0 <= start < size - 1
            and path[depth] == query[start + 1]
            and max(path[depth], query[start]) < FIXED_FROM
        ):
            first, last = narrow_range(offsets, letters, offsets, IN_ORDER, query, start, start + 1, depth, low, high)
            bounds = narrow_range(offsets, letters, offsets, IN_ORDER, query, start + 2, size, depth + 1, first, last)
            range_count = add_range(ranges, range_count, bounds, IN_ORDER)
    return range_count
