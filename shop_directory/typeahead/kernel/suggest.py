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
    MAX_INT,
    Array,
    Cells,
    Longs,
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
from shop_directory.typeahead.kernel.segments import (
    FILTERS,
    TIER_BITS,
    SearchedSegment,
    keep_best_first,
    merge_found,
    segment_at,
    texts_at,
)
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
# The columns of `Findings.named`.
_NAMED: Final = 5

_EQUALS: Final = int(SuggestTier.EQUALS_NAME)
_BEGINS_NAME: Final = int(SuggestTier.BEGINS_NAME)
_BEGINS_FORM: Final = int(SuggestTier.BEGINS_FORM)
_WORDS: Final = int(SuggestTier.WORDS)
_CATEGORY: Final = int(SuggestTier.WORDS_AND_CATEGORY)
_ONE_TYPO: Final = int(SuggestTier.ONE_TYPO)
_TWO_TYPOS: Final = int(SuggestTier.TWO_TYPOS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)


class KernelRequest(NamedTuple):
    """A request, as the kernel takes it.

    Attributes:
        query: the query's forms, and its words if there are several, as code points, each followed by a zero.
        bounds: where in `query` each of these begins and ends.
        forms: the number of forms.
        flags: SHORT, WITH_DOT, PUNCTUATION, TWO_ERRORS, NEAR.
    """

    query: Array
    bounds: Ranges
    forms: int
    flags: int


class Findings(NamedTuple):
    """What a request has found so far, in each segment: the best shops, with their tiers, and their number.

    `named` are ranges of texts, as those of `Scratch`, that begin with a form of the query, or equal one in the fifth
    column; `sizes` are the number of the former and of the latter.
    """

    found: Ranges
    tiers: Ranges
    counts: Array
    named: Cells
    sizes: Ranges


@inner
def findings_of(memory: Array, segments: int, limit: int, forms: int) -> Findings:
    """Divide memory, which has the size of `findings_size`."""
    tiers = segments * limit
    counts = 2 * tiers
    named = counts + segments
    sizes = named + segments * forms * _NAMED
    return Findings(
        memory[:tiers].reshape((segments, limit)),
        memory[tiers:counts].reshape((segments, limit)),
        memory[counts:named],
        memory[named:sizes].reshape((segments, forms, _NAMED)),
        memory[sizes : sizes + 2 * segments].reshape((segments, 2)),
    )


@inner
def findings_size(segments: int, limit: int, forms: int) -> int:
    """The number of items of findings."""
    return segments * (2 * limit + forms * _NAMED + 3)


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
def collect_found(
    table: Longs, filters: Longs, meant: Array, request: KernelRequest, scratch: Scratch, findings: Findings
) -> None:
    """Find the best shops of each segment, tier by tier, until all segments together have enough.

    With NEAR only those of the tiers 3 and 2 (M6).
    """
    counts, limit = findings.counts, findings.found.shape[1]
    counts[:] = 0
    tier = _TWO_TYPOS if request.flags & TWO_ERRORS else _ONE_TYPO if request.flags & NEAR else _EQUALS
    if not request.forms:
        tier = _HALF
    last = _TWO_TYPOS if request.flags & NEAR else _HALF
    barred = 0 if request.flags & WITH_DOT else DOTTED
    total = 0
    while tier >= last and total < limit:
        # The tiers of a single segment need no other one.
        end = last if len(counts) == 1 else tier
        total = 0
        for number in range(len(counts)):
            if counts[number] < limit:
                segment = segment_at(table, filters, meant, number, barred)
                _collect_tiers(segment, request, tier, end, scratch, findings, number)
            total += counts[number]
        if tier == _EQUALS and total > 1 and len(counts) > 1 and request.flags & SHORT:
            total = keep_best_first(table, findings.found, counts)
        tier = end - 1


@inner
def _collect_tiers(
    segment: SearchedSegment,
    request: KernelRequest,
    tier: int,
    end: int,
    scratch: Scratch,
    findings: Findings,
    number: int,
) -> None:
    """Find the best shops of one segment in the tiers down to `end`, until there are enough."""
    found, tiers, named, sizes = (
        findings.found[number],
        findings.tiers[number],
        findings.named[number],
        findings.sizes[number],
    )
    count = findings.counts[number] + 0  # an int64, as all other functions take it
    if tier == _EQUALS:
        _look_up(segment.texts, request, named, sizes)
    while tier >= end and count < len(found):
        better = count
        passing = Ranking(segment.passing, segment.removed, found, better)
        if not request.forms:
            count = _collect_most_popular(segment.texts, passing)
        elif tier > _CATEGORY:
            known = Ranking(segment.known, segment.removed, found, better)
            count = _collect_named(segment, request, tier, named, sizes, passing, known)
        else:
            count = _collect_lower(segment, request, tier, scratch, passing)
        if tier == _EQUALS and request.flags & SHORT:
            count = min(count, 1)
        tiers[better:count] = tier
        tier -= 1
    findings.counts[number] = count


