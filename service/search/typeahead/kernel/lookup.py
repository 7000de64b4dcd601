"""Where texts begin with a given text, in each of the orders in which they are sorted."""

from typing import Final

from index_mappings.typeahead.segment import FIRSTS, LETTER_BITS
from service.search.typeahead.kernel.arrays import Array, Firsts, Lookup, inner

# The orders of texts: whole, and keys without the character at this position.
IN_ORDER: Final = -1
WITHOUT_FIRST: Final = 0
WITHOUT_SECOND: Final = 1
# One in so many packed first characters is a sample.
SAMPLED: Final = 64


@inner
def prefix_range(lookup: Lookup, lacking: int, asked: Array, start: int, end: int) -> tuple[int, int]:
    """The range of the order `lacking` in which texts begin with asked[start:end]."""
    firsts, begin = lookup.firsts, 0
    if lacking != IN_ORDER:
        begin += _samples(len(firsts))
        firsts = lookup.firsts_0
    if lacking == WITHOUT_SECOND:
        begin += _samples(len(firsts))
        firsts = lookup.firsts_1
    least, most = _packed_bounds(asked, start, end)
    near = _first_at_least(lookup.samples, begin, begin + _samples(len(firsts)), least) - begin
    first = _first_at_least(firsts, max(0, near - 1) * SAMPLED, min(len(firsts), near * SAMPLED), least)
    low, leap = first, 1
    while low + leap <= len(firsts) and firsts[low + leap - 1] <= most:
        low += leap
        leap <<= 1
    low = _first_at_least(firsts, low, min(len(firsts), low + leap), most + 1)
    if end - start <= FIRSTS or first == low:
        return first, low
    order = lookup.rests_1 if lacking == WITHOUT_SECOND else lookup.rests_0
    depth = FIRSTS if lacking == IN_ORDER else FIRSTS + 1
    return narrowed(lookup.offsets, lookup.letters, order, lacking, asked, start + FIRSTS, end, depth, first, low)


@inner
def find_text(lookup: Lookup, asked: Array, start: int, end: int) -> int:
    """The number of the text that equals asked[start:end]; -1 where there is none."""
    first, last = prefix_range(lookup, IN_ORDER, asked, start, end)
    return first if first < last and lookup.offsets[first + 1] - lookup.offsets[first] == end - start else -1


@inner
def narrowed(
    offsets: Array,
    letters: Array,
    order: Array,
    lacking: int,
    asked: Array,
    start: int,
    end: int,
    depth: int,
    low: int,
    high: int,
) -> tuple[int, int]:
    """The part of the range low:high of an order, alike before `depth`, that continues there with asked[start:end].

    A character that the order leaves out is before `depth`, and counted.
    """
    above = high
    first = -1
    while True:
        while low < high:
            middle = (low + high) >> 1
            text = middle if lacking == IN_ORDER else order[middle]
            letter, last = offsets[text] + depth, offsets[text + 1]
            compared = 0
            for at in range(start, end):
                if letter >= last:
                    compared = -1
                    break
                if letters[letter] != asked[at]:
                    compared = -1 if letters[letter] < asked[at] else 1
                    break
                letter += 1
            if compared < 0 or (compared == 0 and first >= 0):
                low = middle + 1
            else:
                high = middle
                if compared > 0:
                    above = middle
        if first >= 0 or low == above:
            return (first if first >= 0 else low), low
        # A second search, from the first one on, for the end of the range.
        first, high = low, above


@inner
def letter_at(offsets: Array, letters: Array, firsts: Firsts, position: int, depth: int) -> int:
    """The character of a text after `depth` others, of which it must have more.

    Nothing checks that: a condition here takes ten times as long as the rest. At most SUGGEST_CUT + 2 characters are
    counted, and the header behind all arrays is longer than these, so that a read stays within the segment.
    """
    letter: int
    if depth < FIRSTS:
        letter = firsts[position] >> LETTER_BITS * (FIRSTS - 1 - depth) & ((1 << LETTER_BITS) - 1)
    else:
        letter = letters[offsets[position] + depth]
    return letter


@inner
def after_letter(offsets: Array, letters: Array, firsts: Firsts, depth: int, letter: int, low: int, high: int) -> int:
    """The end of the texts in low:high that have this character at `depth`, as the first one has; by leaps."""
    leap = 1
    while low + leap < high and letter_at(offsets, letters, firsts, low + leap, depth) == letter:
        low += leap
        leap <<= 1
    high = min(high, low + leap)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if letter_at(offsets, letters, firsts, middle, depth) == letter:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def seek_letter(offsets: Array, letters: Array, firsts: Firsts, depth: int, letter: int, low: int, high: int) -> int:
    """The first text of low:high whose character at `depth`, which all of them have, is not less than this one."""
    while low < high:
        middle = (low + high) >> 1
        if letter_at(offsets, letters, firsts, middle, depth) < letter:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _first_at_least(numbers: Firsts, low: int, high: int, least: int) -> int:
    """The first position of low:high, where numbers ascend, of a number that is not less."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _packed_bounds(asked: Array, start: int, end: int) -> tuple[int, int]:
    """The least and the greatest packed first characters of a text that begins with asked[start:end]."""
    least = most = 0
    for at in range(start, start + FIRSTS):
        given = at < end
        least = least << LETTER_BITS | (int(asked[at]) if given else 0)
        most = most << LETTER_BITS | (int(asked[at]) if given else (1 << LETTER_BITS) - 1)
    return least, most


@inner
def _samples(size: int) -> int:
    """The number of samples of so many numbers."""
    return (size + SAMPLED - 1) // SAMPLED
