"""A request as the kernel takes it, its best shops tier by tier, and the only function that is called from Python.

numba compiles everything that such a function calls again for each one, so a second one would double the compile time.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from index_mappings.tiers import HALF_MIN, ONE_TYPO_MIN, SUGGEST_CUT, TWO_TYPOS_MIN, SuggestTier
from shop_directory.typeahead.kernel.arrays import (
    IN_ORDER,
    IN_WORD,
    MAX_INT,
    WORD_BITS,
    Array,
    Carried,
    Firsts,
    Lookup,
    Meanings,
    Ranges,
    Ranking,
    Scratch,
    Texts,
    borrowed,
    inner,
    prefix_range,
    source_hash,
)
from shop_directory.typeahead.kernel.ranking import add_range, collect_marked, collect_ranges, insert_ranked, passes
from shop_directory.typeahead.kernel.typos import CELLS, MAX_ERRORS, collect_one_typo, collect_two_typos
from shop_directory.typeahead.kernel.words import (
    collect_in_any_order,
    collect_named_in_category,
    collect_named_parts,
    collect_sharing,
    collect_words_and_categories,
)
from shop_directory.typeahead.segment import ANY_FULL, DOTTED, FULL, KEY, LEADING, NAME

# Flags of a request: its best tier has one shop only; the query has a dot; it has no word; search only the tiers from
# two errors down; search only for what a misspelt query may mean (M6); only look up the texts that begin with it.
SHORT: Final = 1
WITH_DOT: Final = 2
PUNCTUATION: Final = 4
TWO_ERRORS: Final = 8
NEAR: Final = 16
BEGUN: Final = 32

# Capacity of `Scratch.ranges`.
_RANGES: Final = 192
# Rows of the edit distance to the longest query.
_DEPTH: Final = SUGGEST_CUT + MAX_ERRORS + 1
SCRATCH: Final = 5 * _RANGES + (CELLS + 3) * _DEPTH
# An entry of an answer is the shop's number, with its tier in the lowest bits.
TIER_BITS: Final = 4

_EQUALS: Final = int(SuggestTier.EQUALS_NAME)
_BEGINS_NAME: Final = int(SuggestTier.BEGINS_NAME)
_BEGINS_FORM: Final = int(SuggestTier.BEGINS_FORM)
_WORDS: Final = int(SuggestTier.WORDS)
_CATEGORY: Final = int(SuggestTier.WORDS_AND_CATEGORY)
_ONE_TYPO: Final = int(SuggestTier.ONE_TYPO)
_TWO_TYPOS: Final = int(SuggestTier.TWO_TYPOS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)
ANY_COUNTRY: Final = -1


class Request(NamedTuple):
    """A request, as the kernel takes it.

    Attributes:
        query: the query's forms, and its words if there are several, as code points, each followed by a zero.
        bounds: where in `query` each of these begins and ends.
        forms: the number of forms.
        passing, removed: as `Ranking` describes them.
        known: bitmap of the shops that are known to sell in the country; empty without a country.
        flags: SHORT, WITH_DOT, PUNCTUATION, TWO_ERRORS, NEAR.
    """

    query: Array
    bounds: Ranges
    forms: int
    carried: Carried
    passing: Array
    removed: Array
    known: Array
    flags: int


@inner
def texts_of(items: Array, longs: Firsts, extents: Firsts, samples: Firsts, barred: int) -> Texts:
    """The texts of a segment. Arguments as of `suggest`."""
    # In the order of ARRAYS. Passing one view of the whole file takes a third of the time of passing all arrays.
    return Texts(
        Lookup(
            items[extents[0] : extents[1]],
            items[extents[2] : extents[3]],
            longs[extents[4] : extents[5]],
            items[extents[6] : extents[7]],
            longs[extents[8] : extents[9]],
            items[extents[10] : extents[11]],
            longs[extents[12] : extents[13]],
            samples,
        ),
        items[extents[14] : extents[15]],
        items[extents[16] : extents[17]],
        items[extents[18] : extents[19]],
        items[extents[20] : extents[21]],
        items[extents[22] : extents[23]],
        items[extents[24] : extents[25]],
        items[extents[26] : extents[27]],
        items[extents[28] : extents[29]],
        barred,
    )


@inner
def scratch_of(memory: Array) -> Scratch:
    """Divide SCRATCH items of memory."""
    rows, path, walk = 5 * _RANGES, 5 * _RANGES + CELLS * _DEPTH, 5 * _RANGES + (CELLS + 1) * _DEPTH
    return Scratch(
        memory[:rows].reshape((_RANGES, 5)),
        memory[rows:path].reshape((_DEPTH, CELLS)),
        memory[path:walk],
        memory[walk:SCRATCH].reshape((_DEPTH, 2)),
    )


@inner
def bounds_of(query: Array, memory: Array) -> Ranges:
    """Where each of the query's texts begins and ends, written into `memory`, which has twice the query's size."""
    bounds = memory.reshape((len(query), 2))
    count = start = 0
    for position in range(len(query)):
        if query[position] == 0:
            bounds[count, 0], bounds[count, 1] = start, position
            count += 1
            start = position + 1
    return bounds[:count]


@inner
def collect_entries(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Write up to len(found) entries into `found`. Returns their number."""
    if not request.forms:
        count = _collect_most_popular(texts, Ranking(request.passing, request.removed, found, 0))
        tiers[:count] = _HALF
    else:
        count = _collect_ranked(texts, request, scratch, tiers, found)
    for position in range(count):
        found[position] = found[position] << TIER_BITS | tiers[position]
    return count


