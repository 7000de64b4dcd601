"""The tiers of several words: a shop's own words (5, 2, 1 and 0), some of which mean categories of it (5 and 4)."""

from typing import Final

import numpy as np

from index_mappings.tiers import NAMED_PART, OVERLAP_WORDS, SuggestTier
from shop_directory.typeahead.kernel.arrays import (
    IN_ORDER,
    MAX_INT,
    Array,
    Bytes,
    Carried,
    Flags,
    Meanings,
    Ranges,
    Ranking,
    Texts,
    find_text,
    first_at_least,
    inner,
    prefix_range,
    seek,
)
from shop_directory.typeahead.kernel.ranking import collect_full, flag_owners, insert_ranked, passes
from shop_directory.typeahead.segment import FULL, POSTING_BITS, WORD

_MOST: Final = int(SuggestTier.MOST_OF_WORDS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)
# Reading the texts of one shop takes as long as flagging so many shops.
FLAGS_PER_SHOP: Final = 32
# So many shops are read before flags for all shops are worth their memory.
_MIN_READ: Final = 1_000
# With at least so many candidates, the shops that have a second word are flagged before the scan.
_FLAGGED_FROM: Final = 1_000


@inner
def collect_in_any_order(texts: Texts, query: Array, words: Ranges, ranking: Ranking, count: int) -> int:
    """Insert the shops that have all words but the last, and a word that begins with the last one (5)."""
    heads, postings, found = texts.heads, texts.postings, ranking.found
    own_heads, own, marks = texts.own_heads, texts.own, texts.own_marks
    last = len(words) - 1
    low, high = prefix_range(texts.lookup, IN_ORDER, query, words[last, 0], words[last, 1])
    whole = np.empty(last, np.int32)
    rarest = -1
    for number in range(last):
        text = find_text(texts.lookup, query, words[number, 0], words[number, 1])
        if text < 0:
            return count
        whole[number] = text
        if rarest < 0 or heads[text + 1] - heads[text] < heads[rarest + 1] - heads[rarest]:
            rarest = text
    # Scan the postings of the rarest word, which are ordered, unless the texts that begin so have far fewer postings.
    if heads[rarest + 1] - heads[rarest] < FLAGS_PER_SHOP * (heads[high] - heads[low]):
        return _collect_of_rarest(texts, whole, rarest, low, high, ranking, count)
    for at in range(heads[low], heads[high]):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            continue
        if not postings[at] & WORD or not passes(ranking, shop):
            continue
        start, end = own_heads[shop], own_heads[shop + 1]
        has_all = True
        for number in range(last):
            has_all = has_all and has_word(own, marks, start, end, whole[number], whole[number] + 1)
        if has_all:
            count = insert_ranked(shop, ranking, count)
    return count


@inner
def _collect_of_rarest(
    texts: Texts, whole: Array, rarest: int, low: int, high: int, ranking: Ranking, count: int
) -> int:
    """Insert the shops of the rarest word that have the other whole words and one of low:high.

    The postings of all whole words are intersected. After _MIN_READ shops, the shops with one of low:high are flagged
    if reading the texts of the remaining shops would take longer.
    """
    heads, postings, found = texts.heads, texts.postings, ranking.found
    own_heads, own, marks = texts.own_heads, texts.own, texts.own_marks
    positions = heads[whole]
    has_prefix = np.zeros(0, np.bool_)
    read = 0
    for at in range(heads[rarest], heads[rarest + 1]):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            break
        has_all = postings[at] & WORD != 0 and passes(ranking, shop)
        number = 0
        while has_all and number < len(whole):
            end = heads[whole[number] + 1]
            position = positions[number] = seek(postings, positions[number], end, shop << POSTING_BITS)
            has_all = position < end and postings[position] >> POSTING_BITS == shop and postings[position] & WORD != 0
            number += 1
        if not has_all:
            continue
        read += 1
        remaining = heads[rarest + 1] - at
        if read == _MIN_READ and remaining * FLAGS_PER_SHOP > heads[high] - heads[low]:
            has_prefix = np.zeros(len(own_heads) - 1, np.bool_)
            flag_owners(texts, low, high, has_prefix)
        start, end = own_heads[shop], own_heads[shop + 1]
        if has_prefix[shop] if len(has_prefix) else has_word(own, marks, start, end, low, high):
            count = insert_ranked(shop, ranking, count)
    return count


@inner
def has_word(own: Array, marks: Bytes, start: int, end: int, low: int, high: int) -> bool:
    """Whether a shop, whose texts are own[start:end], has a word in the range low:high of texts."""
    for at in range(start, end):
        if low <= own[at] < high and marks[at] & WORD:
            return True
    return False


