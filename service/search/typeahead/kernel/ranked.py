"""The best shops of one segment for a request, tier by tier."""

from typing import Final

from index_mappings.tiers import HALF_MIN, ONE_TYPO_MIN, TWO_TYPOS_MIN, SuggestTier
from index_mappings.typeahead.segment import FULL, KEY, LEADING, NAME
from service.search.typeahead.kernel.arrays import NOBODY, Array, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.categories import collect_named_in_category, collect_words_and_categories
from service.search.typeahead.kernel.lookup import IN_ORDER, prefix_range
from service.search.typeahead.kernel.one_typo import collect_one_typo
from service.search.typeahead.kernel.ranges import add_range, collect_ranges
from service.search.typeahead.kernel.ranking import collect_marked, insert_ranked, passes
from service.search.typeahead.kernel.request import NEAR, PUNCTUATION, SHORT, TWO_ERRORS, Request
from service.search.typeahead.kernel.two_typos import collect_two_typos
from service.search.typeahead.kernel.words import collect_in_any_order, collect_named_parts, collect_sharing

# An entry of an answer: the shop's number, and its tier in the lowest bits.
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
    """Put the entries into `found`, as many as there is room for. Returns how many."""
    if request.flags & NEAR:
        count = _near(texts, request, scratch, tiers, found)
    elif not request.forms:
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
def _near(texts: Texts, request: Request, scratch: Scratch, tiers: Array, found: Array) -> int:
    """Put the shops of the tiers 3 and 2 (M6) into `found`; with TWO_ERRORS of tier 2 alone. Returns how many."""
    once = 0
    if not request.flags & TWO_ERRORS:
        once = _of_words(texts, request, _ONE_TYPO, scratch, found, 0, 0)
    count = once
    if once < len(found):
        count = _of_words(texts, request, _TWO_TYPOS, scratch, found, once, once)
    tiers[:once], tiers[once:count] = _ONE_TYPO, _TWO_TYPOS
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
