"""The tier of two typing errors, none in the first character (2): the sorted texts are walked as a trie.

Each step down the trie computes one row of the optimal string alignment distance (X3, M9), of which only the five cells
near the diagonal can be two or less. Once no error is left, the rest is a binary search.

How many texts of the trie are reached grows with the square of the number of characters that follow one beginning.
Thousands of Han characters do; so no error touches a character of the key from FIXED_FROM on, and of those only the
characters that are asked for nearby are looked up.
"""

from typing import Final

from index_mappings.tiers import FIXED_FROM
from index_mappings.typeahead.segment import KEY
from service.search.typeahead.kernel.arrays import NOBODY, Array, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.lookup import (
    IN_ORDER,
    after_letter,
    letter_at,
    narrowed,
    prefix_range,
    seek_letter,
)
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
        wanted = letter if letter < FIXED_FROM else _next_asked(asked, depth, letter)
        if wanted > letter:
            if wanted == NOBODY:
                depth -= 1
            else:
                walk[depth, 0] = seek_letter(offsets, letters, firsts, depth, wanted, low, high)
            continue
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
def _next_asked(asked: Array, depth: int, letter: int) -> int:
    """The least of the characters asked near `depth` that is not less than this one; NOBODY where there is none."""
    least = NOBODY
    for place in range(max(0, depth - MOST_ERRORS), min(len(asked), depth + CELLS - MOST_ERRORS)):
        if letter <= asked[place] < least:
            least = asked[place]
    return least


@inner
def _fill_row(rows: Ranges, path: Array, asked: Array, depth: int) -> int:
    """Compute the row of `depth` from the two before it. Returns its least cell."""
    letter, size = path[depth], len(asked)
    open_to_errors = letter < FIXED_FROM
    swappable = open_to_errors and depth > 1 and path[depth - 1] < FIXED_FROM
    least = _FAR
    for cell in range(CELLS):
        column = depth + cell - MOST_ERRORS
        best = _FAR
        if column == 0:
            best = rows[depth - 1, cell + 1] + 1 if open_to_errors else _FAR
        elif 0 < column <= size:
            if open_to_errors or letter == asked[column - 1]:
                best = rows[depth - 1, cell] + (letter != asked[column - 1])
            if open_to_errors and cell + 1 < CELLS:
                best = min(best, rows[depth - 1, cell + 1] + 1)
            if cell:
                best = min(best, rows[depth, cell - 1] + 1)
            if swappable and column > 1 and letter == asked[column - 2] and path[depth - 1] == asked[column - 1]:
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
        if (
            rows[depth - 1, cell] < MOST_ERRORS
            and 0 <= start < size - 1
            and path[depth] == asked[start + 1]
            and max(path[depth], asked[start]) < FIXED_FROM
        ):
            first, last = narrowed(offsets, letters, offsets, IN_ORDER, asked, start, start + 1, depth, low, high)
            first, last = narrowed(offsets, letters, offsets, IN_ORDER, asked, start + 2, size, depth + 1, first, last)
            number_of = add_range(ranges, number_of, first, last, IN_ORDER)
    return number_of