@inner
def collect_named_parts(texts: Texts, query: Array, bounds: Ranges, words: Ranges, ranking: Ranking, count: int) -> int:
    """Insert the shops of which the query's first or last words, but not all of them, are a full form (2)."""
    letters = bounds[1, 1] - bounds[1, 0]  # joined
    last = len(words) - 1
    for form in range(2):
        start, end = bounds[form]
        between = 1 - form  # a space, in the first form
        until = start - between
        for number in range(min(last, OVERLAP_WORDS)):
            until += between + words[number, 1] - words[number, 0]
            characters = until - start - between * number
            if NAMED_PART * characters >= letters:
                count = collect_full(texts, query, start, until, ranking, count)
        since = end + between
        for number in range(last if last < OVERLAP_WORDS else 0):
            since -= between + words[last - number, 1] - words[last - number, 0]
            characters = end - since - between * number
            if NAMED_PART * characters >= letters:
                count = collect_full(texts, query, since, end, ranking, count)
    return count


@inner
def collect_sharing(texts: Texts, query: Array, words: Ranges, tier: int, ranking: Ranking, count: int) -> int:
    """Insert the shops whose words make up enough of the query's characters (1, 0).

    _MOST requires three quarters of them; _HALF requires half, or one word that is a full form.
    """
    counted = min(len(words), OVERLAP_WORDS)
    letters = possible = 0
    # For each word: where its postings begin and end, and its number of characters.
    lists = np.zeros((counted, 3), np.int32)
    for number in range(len(words)):
        size = words[number, 1] - words[number, 0]
        letters += size
        text = find_text(texts.lookup, query, words[number, 0], words[number, 1]) if number < counted else -1
        if text >= 0:
            lists[number, 0], lists[number, 1] = texts.heads[text], texts.heads[text + 1]
            lists[number, 2] = size
            possible += size
    enough = (3 * letters + 3) // 4 if tier == _MOST else (letters + 1) // 2
    if possible >= enough:
        count = _collect_sharing(texts, lists, enough, ranking, count)
    if tier == _HALF:
        for number in range(counted):
            count = collect_full(texts, query, words[number, 0], words[number, 1], ranking, count)
    return count


@inner
def _collect_sharing(  # noqa: C901 - a function call for each shop would take longer than the rest
    texts: Texts, lists: Ranges, enough: int, ranking: Ranking, count: int
) -> int:
    """Insert the shops whose words have at least `enough` characters.

    `lists` has for each word where its postings begin and end, and its number of characters. The longest lists that do
    not have enough characters together are not scanned: shops are only looked up in them.
    """
    postings, found = texts.postings, ranking.found
    scanned = _put_longest_last(lists, enough)
    added = 0  # characters of the lists that are not scanned
    for number in range(scanned, len(lists)):
        added += lists[number, 2]
    while True:
        # The next shop that has any of the words, and the number of characters of its words.
        shop = MAX_INT
        for number in range(scanned):
            if lists[number, 0] < lists[number, 1]:
                shop = min(shop, postings[lists[number, 0]] >> POSTING_BITS)
        if shop == MAX_INT or (count == len(found) and found[count - 1] < shop):
            return count
        shared = 0
        for number in range(scanned):
            at = lists[number, 0]
            if at < lists[number, 1] and postings[at] >> POSTING_BITS == shop:
                if postings[at] & WORD:
                    shared += lists[number, 2]
                lists[number, 0] = at + 1
        if shared + added < enough or not passes(ranking, shop):
            continue
        for number in range(scanned, len(lists)):
            end = lists[number, 1]
            at = lists[number, 0] = seek(postings, lists[number, 0], end, shop << POSTING_BITS)
            if at < end and postings[at] >> POSTING_BITS == shop and postings[at] & WORD:
                shared += lists[number, 2]
        if shared >= enough:
            count = insert_ranked(shop, ranking, count)


@inner
def _put_longest_last(lists: Ranges, enough: int) -> int:
    """Move the longest lists that do not have enough characters together to the end. Returns how many others remain."""
    scanned = len(lists)
    characters = 0
    for _ in range(len(lists)):
        longest = -1
        for number in range(scanned):
            size = lists[number, 1] - lists[number, 0]
            if characters + lists[number, 2] < enough and (longest < 0 or size > lists[longest, 1] - lists[longest, 0]):
                longest = number
        if longest < 0:
            break
        scanned -= 1
        characters += lists[longest, 2]
        for column in range(3):
            lists[longest, column], lists[scanned, column] = lists[scanned, column], lists[longest, column]
    return scanned


@inner
def collect_named_in_category(
    texts: Texts, meanings: Meanings, query: Array, bounds: Ranges, words: Ranges, ranking: Ranking, count: int
) -> int:
    """Insert the shops of which the first words are a full form and each later word means a category (5)."""
    heads, postings, found, meant = texts.heads, texts.postings, ranking.found, meanings.meant
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
                    and passes(ranking, shop)
                    and _mean_categories(meanings, shop, number + 1, last + 1)
                ):
                    count = insert_ranked(shop, ranking, count)
    return count