@inner
def _collect_ranked(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Write the best shops into `found` and their tiers into `tiers`, tier by tier. Returns their number.

    With NEAR only those of the tiers 3 and 2 (M6).
    """
    count = better = 0
    tier, last = (_ONE_TYPO, _TWO_TYPOS) if request.flags & NEAR else (_CATEGORY, _HALF)
    if request.flags & TWO_ERRORS:
        tier = _TWO_TYPOS
    elif not request.flags & NEAR:
        count = better = _collect_named(texts, request, scratch.ranges, tiers, found)
    while tier >= last and count < len(found):
        ranking = Ranking(request.passing, request.removed, found, better)
        count = _collect_tier(texts, request, tier, scratch, ranking, count)
        tiers[better:count] = tier
        better = count
        tier -= 1
    return count


@inner
def _collect_named(texts: Texts, request: Request, ranges: Ranges, tiers: Array, found: Array) -> int:
    """Collect the tiers of texts that equal or begin with the query (8 to 6, and the whole of 5). Returns their number.

    Shops that pass the filter but are not known to sell in the country are a tier below those that are.
    """
    query, bounds, removed, filtered = request.query, request.bounds, request.removed, len(request.passing) > 0
    offsets = texts.lookup.offsets
    equals = range_count = 0
    for number in range(request.forms):
        start, end = bounds[number]
        first, last = prefix_range(texts.lookup, IN_ORDER, query, start, end)
        # A text that equals the query sorts first among those that begin with it.
        if first < last and offsets[first + 1] - offsets[first] == end - start:
            ranges[equals, 4] = first
            equals += 1
        # At least half of a leading name must be typed.
        ranges[range_count, 3] = 2 * (end - start) if end - start >= HALF_MIN else MAX_INT
        range_count = add_range(ranges, range_count, (first, last), IN_ORDER)
    short = request.flags & SHORT
    better = _collect_equal(texts, ranges, equals, NAME, Ranking(request.known, removed, found, 0), 0)
    if short and better:
        better = 1
    tiers[:better] = _EQUALS
    count = better
    for tier in (_BEGINS_NAME, _BEGINS_FORM, _WORDS):
        if count == len(found):
            break
        passing = Ranking(request.passing, removed, found, better)
        known = Ranking(request.known, removed, found, better)
        if tier == _BEGINS_NAME:
            if filtered and not short:
                count = _collect_equal(texts, ranges, equals, NAME, passing, count)
            count = _collect_equal(texts, ranges, equals, FULL, known, count)
            count = collect_ranges(texts, ranges, range_count, LEADING, known, count)
        elif tier == _BEGINS_FORM:
            count = _collect_equal(texts, ranges, equals, KEY, known, count)
            count = collect_ranges(texts, ranges, range_count, FULL | LEADING, known, count)
            if filtered:
                count = _collect_equal(texts, ranges, equals, FULL, passing, count)
                count = collect_ranges(texts, ranges, range_count, LEADING, passing, count)
        else:
            count = collect_ranges(texts, ranges, range_count, KEY, passing, count)
            if len(bounds) > request.forms:
                words, meanings = bounds[request.forms :], request.carried.meanings
                count = collect_in_any_order(texts, query, words, passing, count)
                if len(meanings.meant):
                    count = collect_named_in_category(texts, meanings, query, bounds, words, passing, count)
        tiers[better:count] = tier
        better = count
    return count


@inner
def _collect_equal(texts: Texts, ranges: Ranges, equals: int, mark: int, ranking: Ranking, count: int) -> int:
    """Insert the shops of the texts that equal a form, by postings with this mark."""
    for number in range(equals):
        count = collect_marked(texts, ranges[number, 4], mark, ranking, count)
    return count


@inner
def _collect_tier(texts: Texts, request: Request, tier: int, scratch: Scratch, ranking: Ranking, count: int) -> int:
    """Insert the shops of one of the tiers 4 to 0."""
    query, bounds, carried = request.query, request.bounds, request.carried
    words = bounds[request.forms :]
    if tier == _CATEGORY:
        if len(carried.meanings.meant):
            count = collect_words_and_categories(texts, carried, scratch.ranges, query, words, ranking, count)
    elif tier == _ONE_TYPO:
        if not request.flags & PUNCTUATION:
            count = _collect_misspelt(texts, request, 1, scratch, ranking, count)
    elif tier == _TWO_TYPOS:
        if request.flags & TWO_ERRORS:
            count = _collect_misspelt(texts, request, 2, scratch, ranking, count)
        if len(words):
            count = collect_named_parts(texts, query, bounds, words, ranking, count)
    elif len(words):
        count = collect_sharing(texts, query, words, tier, ranking, count)
    return count


@inner
def _collect_misspelt(
    texts: Texts, request: Request, errors: int, scratch: Scratch, ranking: Ranking, count: int
) -> int:
    """Insert the shops with a key that has a prefix one or two errors away; with NEAR, with such a full form (M6)."""
    mark = ANY_FULL if request.flags & NEAR else KEY
    for number in range(request.forms):
        start, end = request.bounds[number]
        if errors == 1 and end - start >= ONE_TYPO_MIN:
            count = collect_one_typo(texts, request.query[start:end], mark, scratch.ranges, ranking, count)
        elif errors > 1 and end - start >= TWO_TYPOS_MIN:
            count = collect_two_typos(texts, request.query[start:end], mark, scratch, ranking, count)
    return count


@inner
def _collect_most_popular(texts: Texts, ranking: Ranking) -> int:
    """Find the best of all shops. Returns their number."""
    count = 0
    for shop in range(len(texts.own_heads) - 1):
        if count == len(ranking.found):
            break
        if passes(ranking, shop):
            count = insert_ranked(shop, ranking, count)
    return count


# Arguments of `suggest`: `items` and `longs` are the whole segment as int32 and int64; `extents` says where in them the
# arrays of ARRAYS begin and end; `samples`, `removed`, `meant` and `flags` are as `Lookup`, `Ranking`, `Meanings` and
# `Request` describe them, and so is `query`; if there are several words, its first two forms (X3) are the spaced and
# the joined one. Without `forms` the most popular shops are requested. `filtered` is a bitmap of the shops that pass
# other filters than the country, which is ANY_COUNTRY then; empty without a filter. `country` is a row of `markets`.
# With BEGUN the answer is the number of the first text that begins with the query, and the end of these.
def suggest_entry(
    source: str,
) -> Callable[[Array, Firsts, Firsts, Firsts, Array, Array, int, Array, Array, int, int, int], Array]:
    """The function that is called from Python; `source` is `source_hash()`.

    numba's cache key is this file and the function's closure, so the hash excludes code of other sources.
    """

    @njit(cache=True)
    def suggest(
        items: Array,
        longs: Firsts,
        extents: Firsts,
        samples: Firsts,
        removed: Array,
        query: Array,
        forms: int,
        meant: Array,
        filtered: Array,
        limit: int,
        country: int,
        flags: int,
    ) -> Array:
        """The best shops for a suggest request, or those that a misspelt query may mean: entries (see TIER_BITS)."""
        _ = source
        # All memory of the request is one array; it is returned, so it outlives the views of it.
        whole = np.empty(2 * limit + 2 * len(query) + SCRATCH, np.int32)
        memory, borrowed_query, segment = borrowed(whole), borrowed(query), borrowed(items)
        barred = 0 if flags & WITH_DOT else DOTTED
        texts = texts_of(segment, borrowed(longs), extents, borrowed(samples), barred)
        if flags & BEGUN:
            whole[0], whole[1] = prefix_range(texts.lookup, IN_ORDER, borrowed_query, 0, len(query))
            return whole[:2]
        passing = known = borrowed(filtered)
        if country >= 0:
            size = (len(texts.own_heads) - 1 + IN_WORD) >> WORD_BITS
            first, last = country * size, (country + 1) * size
            passing = segment[extents[38] + first : extents[38] + last]
            known = segment[extents[40] + first : extents[40] + last]
        request = Request(
            borrowed_query,
            bounds_of(borrowed_query, memory[2 * limit : 2 * limit + 2 * len(query)]),
            forms,
            Carried(
                segment[extents[30] : extents[31]],
                segment[extents[32] : extents[33]],
                Meanings(segment[extents[34] : extents[35]], segment[extents[36] : extents[37]], borrowed(meant)),
            ),
            passing,
            borrowed(removed),
            known,
            flags,
        )
        scratch = scratch_of(memory[2 * limit + 2 * len(query) :])
        count = collect_entries(texts, request, scratch, memory[limit : 2 * limit], memory[:limit])
        return whole[:count]

    return suggest


suggest: Final = suggest_entry(source_hash())
