"""The best shops of a key press."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numba import njit

from index_mappings.tiers import HALF_MIN, ONE_TYPO_MIN, SuggestTier
from index_mappings.typeahead import FULL, KEY, LEADING, NAME
from service.search.typeahead_kernel.arrays import (
    IN_WORD,
    NOBODY,
    WORD_BITS,
    Array,
    Firsts,
    Ranges,
    Texts,
    borrowed,
    inner,
    made_of,
)
from service.search.typeahead_kernel.misspelt import misspelt
from service.search.typeahead_kernel.places import IN_ORDER, begun
from service.search.typeahead_kernel.ranges import best_of, noted_range
from service.search.typeahead_kernel.taking import having
from service.search.typeahead_kernel.words import by_words

# An entry of an answer: the shop's number, and its tier in the lowest bits.
TIER_BITS: Final = 4
ANY_COUNTRY: Final = -1
_EQUALS: Final = int(SuggestTier.EQUALS_NAME)
_BEGINS_NAME: Final = int(SuggestTier.BEGINS_NAME)
_BEGINS_FORM: Final = int(SuggestTier.BEGINS_FORM)
_WORDS: Final = int(SuggestTier.WORDS)
_TYPO: Final = int(SuggestTier.ONE_TYPO)
_PART: Final = int(SuggestTier.PART_IS_NAME)
_MOST: Final = int(SuggestTier.MOST_OF_WORDS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)
# So many ranges are noted before they are looked through.
_NOTED: Final = 192


@inner
def _suggested(texts: Texts, asked: Array, forms: int, country: int, found: Array) -> int:
    """Put the entries into `found`, as many as there is room for. Arguments as of `suggest`. Returns how many."""
    gone, wanted = texts.gone, len(found)
    size = (len(texts.own_heads) - 1 + IN_WORD) >> WORD_BITS
    passing = texts.markets[country * size : (country + 1) * size] if country >= 0 else gone[:0]
    known = texts.known[country * size : (country + 1) * size] if country >= 0 else gone[:0]
    tiers = np.empty(wanted, np.int32)
    ranges = np.empty((_NOTED, 4), np.int32)
    bounds = _bounds(asked)
    words = bounds[forms:]
    equal = np.empty(forms, np.int32)
    equals = noted = 0
    for number in range(forms):
        start, end = bounds[number]
        first, last = begun(texts, IN_ORDER, asked, start, end)
        # What equals the beginning comes first.
        if first < last and texts.offsets[first + 1] - texts.offsets[first] == end - start:
            equal[equals] = first
            equals += 1
        # Of a name at least half is typed.
        most = 2 * (end - start) if end - start >= HALF_MIN else NOBODY
        ranges[noted, 3] = most
        noted = noted_range(ranges, noted, first, last, IN_ORDER)
    equal = equal[:equals]
    count = having(texts, equal, NAME, passing, found, 0, 0)
    tiers[:count] = _EQUALS
    better = count
    for tier in (_BEGINS_NAME, _BEGINS_FORM, _WORDS, _TYPO, _PART, _MOST, _HALF):
        if count == wanted:
            break
        if tier >= _WORDS:
            count = _beginning(texts, equal, ranges, noted, tier, known, passing, found, better, count)
        if tier == _TYPO:
            for number in range(forms):
                start, end = bounds[number]
                if end - start >= ONE_TYPO_MIN:
                    count = misspelt(texts, asked[start:end], passing, ranges, found, better, count)
        elif tier < _BEGINS_FORM and len(words):
            count = by_words(texts, asked, bounds, words, tier, passing, found, better, count)
        tiers[better:count] = tier
        better = count
    for place in range(count):
        found[place] = found[place] << TIER_BITS | tiers[place]
    return count


@inner
def _seen(items: Array, longs: Firsts, places: Firsts, samples: Firsts, gone: Array) -> Texts:
    """The arrays of a file. Arguments as of `suggest`."""
    # In the order of the arrays of `Texts`. One view of all is handed over in place of them, which takes a third of it.
    return Texts(
        items[places[0] : places[1]],
        items[places[2] : places[3]],
        longs[places[4] : places[5]],
        items[places[6] : places[7]],
        items[places[8] : places[9]],
        items[places[10] : places[11]],
        items[places[12] : places[13]],
        items[places[14] : places[15]],
        items[places[16] : places[17]],
        items[places[18] : places[19]],
        longs[places[20] : places[21]],
        items[places[22] : places[23]],
        items[places[24] : places[25]],
        longs[places[26] : places[27]],
        items[places[28] : places[29]],
        items[places[30] : places[31]],
        items[places[32] : places[33]],
        samples,
        gone,
    )


@inner
def _bounds(asked: Array) -> Ranges:
    """Where each of the texts begins and ends."""
    bounds = np.empty((len(asked), 2), np.int32)
    count = start = 0
    for place in range(len(asked)):
        if asked[place] == 0:
            bounds[count, 0], bounds[count, 1] = start, place
            count += 1
            start = place + 1
    return bounds[:count]


@inner
def _beginning(
    texts: Texts,
    equal: Array,
    ranges: Ranges,
    noted: int,
    tier: int,
    known: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Take the shops of a tier by texts that begin so. Returns as `taken`.

    Shops that pass the filter, but are not known to sell in the country, are a tier worse than those that are, which
    have been found by then.
    """
    if tier == _BEGINS_NAME:
        count = having(texts, equal, FULL, known, found, better, count)
        return best_of(texts, ranges, noted, LEADING, known, found, better, count)
    if tier == _BEGINS_FORM:
        count = having(texts, equal, KEY, known, found, better, count)
        count = best_of(texts, ranges, noted, FULL, known, found, better, count)
        if len(passing):
            count = having(texts, equal, FULL, passing, found, better, count)
            count = best_of(texts, ranges, noted, LEADING, passing, found, better, count)
        return count
    return best_of(texts, ranges, noted, KEY, passing, found, better, count)


def entry(made: str) -> Callable[[Array, Firsts, Firsts, Firsts, Array, Array, int, int, int], Array]:
    """The function that is called from Python.

    Args:
        made: what the machine code is made of (`made_of`): other code is kept beside it, and never taken for it.
    """

    @njit(cache=True)
    def suggest(
        items: Array,
        longs: Firsts,
        places: Firsts,
        samples: Firsts,
        gone: Array,
        pressed: Array,
        forms: int,
        wanted: int,
        country: int,
    ) -> Array:
        """The best shops of a key press, without what needs categories or is two errors away.

        Args:
            items: a whole file of texts, seen as short numbers.
            longs: the same, seen as long ones.
            places: where in that one of them the arrays of `ARRAYS` begin and end.
            samples: of the three arrays of first characters each SAMPLED-th, one behind the other.
            gone: as `Texts` tells, which may be another file's.
            pressed: the query's forms (X3), and its words if there are several, when the first two forms are those
                spaced and joined; each followed by a zero.
            forms: how many forms there are.
            wanted: how many shops at most.
            country: its number, as `markets` counts them, or ANY_COUNTRY.

        Returns:
            entries, best first; see TIER_BITS.
        """
        # numba keeps machine code while this file and what it closes over are the same: this tells of all other files.
        _ = made
        found = np.empty(wanted, np.int32)
        texts = _seen(borrowed(items), borrowed(longs), places, borrowed(samples), borrowed(gone))
        return found[: _suggested(texts, borrowed(pressed), forms, country, borrowed(found))]

    return suggest


suggest: Final = entry(made_of())
