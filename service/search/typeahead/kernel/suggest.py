"""The best shops of one segment for a suggest request, and those that are near to a misspelt text."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from index_mappings.tiers import HALF_MIN, ONE_TYPO_MIN, SUGGEST_CUT, TWO_TYPOS_MIN, SuggestTier
from index_mappings.typeahead.segment import DOTTED, FULL, KEY, LEADING, NAME
from service.search.typeahead.kernel.arrays import (
    IN_WORD,
    NOBODY,
    WORD_BITS,
    Array,
    Carried,
    Firsts,
    Lookup,
    Ranges,
    Scratch,
    Texts,
    borrowed,
    inner,
    source_hash,
)
from service.search.typeahead.kernel.categories import collect_named_in_category, collect_words_and_categories
from service.search.typeahead.kernel.lookup import IN_ORDER, prefix_range
from service.search.typeahead.kernel.one_typo import collect_one_typo
from service.search.typeahead.kernel.ranges import add_range, collect_ranges
from service.search.typeahead.kernel.ranking import collect_marked, insert_ranked, passes
from service.search.typeahead.kernel.two_typos import CELLS, MOST_ERRORS, collect_two_typos
from service.search.typeahead.kernel.words import collect_in_any_order, collect_named_parts, collect_sharing

# An entry of an answer: the shop's number, and its tier in the lowest bits.
TIER_BITS: Final = 4
ANY_COUNTRY: Final = -1
# What a request is, as bits: its first tier has one shop; it has a dot; it has no word; only the tiers from two errors
# on are asked for.
SHORT: Final = 1
WITH_DOT: Final = 2
PUNCTUATION: Final = 4
TWO_ERRORS: Final = 8

_EQUALS: Final = int(SuggestTier.EQUALS_NAME)
_BEGINS_NAME: Final = int(SuggestTier.BEGINS_NAME)
_BEGINS_FORM: Final = int(SuggestTier.BEGINS_FORM)
_WORDS: Final = int(SuggestTier.WORDS)
_CATEGORY: Final = int(SuggestTier.WORDS_AND_CATEGORY)
_ONE_TYPO: Final = int(SuggestTier.ONE_TYPO)
_TWO_TYPOS: Final = int(SuggestTier.TWO_TYPOS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)
# So many ranges are collected at a time.
_RANGES: Final = 192
# Rows of the distance to the longest text that is asked for.
_DEPTH: Final = SUGGEST_CUT + MOST_ERRORS + 1
_SCRATCH: Final = 5 * _RANGES + (CELLS + 3) * _DEPTH


class Request(NamedTuple):
    """A request, as the machine code sees it.

    Attributes:
        asked: the query's forms, and its words if there are several, each followed by a zero.
        bounds: where in `asked` each of these begins and ends.
        forms: how many of them are forms.
        meant: if one of several words says a category, of each word the numbers of those that it says, as a list of
            lists: where each begins, the last one's end, then the numbers, ascending.
        carried: the categories of shops.
        passing: bitmap of the shops that pass the filter; empty without a country.
        known: bitmap of those that are known to sell there; empty without a country.
        flags: SHORT, WITH_DOT, PUNCTUATION, TWO_ERRORS.
    """

    asked: Array
    bounds: Ranges
    forms: int
    meant: Array
    carried: Carried
    passing: Array
    known: Array
    flags: int


@inner
def _suggested(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Put the entries into `found`, as many as there is room for. Returns how many."""
    if not request.forms:
        count = _most_popular(texts, request.passing, found)
        tiers[:count] = _HALF
    else:
        count = _ranked(texts, request, scratch, tiers, found)
    for place in range(count):
        found[place] = found[place] << TIER_BITS | tiers[place]
    return count


