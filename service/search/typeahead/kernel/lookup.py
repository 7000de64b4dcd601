"""Prefix look-ups among the texts of a segment, in each of the orders in which they are sorted."""

from typing import Final

from index_mappings.typeahead.segment import FIRSTS, LETTER_BITS
from service.search.typeahead.kernel.arrays import Array, Firsts, Lookup, inner

# The orders of texts: whole texts; or keys, sorted without the character at this position.
IN_ORDER: Final = -1
WITHOUT_FIRST: Final = 0
WITHOUT_SECOND: Final = 1
# Every so many packed first characters, one is a sample.
SAMPLED: Final = 64


@inner
def prefix_range(lookup: Lookup, lacking: int, query: Array, start: int, end: int) -> tuple[int, int]:
    """The range of the order `lacking` in which texts begin with query[start:end]."""
    firsts, begin = lookup.firsts, 0
    if lacking != IN_ORDER:
        begin += _samples(len(firsts))
        firsts = lookup.firsts_0
    if lacking == WITHOUT_SECOND:
        begin += _samples(len(firsts))
        firsts = lookup.firsts_1
    least, greatest = _packed_bounds(query, start, end)
    near = _first_at_least(lookup.samples, begin, begin + _samples(len(firsts)), least) - begin
    first = _first_at_least(firsts, max(0, near - 1) * SAMPLED, min(len(firsts), near * SAMPLED), least)
    low, leap = first, 1
    while low + leap <= len(firsts) and firsts[low + leap - 1] <= greatest:
        low += leap
        leap <<= 1
    low = _first_at_least(firsts, low, min(len(firsts), low + leap), greatest + 1)
    if end - start <= FIRSTS or first == low:
        return first, low
    order = lookup.rests_1 if lacking == WITHOUT_SECOND else lookup.rests_0
    depth = FIRSTS if lacking == IN_ORDER else FIRSTS + 1
    return narrow_range(lookup.offsets, lookup.letters, order, lacking, query, start + FIRSTS, end, depth, first, low)


@inner
def find_text(lookup: Lookup, query: Array, start: int, end: int) -> int:
    """The number of the text that equals query[start:end]; -1 where there is none."""
    first, last = prefix_range(lookup, IN_ORDER, query, start, end)
    return first if first < last and lookup.offsets[first + 1] - lookup.offsets[first] == end - start else -1


@inner
def narrow_range(
    offsets: Array,
    letters: Array,
    order: Array,
    lacking: int,
    query: Array,
    start: int,
    end: int,
    depth: int,
    low: int,
    high: int,
) -> tuple[int, int]:
    """The part of the range low:high of an order, equal before `depth`, that continues there with query[start:end].

    `depth` counts the character that the order leaves out, which is always before it.
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
                if letters[letter] != query[at]:
                    compared = -1 if letters[letter] < query[at] else 1
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
        # A second search, from the first match on, finds the end of the range.
        first, high = low, above


@inner
def letter_at(offsets: Array, letters: Array, firsts: Firsts, position: int, depth: int) -> int:
    """The character of a text at `depth`; the text must be longer than that.

    The length is not checked, because a condition here takes ten times as long as the rest. `depth` is at most
    SUGGEST_CUT + 2, and the header behind all arrays is longer than that, so a read stays within the segment.
    """
    letter: int
    if depth < FIRSTS:
        letter = firsts[position] >> LETTER_BITS * (FIRSTS - 1 - depth) & ((1 << LETTER_BITS) - 1)
    else:
        letter = letters[offsets[position] + depth]
    return letter


@inner
def after_letter(offsets: Array, letters: Array, firsts: Firsts, depth: int, letter: int, low: int, high: int) -> int:
    """The end of the texts in low:high that share the first one's character at `depth`; a galloping search."""
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
    """The first text of low:high whose character at `depth` is not less than this one; all must be that long."""
    while low < high:
        middle = (low + high) >> 1
        if letter_at(offsets, letters, firsts, middle, depth) < letter:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _first_at_least(numbers: Firsts, low: int, high: int, least: int) -> int:
    """The first position in low:high, where numbers ascend, of a number that is not less than `least`."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _packed_bounds(query: Array, start: int, end: int) -> tuple[int, int]:
    """The least and the greatest packed first characters that a text beginning with query[start:end] can have."""
    least = greatest = 0
    for at in range(start, start + FIRSTS):
        given = at < end
        least = least << LETTER_BITS | (int(query[at]) if given else 0)
        greatest = greatest << LETTER_BITS | (int(query[at]) if given else (1 << LETTER_BITS) - 1)
    return least, greatest


@inner
def _samples(size: int) -> int:
    """The number of samples among `size` numbers."""
    return (size + SAMPLED - 1) // SAMPLED
