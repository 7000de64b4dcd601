"""The tiers of several words that are a shop's own."""

from typing import Final

import numpy as np

from index_mappings.tiers import NAMED_PART, OVERLAP_WORDS, SuggestTier
from index_mappings.typeahead.segment import POSTING_BITS, WORD
from service.search.typeahead.kernel.arrays import NOBODY, Array, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, find_text, prefix_range
from service.search.typeahead.kernel.ranking import collect_full, insert_ranked, passes

_MOST: Final = int(SuggestTier.MOST_OF_WORDS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)


@inner
def collect_in_any_order(
    texts: Texts, asked: Array, words: Ranges, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops that have all words but the last, and one that begins with it (5).

    Returns as `insert_ranked`.
    """
    heads, postings, removed = texts.heads, texts.postings, texts.removed
    own_heads, own = texts.own_heads, texts.own
    last = len(words) - 1
    low, high = prefix_range(texts.lookup, IN_ORDER, asked, words[last, 0], words[last, 1])
    whole = np.empty(last, np.int32)
    rarest = -1
    for number in range(last):
        text = find_text(texts.lookup, asked, words[number, 0], words[number, 1])
        if text < 0:
            return count
        whole[number] = text
        if rarest < 0 or heads[text + 1] - heads[text] < heads[rarest + 1] - heads[rarest]:
            rarest = text
    # The shorter list is walked: the postings of the rarest word, which are in order, or of all texts that begin so.
    ordered = heads[rarest + 1] - heads[rarest] < heads[high] - heads[low]
    begin, until = (heads[rarest], heads[rarest + 1]) if ordered else (heads[low], heads[high])
    for at in range(begin, until):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            if ordered:
                break
            continue
        if not postings[at] & WORD or not passes(passing, removed, shop):
            continue
        start, end = own_heads[shop], own_heads[shop + 1]
        having = has_word(own, start, end, low, high)
        for number in range(last):
            having = having and has_word(own, start, end, whole[number], whole[number] + 1)
        if having:
            count = insert_ranked(shop, found, better, count)
    return count


@inner
def has_word(own: Array, start: int, end: int, low: int, high: int) -> bool:
    """Whether a shop, whose texts are own[start:end], has a word in the range low:high of texts."""
    for at in range(start, end):
        if own[at] & WORD and low <= own[at] >> POSTING_BITS < high:
            return True
    return False


@inner
def collect_named_parts(
    texts: Texts, asked: Array, bounds: Ranges, words: Ranges, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops of which the first or last words, but not all, are a full form (2).

    Returns as `insert_ranked`.
    """
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
                count = collect_full(texts, asked, start, until, passing, found, better, count)
        since = end + between
        for number in range(last if last < OVERLAP_WORDS else 0):
            since -= between + words[last - number, 1] - words[last - number, 0]
            held = end - since - between * number
            if NAMED_PART * held >= letters:
                count = collect_full(texts, asked, since, end, passing, found, better, count)
    return count


@inner
def collect_sharing(  # noqa: C901 - calling another function for each shop takes longer than all of this
    texts: Texts, asked: Array, words: Ranges, tier: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops whose words hold enough of the characters (1, 0).

    Enough for _MOST are three quarters; for _HALF half, or one word that is a full form. Returns as `insert_ranked`.
    """
    postings = texts.postings
    counted = min(len(words), OVERLAP_WORDS)
    letters = possible = 0
    at = np.zeros(counted, np.int32)
    ends = np.zeros(counted, np.int32)
    for number in range(len(words)):
        letters += words[number, 1] - words[number, 0]
        text = find_text(texts.lookup, asked, words[number, 0], words[number, 1]) if number < counted else -1
        if text >= 0:
            at[number], ends[number] = texts.heads[text], texts.heads[text + 1]
            possible += words[number, 1] - words[number, 0]
    parts, whole = (3, 4) if tier == _MOST else (1, 2)
    while whole * possible >= parts * letters:
        # The next shop that has any of the words, and how many characters its words hold.
        shop = NOBODY
        for number in range(counted):
            if at[number] < ends[number]:
                shop = min(shop, postings[at[number]] >> POSTING_BITS)
        if shop == NOBODY or (count == len(found) and found[count - 1] < shop):
            break
        shared = 0
        for number in range(counted):
            if at[number] < ends[number] and postings[at[number]] >> POSTING_BITS == shop:
                if postings[at[number]] & WORD:
                    shared += words[number, 1] - words[number, 0]
                at[number] += 1
        if whole * shared >= parts * letters and passes(passing, texts.removed, shop):
            count = insert_ranked(shop, found, better, count)
    if tier == _HALF:
        for number in range(counted):
            count = collect_full(texts, asked, words[number, 0], words[number, 1], passing, found, better, count)
    return count
