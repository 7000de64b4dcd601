"""The tiers in which some of several words mean categories of a shop (5 and 4)."""

from typing import Final

import numpy as np

from index_mappings.tiers import OVERLAP_WORDS
from index_mappings.typeahead.segment import FULL, POSTING_BITS, WORD
from service.search.typeahead.kernel.arrays import Array, Carried, Flags, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, find_text, prefix_range
from service.search.typeahead.kernel.ranking import flag_owners, insert_ranked, passes, seek_shop
from service.search.typeahead.kernel.words import FLAGS_PER_SHOP, has_word

# With at least so many candidates, the shops that have a second word are flagged before the scan.
_FLAGGED_FROM: Final = 1_000


@inner
def collect_named_in_category(
    texts: Texts,
    carried: Carried,
    query: Array,
    bounds: Ranges,
    words: Ranges,
    meant: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of which the first words are a full form and each later word means a category (5).

    Returns as `insert_ranked`.
    """
    heads, postings = texts.heads, texts.postings
    of_shops, categories = carried.own_category_heads, carried.own_categories
    last = len(words) - 1
    first_meaning = last  # all words from here on mean some category
    while first_meaning > 1 and meant[first_meaning - 1] < meant[first_meaning]:
        first_meaning -= 1
    if meant[last] == meant[last + 1]:
        return count
    for form in range(2):
        start = bounds[form, 0]
        between = 1 - form  # a space, in the first form
        until = start - between
        for number in range(min(last, OVERLAP_WORDS)):
            until += between + words[number, 1] - words[number, 0]
            text = find_text(texts.lookup, query, start, until) if number + 1 >= first_meaning else -1
            if text < 0:
                continue
            for at in range(heads[text], heads[text + 1]):
                shop = postings[at] >> POSTING_BITS
                if count == len(found) and found[count - 1] < shop:
                    break
                if (
                    postings[at] & FULL
                    and passes(passing, texts.removed, shop)
                    and _mean_categories(of_shops, categories, meant, shop, number + 1, last + 1)
                ):
                    count = insert_ranked(shop, found, better, count)
    return count


@inner
def collect_words_and_categories(
    texts: Texts,
    carried: Carried,
    ranges: Ranges,
    query: Array,
    words: Ranges,
    meant: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of which every word is their own or means a category, and at least one is their own (4).

    Returns as `insert_ranked`.
    """
    size = len(words)
    own_postings, rarest, fewest = _fill_ranges(texts, carried, ranges, query, words, meant)
    if not fewest or not own_postings:
        return count
    # Every shop of this tier has the rarest word, and some word of its own: scan whichever list is shorter.
    flags = _flagged(texts, carried, ranges, size, meant, rarest, min(own_postings, fewest))
    for number in range(size):
        if own_postings < fewest or number == rarest:
            count = _collect_owners(texts, carried, ranges, size, number, meant, flags, passing, found, better, count)
    if own_postings < fewest:
        return count
    of_shops, categories, heads = carried.own_category_heads, carried.own_categories, carried.category_heads
    for at in range(meant[rarest], meant[rarest + 1]):
        _rewind(texts.heads, ranges, size)
        for index in range(heads[meant[at]], heads[meant[at] + 1]):
            shop = carried.category_shops[index]
            if count == len(found) and found[count - 1] < shop:
                break
            if (
                _is_flagged(flags, shop)
                and passes(passing, texts.removed, shop)
                and _matches_all_words(texts, of_shops, categories, ranges, size, meant, shop)
            ):
                count = insert_ranked(shop, found, better, count)
    return count


@inner
def _fill_ranges(
    texts: Texts, carried: Carried, ranges: Ranges, query: Array, words: Ranges, meant: Array
) -> tuple[int, int, int]:
    """Set the range of texts of each word, and in the fourth column the number of shops that it can match at most.

    Returns:
        The number of postings of all words; the word that can match the fewest shops, and the number of these.
    """
    heads, category_heads = texts.heads, carried.category_heads
    size = len(words)
    own_postings = 0
    rarest = 0
    for number in range(size):
        start, end = words[number]
        if number + 1 < size:
            text = find_text(texts.lookup, query, start, end)
            ranges[number, 0], ranges[number, 1] = (text, text + 1) if text >= 0 else (0, 0)
        else:
            ranges[number, 0], ranges[number, 1] = prefix_range(texts.lookup, IN_ORDER, query, start, end)
        shop_count = heads[ranges[number, 1]] - heads[ranges[number, 0]]
        own_postings += shop_count
        for at in range(meant[number], meant[number + 1]):
            shop_count += category_heads[meant[at] + 1] - category_heads[meant[at]]
        ranges[number, 3] = shop_count
        if shop_count < ranges[rarest, 3]:
            rarest = number
    return own_postings, rarest, ranges[rarest, 3]


@inner
def _flagged(
    texts: Texts, carried: Carried, ranges: Ranges, size: int, meant: Array, rarest: int, scanned: int
) -> Flags:
    """Flags of the shops that have the second rarest word; empty where this saves no time.

    The last word is not considered, because very many texts may begin with it.
    """
    another = -1
    for number in range(size - 1):
        if number != rarest and (another < 0 or ranges[number, 3] < ranges[another, 3]):
            another = number
    if another < 0 or scanned < _FLAGGED_FROM or ranges[another, 3] >= FLAGS_PER_SHOP * scanned:
        return np.zeros(0, np.bool_)
    flags = np.zeros(len(carried.own_category_heads) - 1, np.bool_)
    flag_owners(texts, ranges[another, 0], ranges[another, 1], flags)
    heads = carried.category_heads
    for at in range(meant[another], meant[another + 1]):
        for index in range(heads[meant[at]], heads[meant[at] + 1]):
            flags[carried.category_shops[index]] = True
    return flags


@inner
def _collect_owners(
    texts: Texts,
    carried: Carried,
    ranges: Ranges,
    size: int,
    number: int,
    meant: Array,
    flags: Flags,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of the tier that have one word as their own. Returns as `insert_ranked`."""
    heads, postings = texts.heads, texts.postings
    of_shops, categories = carried.own_category_heads, carried.own_categories
    low, high = ranges[number, 0], ranges[number, 1]
    for text in range(low, high):
        _rewind(heads, ranges, size)
        for at in range(heads[text], heads[text + 1]):
            shop = postings[at] >> POSTING_BITS
            if count == len(found) and found[count - 1] < shop:
                break
            if (
                postings[at] & WORD
                and _is_flagged(flags, shop)
                and passes(passing, texts.removed, shop)
                and _matches_all_words(texts, of_shops, categories, ranges, size, meant, shop)
            ):
                count = insert_ranked(shop, found, better, count)
    return count


@inner
def _is_flagged(flags: Flags, shop: int) -> bool:
    """Whether a shop is flagged; without flags all are."""
    return len(flags) == 0 or flags[shop]


@inner
def _rewind(heads: Array, ranges: Ranges, size: int) -> None:
    """Set the third column, the position in the postings of each word, to the beginning of the postings."""
    for number in range(size):
        ranges[number, 2] = heads[ranges[number, 0]]


@inner
def _matches_all_words(
    texts: Texts, category_heads: Array, categories: Array, ranges: Ranges, size: int, meant: Array, shop: int
) -> bool:
    """Whether every word is the shop's own or means a category of it, and at least one is its own.

    Between two calls of `_rewind`, shops must be passed in ascending order: the positions in the postings of all words
    but the last, each of which is one text at most, only move forward. Where these decide, the shop's texts are not
    read.
    """
    heads, postings = texts.heads, texts.postings
    any_own = False
    for number in range(size - 1):
        end = heads[ranges[number, 1]]
        at = ranges[number, 2] = seek_shop(postings, ranges[number, 2], end, shop)
        if at < end and postings[at] >> POSTING_BITS == shop and postings[at] & WORD:
            any_own = True
        elif not _means_category(category_heads, categories, meant, shop, number):
            return False
    if any_own and _means_category(category_heads, categories, meant, shop, size - 1):
        return True
    start, end = texts.own_heads[shop], texts.own_heads[shop + 1]
    return has_word(texts.own, start, end, ranges[size - 1, 0], ranges[size - 1, 1])


@inner
def _mean_categories(category_heads: Array, categories: Array, meant: Array, shop: int, first: int, last: int) -> bool:
    """Whether each of the words first:last means a category of the shop."""
    for number in range(first, last):
        if not _means_category(category_heads, categories, meant, shop, number):
            return False
    return True


@inner
def _means_category(category_heads: Array, categories: Array, meant: Array, shop: int, number: int) -> bool:
    """Whether a word means a category of the shop; the categories that it means ascend."""
    first, last = meant[number], meant[number + 1]
    if first == last:
        return False
    for at in range(category_heads[shop], category_heads[shop + 1]):
        low, high = first, last
        while low < high:
            middle = (low + high) >> 1
            if meant[middle] < categories[at]:
                low = middle + 1
            else:
                high = middle
        if low < last and meant[low] == categories[at]:
            return True
    return False
