"""The tiers of several words."""

from typing import Final

import numpy as np

from index_mappings.tiers import NAMED_PART, OVERLAP_WORDS, SuggestTier
from index_mappings.typeahead import POSTING_BITS, WORD
from service.search.typeahead_kernel.arrays import NOBODY, Array, Ranges, Texts, inner
from service.search.typeahead_kernel.places import IN_ORDER, begun, whole_text
from service.search.typeahead_kernel.taking import is_full, passes, taken

_WORDS: Final = int(SuggestTier.WORDS)
_PART: Final = int(SuggestTier.PART_IS_NAME)
_MOST: Final = int(SuggestTier.MOST_OF_WORDS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)


@inner
def by_words(
    texts: Texts,
    asked: Array,
    bounds: Ranges,
    words: Ranges,
    tier: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Take the shops of a tier of several words. Returns as `taken`."""
    if tier == _WORDS:
        return _in_any_order(texts, asked, words, passing, found, better, count)
    if tier == _PART:
        return _part_is_name(texts, asked, bounds, words, passing, found, better, count)
    return _sharing(texts, asked, words, tier, passing, found, better, count)


@inner
def _in_any_order(
    texts: Texts, asked: Array, words: Ranges, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops that have all words but the last, and one that begins with that. Returns as `taken`."""
    heads, postings = texts.heads, texts.postings
    last = len(words) - 1
    low, high = begun(texts, IN_ORDER, asked, words[last, 0], words[last, 1])
    whole = np.empty(last, np.int32)
    rarest = -1
    for number in range(last):
        text = whole_text(texts, asked, words[number, 0], words[number, 1])
        if text < 0:
            return count
        whole[number] = text
        if rarest < 0 or heads[text + 1] - heads[text] < heads[rarest + 1] - heads[rarest]:
            rarest = text
    # The fewest that can be gone through: those of the rarest word, which are in order, or all that begin so.
    ordered = heads[rarest + 1] - heads[rarest] < heads[high] - heads[low]
    start, end = (heads[rarest], heads[rarest + 1]) if ordered else (heads[low], heads[high])
    for at in range(start, end):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            if ordered:
                break
            continue
        if (
            postings[at] & WORD
            and passes(passing, texts.gone, shop)
            and _has_words(texts.own_heads, texts.own, shop, whole, low, high)
        ):
            count = taken(shop, found, better, count)
    return count


@inner
def _has_words(own_heads: Array, own: Array, shop: int, whole: Array, low: int, high: int) -> bool:
    """Whether a shop has all these words, and one of low:high."""
    start, end = own_heads[shop], own_heads[shop + 1]
    has_last = False
    for at in range(start, end):
        if own[at] & WORD and low <= own[at] >> POSTING_BITS < high:
            has_last = True
    if not has_last:
        return False
    for word in whole:
        has = False
        for at in range(start, end):
            if own[at] & WORD and own[at] >> POSTING_BITS == word:
                has = True
        if not has:
            return False
    return True


@inner
def _part_is_name(
    texts: Texts, asked: Array, bounds: Ranges, words: Ranges, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops of which the first or last words, but not all, are a full form. Returns as `taken`."""
    letters = bounds[1, 1] - bounds[1, 0]  # joined
    last = len(words) - 1
    for form in range(2):
        start, end = bounds[form]
        between = 1 - form  # a space, in the first form
        until = start - between
        for number in range(min(last, OVERLAP_WORDS)):
            until += between + words[number, 1] - words[number, 0]
            held = until - start - between * number
            if NAMED_PART * held >= letters:
                count = is_full(texts, asked, start, until, passing, found, better, count)
        since = end + between
        for number in range(last if last < OVERLAP_WORDS else 0):
            since -= between + words[last - number, 1] - words[last - number, 0]
            held = end - since - between * number
            if NAMED_PART * held >= letters:
                count = is_full(texts, asked, since, end, passing, found, better, count)
    return count


@inner
def _sharing(
    texts: Texts, asked: Array, words: Ranges, tier: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops whose words hold enough of the letters.

    Enough for _MOST are three quarters; for _HALF half, or one word that is a full form. Returns as `taken`.
    """
    postings = texts.postings
    counted = min(len(words), OVERLAP_WORDS)
    letters = possible = 0
    at = np.zeros(counted, np.int32)
    ends = np.zeros(counted, np.int32)
    for number in range(len(words)):
        letters += words[number, 1] - words[number, 0]
        text = whole_text(texts, asked, words[number, 0], words[number, 1]) if number < counted else -1
        if text >= 0:
            at[number], ends[number] = texts.heads[text], texts.heads[text + 1]
            possible += words[number, 1] - words[number, 0]
    parts, whole = (3, 4) if tier == _MOST else (1, 2)
    while whole * possible >= parts * letters:
        # The next shop that has any of the words, and what those of them that it has hold.
        shop = _next(postings, at, ends)
        if shop == NOBODY or (count == len(found) and found[count - 1] < shop):
            break
        shared = 0
        for number in range(counted):
            if at[number] < ends[number] and postings[at[number]] >> POSTING_BITS == shop:
                if postings[at[number]] & WORD:
                    shared += words[number, 1] - words[number, 0]
                at[number] += 1
        if whole * shared >= parts * letters and passes(passing, texts.gone, shop):
            count = taken(shop, found, better, count)
    if tier == _HALF:
        for number in range(counted):
            count = is_full(texts, asked, words[number, 0], words[number, 1], passing, found, better, count)
    return count


@inner
def _next(postings: Array, at: Array, ends: Array) -> int:
    """The best shop of several lists of postings, each from a place on; NOBODY at their end."""
    shop = NOBODY
    for number in range(len(at)):
        if at[number] < ends[number]:
            shop = min(shop, postings[at[number]] >> POSTING_BITS)
    return shop