@inner
def _ranked(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Put the best shops into `found` and their tiers into `tiers`, tier by tier. Returns how many."""
    count = better = 0
    tier = _TWO_TYPOS
    if not request.flags & TWO_ERRORS:
        count = better = _named(texts, request, scratch.ranges, tiers, found)
        tier = _CATEGORY
    while tier >= _HALF and count < len(found):
        count = _of_words(texts, request, tier, scratch, found, better, count)
        tiers[better:count] = tier
        better = count
        tier -= 1
    return count


@inner
def _named(texts: Texts, request: Request, ranges: Ranges, tiers: Array, found: Array) -> int:
    """The tiers of equal texts and of those that begin so (8 to 6, and of 5 the keys). Returns the number of shops.

    Shops that pass the filter, but are not known to sell in the country, are a tier worse than those that are.
    """
    asked, bounds, passing, known = request.asked, request.bounds, request.passing, request.known
    offsets = texts.lookup.offsets
    equals = number_of = 0
    for number in range(request.forms):
        start, end = bounds[number]
        first, last = prefix_range(texts.lookup, IN_ORDER, asked, start, end)
        # A text that equals the beginning is the first that begins so.
        if first < last and offsets[first + 1] - offsets[first] == end - start:
            ranges[equals, 4] = first
            equals += 1
        # At least half of a leading name must be typed.
        ranges[number_of, 3] = 2 * (end - start) if end - start >= HALF_MIN else NOBODY
        number_of = add_range(ranges, number_of, first, last, IN_ORDER)
    short = request.flags & SHORT
    better = _collect_equal(texts, ranges, equals, NAME, known, found, 0, 0)
    if short and better:
        better = 1
    tiers[:better] = _EQUALS
    count = better
    for tier in (_BEGINS_NAME, _BEGINS_FORM, _WORDS):
        if count == len(found):
            break
        if tier == _BEGINS_NAME:
            if len(passing) and not short:
                count = _collect_equal(texts, ranges, equals, NAME, passing, found, better, count)
            count = _collect_equal(texts, ranges, equals, FULL, known, found, better, count)
            count = collect_ranges(texts, ranges, number_of, LEADING, known, found, better, count)
        elif tier == _BEGINS_FORM:
            count = _collect_equal(texts, ranges, equals, KEY, known, found, better, count)
            count = collect_ranges(texts, ranges, number_of, FULL | LEADING, known, found, better, count)
            if len(passing):
                count = _collect_equal(texts, ranges, equals, FULL, passing, found, better, count)
                count = collect_ranges(texts, ranges, number_of, LEADING, passing, found, better, count)
        else:
            count = collect_ranges(texts, ranges, number_of, KEY, passing, found, better, count)
            if len(bounds) > request.forms:
                words = bounds[request.forms :]
                count = collect_in_any_order(texts, asked, words, passing, found, better, count)
                if len(request.meant):
                    count = collect_named_in_category(
                        texts, request.carried, asked, bounds, words, request.meant, passing, found, better, count
                    )
        tiers[better:count] = tier
        better = count
    return count


@inner
def _collect_equal(
    texts: Texts, ranges: Ranges, equals: int, mark: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops that have one of the texts that equal a form, with this mark. Returns as `insert_ranked`."""
    for number in range(equals):
        count = collect_marked(texts, ranges[number, 4], mark, passing, found, better, count)
    return count


@inner
def _of_words(
    texts: Texts, request: Request, tier: int, scratch: Scratch, found: Array, better: int, count: int
) -> int:
    """Insert the shops of a tier from 4 down. Returns as `insert_ranked`."""
    asked, bounds, passing = request.asked, request.bounds, request.passing
    words = bounds[request.forms :]
    if tier == _CATEGORY:
        if len(request.meant):
            count = collect_words_and_categories(
                texts, request.carried, scratch.ranges, asked, words, request.meant, passing, found, better, count
            )
    elif tier == _ONE_TYPO:
        if not request.flags & PUNCTUATION:
            count = _misspelt(texts, request, 1, scratch, found, better, count)
    elif tier == _TWO_TYPOS:
        if request.flags & TWO_ERRORS:
            count = _misspelt(texts, request, 2, scratch, found, better, count)
        if len(words):
            count = collect_named_parts(texts, asked, bounds, words, passing, found, better, count)
    elif len(words):
        count = collect_sharing(texts, asked, words, tier, passing, found, better, count)
    return count


@inner
def _misspelt(
    texts: Texts, request: Request, errors: int, scratch: Scratch, found: Array, better: int, count: int
) -> int:
    """Insert the shops with a key of which a beginning is so many errors away. Returns as `insert_ranked`."""
    for number in range(request.forms):
        start, end = request.bounds[number]
        if errors == 1 and end - start >= ONE_TYPO_MIN:
            count = collect_one_typo(
                texts, request.asked[start:end], request.passing, scratch.ranges, found, better, count
            )
        elif errors > 1 and end - start >= TWO_TYPOS_MIN:
            count = collect_two_typos(texts, request.asked[start:end], request.passing, scratch, found, better, count)
    return count


@inner
def _most_popular(texts: Texts, passing: Array, found: Array) -> int:
    """The best shops of all. Returns how many."""
    count = 0
    for shop in range(len(texts.own_heads) - 1):
        if count == len(found):
            break
        if passes(passing, texts.removed, shop):
            count = insert_ranked(shop, found, 0, count)
    return count


@inner
def _texts_of(items: Array, longs: Firsts, places: Firsts, samples: Firsts, removed: Array, barred: int) -> Texts:
    """The texts of a segment. Arguments as of `suggest`."""
    # By the order of ARRAYS. Passing one view of the whole file takes a third of passing all arrays.
    return Texts(
        Lookup(
            items[places[0] : places[1]],
            items[places[2] : places[3]],
            longs[places[4] : places[5]],
            items[places[6] : places[7]],
            longs[places[8] : places[9]],
            items[places[10] : places[11]],
            longs[places[12] : places[13]],
            samples,
        ),
        items[places[14] : places[15]],
        items[places[16] : places[17]],
        items[places[18] : places[19]],
        items[places[20] : places[21]],
        items[places[22] : places[23]],
        items[places[24] : places[25]],
        items[places[26] : places[27]],
        items[places[28] : places[29]],
        removed,
        barred,
    )


@inner
def _scratch_of(memory: Array) -> Scratch:
    """The parts of SCRATCH items of memory."""
    rows, path, walk = 5 * _RANGES, 5 * _RANGES + CELLS * _DEPTH, 5 * _RANGES + (CELLS + 1) * _DEPTH
    return Scratch(
        memory[:rows].reshape((_RANGES, 5)),
        memory[rows:path].reshape((_DEPTH, CELLS)),
        memory[path:walk],
        memory[walk:_SCRATCH].reshape((_DEPTH, 2)),
    )


@inner
def _bounds_of(asked: Array, memory: Array) -> Ranges:
    """Where each of the texts begins and ends, written into memory of twice the size."""
    bounds = memory.reshape((len(asked), 2))
    count = start = 0
    for place in range(len(asked)):
        if asked[place] == 0:
            bounds[count, 0], bounds[count, 1] = start, place
            count += 1
            start = place + 1
    return bounds[:count]


def suggest_entry(
    source: str,
) -> Callable[[Array, Firsts, Firsts, Firsts, Array, Array, int, Array, int, int, int], Array]:
    """The function that is called from Python.

    Args:
        source: `source_hash()`; numba caches machine code by this file and by what the function closes over, so code of
            another source is never used.
    """  # fmt: skip

    @njit(cache=True)
    def suggest(
        items: Array,
        longs: Firsts,
        places: Firsts,
        samples: Firsts,
        removed: Array,
        asked: Array,
        forms: int,
        meant: Array,
        wanted: int,
        country: int,
        flags: int,
    ) -> Array:
        """The best shops for a suggest request.

        Args:
            items: the whole segment as int32.
            longs: the same as int64.
            places: where in `items` or `longs` the arrays of ARRAYS begin and end.
            samples: as `Lookup` describes them.
            removed: as `Texts` describes it.
            asked: the query's forms (X3), and its words if there are several, when the first two forms are those
                spaced and joined; each followed by a zero.
            forms: how many forms there are; 0 asks for the most popular shops.
            meant: as `Request` describes it.
            wanted: how many shops at most.
            country: its number, as `markets` counts them, or ANY_COUNTRY.
            flags: as `Request` describes them.

        Returns:
            entries, best first; see TIER_BITS.
        """
        _ = source
        # All memory of the request is one array, which is returned, and so outlives what borrows it.
        whole = np.empty(2 * wanted + 2 * len(asked) + _SCRATCH, np.int32)
        memory, query, segment = borrowed(whole), borrowed(asked), borrowed(items)
        barred = 0 if flags & WITH_DOT else DOTTED
        texts = _texts_of(segment, borrowed(longs), places, borrowed(samples), borrowed(removed), barred)
        size = (len(texts.own_heads) - 1 + IN_WORD) >> WORD_BITS
        # Without a country no shop is filtered out.
        first, last = (country * size, (country + 1) * size) if country >= 0 else (0, 0)
        scratch = memory[2 * wanted + 2 * len(asked) :]
        request = Request(
            query,
            _bounds_of(query, memory[2 * wanted : 2 * wanted + 2 * len(asked)]),
            forms,
            borrowed(meant),
            Carried(
                segment[places[30] : places[31]],
                segment[places[32] : places[33]],
                segment[places[34] : places[35]],
                segment[places[36] : places[37]],
            ),
            segment[places[38] + first : places[38] + last],
            segment[places[40] + first : places[40] + last],
            flags,
        )
        count = _suggested(texts, request, _scratch_of(scratch), memory[wanted : 2 * wanted], memory[:wanted])
        return whole[:count]

    return suggest


def near_entry(source: str) -> Callable[[Array, Firsts, Firsts, Firsts, Array, Array, int, Array, int, int], Array]:
    """The function that finds what a query may have meant. The argument is that of `suggest_entry`."""

    @njit(cache=True)
    def near(
        items: Array,
        longs: Firsts,
        places: Firsts,
        samples: Firsts,
        removed: Array,
        asked: Array,
        forms: int,
        passing: Array,
        wanted: int,
        flags: int,
    ) -> Array:
        """The best shops of the tiers 3 and 2 (M6).

        Args:
            items: as of `suggest`, like those that are not described here.
            longs: see above.
            places: see above.
            samples: see above.
            removed: see above.
            asked: see above.
            forms: see above.
            passing: bitmap of the shops that pass the filters; empty where there is none.
            wanted: see above.
            flags: WITH_DOT; TWO_ERRORS where tier 3 is known to be empty, and two errors count.

        Returns:
            entries, best first; see TIER_BITS.
        """
        _ = source
        whole = np.empty(wanted + 2 * len(asked) + _SCRATCH, np.int32)
        memory, query, filtered = borrowed(whole), borrowed(asked), borrowed(passing)
        barred = 0 if flags & WITH_DOT else DOTTED
        texts = _texts_of(borrowed(items), borrowed(longs), places, borrowed(samples), borrowed(removed), barred)
        bounds = _bounds_of(query, memory[wanted : wanted + 2 * len(asked)])
        nothing = query[:0]
        carried = Carried(nothing, nothing, nothing, nothing)
        request = Request(query, bounds, forms, nothing, carried, filtered, filtered, flags)
        scratch = _scratch_of(memory[wanted + 2 * len(asked) :])
        found = memory[:wanted]
        once = count = 0
        if not flags & TWO_ERRORS:
            once = count = _of_words(texts, request, _ONE_TYPO, scratch, found, 0, 0)
        if once < wanted:
            count = _of_words(texts, request, _TWO_TYPOS, scratch, found, once, once)
        for place in range(count):
            found[place] = found[place] << TIER_BITS | (_ONE_TYPO if place < once else _TWO_TYPOS)
        return whole[:count]

    return near


suggest: Final = suggest_entry(source_hash())
near: Final = near_entry(source_hash())