@inner
def _look_up(texts: Texts, request: KernelRequest, named: Ranges, sizes: Array) -> None:
    """Look up the texts that begin with or equal a form of the query."""
    offsets = texts.lookup.offsets
    equals = range_count = 0
    for number in range(request.forms):
        start, end = request.bounds[number]
        first, last = prefix_range(texts.lookup, IN_ORDER, request.query, start, end)
        # A text that equals the query sorts first among those that begin with it.
        if first < last and offsets[first + 1] - offsets[first] == end - start:
            named[equals, 4] = first
            equals += 1
        # At least half of a leading name must be typed.
        named[range_count, 3] = 2 * (end - start) if end - start >= HALF_MIN else MAX_INT
        range_count = add_range(named, range_count, (first, last), IN_ORDER)
    sizes[0], sizes[1] = range_count, equals


@inner
def _collect_named(
    segment: SearchedSegment,
    request: KernelRequest,
    tier: int,
    ranges: Ranges,
    sizes: Array,
    passing: Ranking,
    known: Ranking,
) -> int:
    """Insert the shops of one of the tiers of texts that equal or begin with the query (8 to 6, and the whole of 5).

    Shops that pass the filter but are not known to sell in the country are a tier below those that are.
    """
    texts, query, bounds = segment.texts, request.query, request.bounds
    filtered, range_count, equals = len(segment.passing) > 0, sizes[0], sizes[1]
    count = passing.better
    if tier == _EQUALS:
        count = _collect_equal(texts, ranges, equals, NAME, known, count)
    elif tier == _BEGINS_NAME:
        if filtered and not request.flags & SHORT:
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
            words, meanings = bounds[request.forms :], segment.carried.meanings
            count = collect_in_any_order(texts, query, words, passing, count)
            if len(meanings.meant):
                count = collect_named_in_category(texts, meanings, query, bounds, words, passing, count)
    return count


@inner
def _collect_equal(texts: Texts, ranges: Ranges, equals: int, mark: int, ranking: Ranking, count: int) -> int:
    """Insert the shops of the texts that equal a form, by postings with this mark."""
    for number in range(equals):
        count = collect_marked(texts, ranges[number, 4], mark, ranking, count)
    return count


@inner
def _collect_lower(
    segment: SearchedSegment, request: KernelRequest, tier: int, scratch: Scratch, ranking: Ranking
) -> int:
    """Insert the shops of one of the tiers 4 to 0."""
    texts, carried, query, bounds = segment.texts, segment.carried, request.query, request.bounds
    words, count = bounds[request.forms :], ranking.better
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
    texts: Texts, request: KernelRequest, errors: int, scratch: Scratch, ranking: Ranking, count: int
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


# Arguments of `suggest`: `table` and `filters` name arrays of each segment (`segments`); `query`, `forms` and `flags`
# are as `KernelRequest` describes them; if there are several words, the query's first two forms (X3) are the spaced and
# the joined one. Without forms the most popular shops are requested. `meant` is empty, or a list of lists with what
# `Meanings` describes, for each segment. With one segment the answer is its entries; with several, each entry is
# followed by the number of its segment. With BEGUN the answer is the number of the first text of the only segment that
# begins with the query, and the end of these.
def suggest_entry(source: str) -> Callable[[Longs, Longs, Array, int, Array, int, int], Array]:
    """The function that is called from Python; `source` is `source_hash()`.

    numba's cache key is this file and the function's closure, so the hash excludes code of other sources.
    """

    @njit(cache=True)
    def suggest(table: Longs, filters: Longs, query: Array, forms: int, meant: Array, limit: int, flags: int) -> Array:
        """The best shops for a suggest request, or those that a misspelt query may mean: entries (see TIER_BITS)."""
        _ = source
        segments = len(filters) // FILTERS
        size = findings_size(segments, limit, forms)
        scratch, merged = size + 2 * len(query), size + 2 * len(query) + SCRATCH
        # All memory of the request is one array; it is returned, so it outlives the views of it.
        whole = np.empty(merged + 2 * limit, np.int32)
        memory, lent_query, lent_table = borrowed(whole), borrowed(query), borrowed(table)
        if flags & BEGUN:
            texts = texts_at(lent_table, 0, 0)
            whole[0], whole[1] = prefix_range(texts.lookup, IN_ORDER, lent_query, 0, len(query))
            return whole[:2]
        request = KernelRequest(lent_query, bounds_of(lent_query, memory[size:scratch]), forms, flags)
        findings = findings_of(memory, segments, limit, forms)
        collect_found(lent_table, borrowed(filters), borrowed(meant), request, scratch_of(memory[scratch:]), findings)
        found, tiers, counts = findings.found, findings.tiers, findings.counts
        if segments == 1:
            for position in range(counts[0]):
                found[0, position] = found[0, position] << TIER_BITS | tiers[0, position]
            return whole[: counts[0]]
        best = memory[merged:].reshape((limit, 2))
        count = merge_found(lent_table, found, tiers, counts, memory[scratch : scratch + segments], best)
        return whole[merged : merged + 2 * count]

    return suggest


suggest: Final = suggest_entry(source_hash())