@inner
def collect_words_and_categories(
    texts: Texts, carried: Carried, ranges: Ranges, query: Array, words: Ranges, ranking: Ranking, count: int
) -> int:
    """Insert the shops of which every word is their own or means a category, and at least one is their own (4)."""
    size = len(words)
    meanings, heads = carried.meanings, carried.category_heads
    meant, found = meanings.meant, ranking.found
    own_postings, rarest, fewest = _fill_ranges(texts, carried, ranges, query, words)
    if not fewest or not own_postings:
        return count
    # Every shop of this tier has the rarest word, and one of its other words: scan whichever list is shorter.
    flags = _flagged(texts, carried, ranges, size, rarest, min(own_postings, fewest))
    for number in range(size):
        if own_postings < fewest or number == rarest:
            count = _collect_owners(texts, meanings, ranges, size, number, flags, ranking, count)
    if own_postings < fewest:
        return count
    for at in range(meant[rarest], meant[rarest + 1]):
        _rewind(texts.heads, ranges, size)
        for index in range(heads[meant[at]], heads[meant[at] + 1]):
            shop = carried.category_shops[index]
            if count == len(found) and found[count - 1] < shop:
                break
            if (
                _is_flagged(flags, shop)
                and passes(ranking, shop)
                and _matches_all_words(texts, meanings, ranges, size, shop)
            ):
                count = insert_ranked(shop, ranking, count)
    return count


@inner
def _fill_ranges(texts: Texts, carried: Carried, ranges: Ranges, query: Array, words: Ranges) -> tuple[int, int, int]:
    """Set the range of texts of each word, and in the fourth column the number of shops that it can match at most.

    Returns the number of postings of all words, the word that can match the fewest shops, and the number of these.
    """
    heads, category_heads, meant = texts.heads, carried.category_heads, carried.meanings.meant
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
def _flagged(texts: Texts, carried: Carried, ranges: Ranges, size: int, rarest: int, scanned: int) -> Flags:
    """Flags of the shops that have the second rarest word; empty where this saves no time.

    The last word is not considered, because very many texts may begin with it.
    """
    another = -1
    for number in range(size - 1):
        if number != rarest and (another < 0 or ranges[number, 3] < ranges[another, 3]):
            another = number
    if another < 0 or scanned < _FLAGGED_FROM or ranges[another, 3] >= FLAGS_PER_SHOP * scanned:
        return np.zeros(0, np.bool_)
    flags = np.zeros(len(texts.own_heads) - 1, np.bool_)
    flag_owners(texts, ranges[another, 0], ranges[another, 1], flags)
    heads, meant = carried.category_heads, carried.meanings.meant
    for at in range(meant[another], meant[another + 1]):
        for index in range(heads[meant[at]], heads[meant[at] + 1]):
            flags[carried.category_shops[index]] = True
    return flags


@inner
def _collect_owners(
    texts: Texts, meanings: Meanings, ranges: Ranges, size: int, number: int, flags: Flags, ranking: Ranking, count: int
) -> int:
    """Insert the shops of the tier that have one word as their own."""
    heads, postings, found = texts.heads, texts.postings, ranking.found
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
                and passes(ranking, shop)
                and _matches_all_words(texts, meanings, ranges, size, shop)
            ):
                count = insert_ranked(shop, ranking, count)
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
def _matches_all_words(texts: Texts, meanings: Meanings, ranges: Ranges, size: int, shop: int) -> bool:
    """Whether every word is the shop's own or means a category of it, and at least one is its own.

    Between two calls of `_rewind`, shops must be passed in ascending order: the positions in the postings of all words
    but the last, each of which is one text at most, only move forward. Where these decide, its texts are not read.
    """
    heads, postings = texts.heads, texts.postings
    any_own = False
    for number in range(size - 1):
        end = heads[ranges[number, 1]]
        at = ranges[number, 2] = seek(postings, ranges[number, 2], end, shop << POSTING_BITS)
        if at < end and postings[at] >> POSTING_BITS == shop and postings[at] & WORD:
            any_own = True
        elif not _means_category(meanings, shop, number):
            return False
    if any_own and _means_category(meanings, shop, size - 1):
        return True
    start, end = texts.own_heads[shop], texts.own_heads[shop + 1]
    return has_word(texts.own, texts.own_marks, start, end, ranges[size - 1, 0], ranges[size - 1, 1])


@inner
def _mean_categories(meanings: Meanings, shop: int, first: int, last: int) -> bool:
    """Whether each of the words first:last means a category of the shop."""
    for number in range(first, last):
        if not _means_category(meanings, shop, number):
            return False
    return True


@inner
def _means_category(meanings: Meanings, shop: int, number: int) -> bool:
    """Whether a word means a category of the shop; the categories that it means ascend."""
    heads, categories, meant = meanings.own_category_heads, meanings.own_categories, meanings.meant
    first, last = meant[number], meant[number + 1]
    if first == last:
        return False
    for at in range(heads[shop], heads[shop + 1]):
        low = first_at_least(meant, first, last, categories[at])
        if low < last and meant[low] == categories[at]:
            return True
    return False
