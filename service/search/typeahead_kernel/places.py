"""Where texts begin with what is asked for, in each of the orders in which they stand."""

from typing import Final

from index_mappings.typeahead import FIRSTS, LETTER_BITS
from service.search.typeahead_kernel.arrays import Array, Firsts, Texts, inner

# The orders in which texts stand: whole, and without the character at this place.
IN_ORDER: Final = -1
WITHOUT_FIRST: Final = 0
WITHOUT_SECOND: Final = 1
# Of so many numbers that say what first characters are, one is a sample.
SAMPLED: Final = 64


@inner
def begun(texts: Texts, lacking: int, asked: Array, start: int, end: int) -> tuple[int, int]:
    """Of an order, which `lacking` names, the places of texts that begin with asked[start:end]."""
    firsts, begin = texts.firsts, 0
    if lacking != IN_ORDER:
        begin += _samples(len(firsts))
        firsts = texts.firsts_0
    if lacking == WITHOUT_SECOND:
        begin += _samples(len(firsts))
        firsts = texts.firsts_1
    least, most = _spread(asked, start, end)
    near = _place(texts.samples, begin, begin + _samples(len(firsts)), least) - begin
    first = _place(firsts, max(0, near - 1) * SAMPLED, min(len(firsts), near * SAMPLED), least)
    low, leap = first, 1
    while low + leap <= len(firsts) and firsts[low + leap - 1] <= most:
        low += leap
        leap <<= 1
    low = _place(firsts, low, min(len(firsts), low + leap), most + 1)
    if end - start <= FIRSTS or first == low:
        return first, low
    order = texts.rests_1 if lacking == WITHOUT_SECOND else texts.rests_0
    depth = FIRSTS if lacking == IN_ORDER else FIRSTS + 1
    return going_on(texts.offsets, texts.letters, order, lacking, asked, start + FIRSTS, end, depth, first, low)


@inner
def whole_text(texts: Texts, asked: Array, start: int, end: int) -> int:
    """The text that asked[start:end] is; -1 where there is none."""
    first, last = begun(texts, IN_ORDER, asked, start, end)
    return first if first < last and texts.offsets[first + 1] - texts.offsets[first] == end - start else -1


@inner
def going_on(
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
    """Of the places low:high of an order, alike before `depth`, those of texts that go on there with asked[start:end].

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
        # Once more, from the first one on, for the place behind the last one.
        first, high = low, above


@inner
def letter_at(texts: Texts, place: int, depth: int) -> int:
    """The character of a text that comes after `depth` others."""
    letter: int
    if depth < FIRSTS:
        letter = texts.firsts[place] >> LETTER_BITS * (FIRSTS - 1 - depth) & ((1 << LETTER_BITS) - 1)
    else:
        letter = texts.letters[texts.offsets[place] + depth]
    return letter


@inner
def place_after(texts: Texts, depth: int, letter: int, low: int, high: int) -> int:
    """The place behind the texts low:high that have this letter at `depth`, of which the first one is; by leaps."""
    leap = 1
    while low + leap < high and letter_at(texts, low + leap, depth) == letter:
        low += leap
        leap <<= 1
    high = min(high, low + leap)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if letter_at(texts, middle, depth) == letter:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _place(numbers: Firsts, low: int, high: int, least: int) -> int:
    """The first place of low:high, where numbers ascend, of one that is no less."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _spread(asked: Array, start: int, end: int) -> tuple[int, int]:
    """The least and the most that may be said of the first characters of a text that begins with asked[start:end]."""
    least = most = 0
    for at in range(start, start + FIRSTS):
        given = at < end
        least = least << LETTER_BITS | (int(asked[at]) if given else 0)
        most = most << LETTER_BITS | (int(asked[at]) if given else (1 << LETTER_BITS) - 1)
    return least, most


@inner
def _samples(size: int) -> int:
    """How many samples there are of so many numbers."""
    return (size + SAMPLED - 1) // SAMPLED
