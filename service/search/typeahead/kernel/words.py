"""The tiers of several words that are a shop's own."""

from typing import Final

import numpy as np

from index_mappings.tiers import NAMED_PART, OVERLAP_WORDS, SuggestTier
from index_mappings.typeahead.segment import POSTING_BITS, WORD
from service.search.typeahead.kernel.arrays import NOBODY, Array, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, find_text, prefix_range
from service.search.typeahead.kernel.ranking import collect_full, flag_owners, insert_ranked, passes, seek_shop

_MOST: Final = int(SuggestTier.MOST_OF_WORDS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)
# Reading a shop's texts takes as long as flagging so many shops.
FLAGS_OF_A_SHOP: Final = 32
# The texts of so many shops are read before flags are worth their memory.
_READ_FIRST: Final = 1_000


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
    # The postings of the rarest word are walked, which are in order, or those of all texts that begin so, if far fewer.
    if heads[rarest + 1] - heads[rarest] < FLAGS_OF_A_SHOP * (heads[high] - heads[low]):
        return _collect_of_rarest(texts, whole, rarest, low, high, passing, found, better, count)
    for at in range(heads[low], heads[high]):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            continue
        if not postings[at] & WORD or not passes(passing, removed, shop):
            continue
        start, end = own_heads[shop], own_heads[shop + 1]
        having = True
        for number in range(last):
            having = having and has_word(own, start, end, whole[number], whole[number] + 1)
        if having:
            count = insert_ranked(shop, found, better, count)
    return count


@inner
def _collect_of_rarest(
    texts: Texts,
    whole: Array,
    rarest: int,
    low: int,
    high: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the shops of the rarest word that have the other whole words and one of low:high.

    The postings of all whole words are walked together. After some shops it is flagged which have one of low:high,
    where the texts of all others would take longer to read. Returns as `insert_ranked`.
    """
    heads, postings, removed = texts.heads, texts.postings, texts.removed
    own_heads, own = texts.own_heads, texts.own
    places = heads[whole]
    begun = np.zeros(0, np.bool_)
    read = 0
    for at in range(heads[rarest], heads[rarest + 1]):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            break
        having = postings[at] & WORD != 0 and passes(passing, removed, shop)
        number = 0
        while having and number < len(whole):
            end = heads[whole[number] + 1]
            place = places[number] = seek_shop(postings, places[number], end, shop)
            having = place < end and postings[place] >> POSTING_BITS == shop and postings[place] & WORD != 0
            number += 1
        if not having:
            continue
        read += 1
        remaining = heads[rarest + 1] - at
        if read == _READ_FIRST and remaining * FLAGS_OF_A_SHOP > heads[high] - heads[low]:
            begun = np.zeros(len(own_heads) - 1, np.bool_)
            flag_owners(texts, low, high, begun)
        if begun[shop] if len(begun) else has_word(own, own_heads[shop], own_heads[shop + 1], low, high):
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
def collect_sharing(
    texts: Texts, asked: Array, words: Ranges, tier: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops whose words hold enough of the characters (1, 0).

    Enough for _MOST are three quarters; for _HALF half, or one word that is a full form. Returns as `insert_ranked`.
    """
    counted = min(len(words), OVERLAP_WORDS)
    letters = possible = 0
    # Of each word: where its postings are, how many characters it has.
    lists = np.zeros((counted, 3), np.int32)
    for number in range(len(words)):
        size = words[number, 1] - words[number, 0]
        letters += size
        text = find_text(texts.lookup, asked, words[number, 0], words[number, 1]) if number < counted else -1
        if text >= 0:
            lists[number, 0], lists[number, 1] = texts.heads[text], texts.heads[text + 1]
            lists[number, 2] = size
            possible += size
    enough = (3 * letters + 3) // 4 if tier == _MOST else (letters + 1) // 2
    if possible >= enough:
        count = _collect_sharing(texts, lists, enough, passing, found, better, count)
    if tier == _HALF:
        for number in range(counted):
            count = collect_full(texts, asked, words[number, 0], words[number, 1], passing, found, better, count)
    return count


@inner
def _collect_sharing(  # noqa: C901 - calling another function for each shop takes longer than all of this
    texts: Texts, lists: Ranges, enough: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops whose words hold so many characters.

    The longest lists that do not hold enough together are not walked: they only add to shops of the others.

    Args:
        texts: the segment's.
        lists: of each word where its postings begin and end, and how many characters it has.
        enough: how many characters.
        passing: see `insert_ranked`, as all that follow.
        found: see above.
        better: see above.
        count: see above.
    """
    postings = texts.postings
    walked = _put_longest_last(lists, enough)
    added = 0  # characters of the lists that are not walked
    for number in range(walked, len(lists)):
        added += lists[number, 2]
    while True:
        # The next shop that has any of the words, and how many characters its words hold.
        shop = NOBODY
        for number in range(walked):
            if lists[number, 0] < lists[number, 1]:
                shop = min(shop, postings[lists[number, 0]] >> POSTING_BITS)
        if shop == NOBODY or (count == len(found) and found[count - 1] < shop):
            return count
        shared = 0
        for number in range(walked):
            at = lists[number, 0]
            if at < lists[number, 1] and postings[at] >> POSTING_BITS == shop:
                if postings[at] & WORD:
                    shared += lists[number, 2]
                lists[number, 0] = at + 1
        if shared + added < enough or not passes(passing, texts.removed, shop):
            continue
        for number in range(walked, len(lists)):
            at, end = seek_shop(postings, lists[number, 0], lists[number, 1], shop), lists[number, 1]
            lists[number, 0] = at
            if at < end and postings[at] >> POSTING_BITS == shop and postings[at] & WORD:
                shared += lists[number, 2]
        if shared >= enough:
            count = insert_ranked(shop, found, better, count)


@inner
def _put_longest_last(lists: Ranges, enough: int) -> int:
    """Put the longest lists that do not hold enough characters together behind the others. Returns how many others."""
    walked = len(lists)
    held = 0
    for _ in range(len(lists)):
        longest = -1
        for number in range(walked):
            size = lists[number, 1] - lists[number, 0]
            if held + lists[number, 2] < enough and (longest < 0 or size > lists[longest, 1] - lists[longest, 0]):
                longest = number
        if longest < 0:
            break
        walked -= 1
        held += lists[longest, 2]
        for column in range(3):
            lists[longest, column], lists[walked, column] = lists[walked, column], lists[longest, column]
    return walked
