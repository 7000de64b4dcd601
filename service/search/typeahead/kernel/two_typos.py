"""The tier of two typing errors, none in the first character (2): the sorted texts are walked as a trie.

Each step down the trie computes one row of the optimal string alignment distance (X3, M9), of which only the five cells
near the diagonal can be two or less. Once no error is left, the rest is a binary search.
"""

from typing import Final

from index_mappings.typeahead.segment import KEY
from service.search.typeahead.kernel.arrays import Array, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, after_letter, letter_at, narrowed, prefix_range
from service.search.typeahead.kernel.ranges import add_range, collect_ranges

MOST_ERRORS: Final = 2
# Cell `k` of row `d` is the distance of d characters of a key to d + k - MOST_ERRORS characters of the asked text.
CELLS: Final = 2 * MOST_ERRORS + 1
_FAR: Final = MOST_ERRORS + 1
# At most so many ranges are added between two checks for room: two for each cell of a row.
_ADDED_AT_ONCE: Final = 2 * CELLS


@inner
def collect_two_typos(
    texts: Texts, asked: Array, passing: Array, scratch: Scratch, found: Array, better: int, count: int
) -> int:
    """Insert the shops with a key that begins like the text and of which a beginning is at most two errors away.

    Returns as `insert_ranked`.
    """
    offsets, letters, firsts = texts.lookup.offsets, texts.lookup.letters, texts.lookup.firsts
    ranges, rows, path, walk = scratch.ranges, scratch.rows, scratch.path, scratch.walk
    size = len(asked)
    # By depth: the row, the character that led there, and the range of texts that is still to be walked.
    for cell in range(CELLS):
        rows[0, cell] = cell - MOST_ERRORS if cell >= MOST_ERRORS else _FAR
    path[1] = asked[0]
    _fill_row(rows, path, asked, 1)
    walk[1, 0], walk[1, 1] = prefix_range(texts.lookup, IN_ORDER, asked, 0, 1)
    number_of = 0
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
        after = after_letter(offsets, letters, firsts, depth, letter, low, high)
        walk[depth, 0] = after
        below = depth + 1
        path[below] = letter
        least = _fill_row(rows, path, asked, below)
        end = size - below + MOST_ERRORS
        if 0 <= end < CELLS and rows[below, end] <= MOST_ERRORS:
            # All that is asked for is in it: whatever follows, these texts begin so.
            number_of = add_range(ranges, number_of, low, after, IN_ORDER)
        elif least == MOST_ERRORS:
            number_of = _without_more_errors(offsets, letters, rows, path, asked, below, low, after, ranges, number_of)
        elif least < MOST_ERRORS:
            walk[below, 0], walk[below, 1] = low, after
            depth = below
        if number_of > len(ranges) - _ADDED_AT_ONCE:
            count = collect_ranges(texts, ranges, number_of, KEY, passing, found, better, count)
            number_of = 0
    return collect_ranges(texts, ranges, number_of, KEY, passing, found, better, count)


@inner
def _fill_row(rows: Ranges, path: Array, asked: Array, depth: int) -> int:
    """Compute the row of `depth` from the two before it. Returns its least cell."""
    letter, size = path[depth], len(asked)
    least = _FAR
    for cell in range(CELLS):
        column = depth + cell - MOST_ERRORS
        best = _FAR
        if column == 0:
            best = depth
        elif 0 < column <= size:
            best = rows[depth - 1, cell] + (letter != asked[column - 1])
            if cell + 1 < CELLS:
                best = min(best, rows[depth - 1, cell + 1] + 1)
            if cell:
                best = min(best, rows[depth, cell - 1] + 1)
            if depth > 1 and column > 1 and letter == asked[column - 2] and path[depth - 1] == asked[column - 1]:
                best = min(best, rows[depth - 2, cell] + 1)
        rows[depth, cell] = min(best, _FAR)
        least = min(least, rows[depth, cell])
    return least


@inner
def _without_more_errors(
    offsets: Array,
    letters: Array,
    rows: Ranges,
    path: Array,
    asked: Array,
    depth: int,
    low: int,
    high: int,
    ranges: Ranges,
    number_of: int,
) -> int:
    """Add the parts of a range, alike up to `depth`, that continue exactly as asked. Returns the number of ranges.

    Only one more error may come: the second half of a swap of which the first half is the last character.
    """
    size = len(asked)
    for cell in range(CELLS):
        column = depth + cell - MOST_ERRORS
        if 0 <= column < size and rows[depth, cell] == MOST_ERRORS:
            first, last = narrowed(offsets, letters, offsets, IN_ORDER, asked, column, size, depth, low, high)
            number_of = add_range(ranges, number_of, first, last, IN_ORDER)
        # A swap of asked[start:start + 2] ends with the next character.
        start = column - 1
        if rows[depth - 1, cell] < MOST_ERRORS and start >= 0 and start + 2 <= size and path[depth] == asked[start + 1]:
            first, last = narrowed(offsets, letters, offsets, IN_ORDER, asked, start, start + 1, depth, low, high)
            first, last = narrowed(offsets, letters, offsets, IN_ORDER, asked, start + 2, size, depth + 1, first, last)
            number_of = add_range(ranges, number_of, first, last, IN_ORDER)
    return number_of
