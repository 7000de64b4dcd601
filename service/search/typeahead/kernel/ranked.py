"""The best shops of one segment for a request, collected tier by tier."""

from typing import Final

from index_mappings.tiers import HALF_MIN, ONE_TYPO_MIN, TWO_TYPOS_MIN, SuggestTier
from index_mappings.typeahead.segment import FULL, KEY, LEADING, NAME
from service.search.typeahead.kernel.arrays import MAX_INT, Array, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.categories import collect_named_in_category, collect_words_and_categories
from service.search.typeahead.kernel.lookup import IN_ORDER, prefix_range
from service.search.typeahead.kernel.one_typo import collect_one_typo
from service.search.typeahead.kernel.ranges import add_range, collect_ranges
from service.search.typeahead.kernel.ranking import collect_marked, insert_ranked, passes
from service.search.typeahead.kernel.request import NEAR, PUNCTUATION, SHORT, TWO_ERRORS, Request
from service.search.typeahead.kernel.two_typos import collect_two_typos
from service.search.typeahead.kernel.words import collect_in_any_order, collect_named_parts, collect_sharing

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


@inner
def collect_entries(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Write up to len(found) entries into `found`. Returns their number."""
    if request.flags & NEAR:
        count = _collect_near(texts, request, scratch, tiers, found)
    elif not request.forms:
        count = _collect_most_popular(texts, request.passing, found)
        tiers[:count] = _HALF
    else:
        count = _collect_ranked(texts, request, scratch, tiers, found)
    for position in range(count):
        found[position] = found[position] << TIER_BITS | tiers[position]
    return count


@inner
def _collect_ranked(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Write the best shops into `found` and their tiers into `tiers`, tier by tier. Returns their number."""
    count = better = 0
    tier = _TWO_TYPOS
    if not request.flags & TWO_ERRORS:
        count = better = _collect_named(texts, request, scratch.ranges, tiers, found)
        tier = _CATEGORY
    while tier >= _HALF and count < len(found):
        count = _collect_tier(texts, request, tier, scratch, found, better, count)
        tiers[better:count] = tier
        better = count
        tier -= 1
    return count


@inner
def _collect_named(texts: Texts, request: Request, ranges: Ranges, tiers: Array, found: Array) -> int:
    """Collect the tiers of texts that equal or begin with the query (8 to 6, and the whole of 5).

    Shops that pass the filter but are not known to sell in the country are a tier below those that are.

    Returns:
        The number of shops.
    """
    query, bounds, passing, known = request.query, request.bounds, request.passing, request.known
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
            count = collect_ranges(texts, ranges, range_count, LEADING, known, found, better, count)
        elif tier == _BEGINS_FORM:
            count = _collect_equal(texts, ranges, equals, KEY, known, found, better, count)
            count = collect_ranges(texts, ranges, range_count, FULL | LEADING, known, found, better, count)
            if len(passing):
                count = _collect_equal(texts, ranges, equals, FULL, passing, found, better, count)
                count = collect_ranges(texts, ranges, range_count, LEADING, passing, found, better, count)
        else:
            count = collect_ranges(texts, ranges, range_count, KEY, passing, found, better, count)
            if len(bounds) > request.forms:
                words = bounds[request.forms :]
                count = collect_in_any_order(texts, query, words, passing, found, better, count)
                if len(request.meant):
                    count = collect_named_in_category(
                        texts, request.carried, query, bounds, words, request.meant, passing, found, better, count
                    )
        tiers[better:count] = tier
        better = count
    return count


@inner
def _collect_equal(
    texts: Texts, ranges: Ranges, equals: int, mark: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops of the texts that equal a form, by postings with this mark. Returns as `insert_ranked`."""
    for number in range(equals):
        count = collect_marked(texts, ranges[number, 4], mark, passing, found, better, count)
    return count


@inner
def _collect_tier(
    texts: Texts, request: Request, tier: int, scratch: Scratch, found: Array, better: int, count: int
) -> int:
    """Insert the shops of one of the tiers 4 to 0. Returns as `insert_ranked`."""
    query, bounds, passing = request.query, request.bounds, request.passing
    words = bounds[request.forms :]
    if tier == _CATEGORY:
        if len(request.meant):
            count = collect_words_and_categories(
                texts, request.carried, scratch.ranges, query, words, request.meant, passing, found, better, count
            )
    elif tier == _ONE_TYPO:
        if not request.flags & PUNCTUATION:
            count = _collect_misspelt(texts, request, 1, scratch, found, better, count)
    elif tier == _TWO_TYPOS:
        if request.flags & TWO_ERRORS:
            count = _collect_misspelt(texts, request, 2, scratch, found, better, count)
        if len(words):
            count = collect_named_parts(texts, query, bounds, words, passing, found, better, count)
    elif len(words):
        count = collect_sharing(texts, query, words, tier, passing, found, better, count)
    return count


@inner
def _collect_misspelt(
    texts: Texts, request: Request, errors: int, scratch: Scratch, found: Array, better: int, count: int
) -> int:
    """Insert the shops with a key that has a prefix one or two errors away; with NEAR, with such a full form (M6).

    Returns as `insert_ranked`.
    """
    mark = FULL if request.flags & NEAR else KEY
    for number in range(request.forms):
        start, end = request.bounds[number]
        if errors == 1 and end - start >= ONE_TYPO_MIN:
            count = collect_one_typo(
                texts, request.query[start:end], mark, request.passing, scratch.ranges, found, better, count
            )
        elif errors > 1 and end - start >= TWO_TYPOS_MIN:
            count = collect_two_typos(
                texts, request.query[start:end], mark, request.passing, scratch, found, better, count
            )
    return count


@inner
def _collect_near(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Write the shops of the tiers 3 and 2 (M6) into `found`; with TWO_ERRORS only tier 2. Returns their number."""
    once = 0
    if not request.flags & TWO_ERRORS:
        once = _collect_tier(texts, request, _ONE_TYPO, scratch, found, 0, 0)
    count = once
    if once < len(found):
        count = _collect_tier(texts, request, _TWO_TYPOS, scratch, found, once, once)
    tiers[:once], tiers[once:count] = _ONE_TYPO, _TWO_TYPOS
    return count


@inner
def _collect_most_popular(texts: Texts, passing: Array, found: Array) -> int:
    """Write the best of all shops into `found`. Returns their number."""
    count = 0
    for shop in range(len(texts.own_heads) - 1):
        if count == len(found):
            break
        if passes(passing, texts.removed, shop):
            count = insert_ranked(shop, found, 0, count)
    return count
