"""Inserts shops into an answer: ordered, each once, and only those that pass the filter and are not removed."""

from index_mappings.typeahead.segment import FULL, KEY, POSTING_BITS, WORD
from service.search.typeahead.kernel.arrays import IN_WORD, MAX_INT, WORD_BITS, Array, Flags, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, find_text


@inner
def collect_marked(texts: Texts, text: int, mark: int, passing: Array, found: Array, better: int, count: int) -> int:
    """Insert the shops of a text by its postings with this mark. Returns as `insert_ranked`."""
    heads, postings, removed, offsets = texts.heads, texts.postings, texts.removed, texts.lookup.offsets
    barred = texts.barred if mark == KEY else 0
    return scan_postings(
        heads,
        postings,
        removed,
        offsets,
        heads,
        IN_ORDER,
        mark,
        barred,
        text,
        text + 1,
        MAX_INT,
        passing,
        found,
        better,
        count,
    )


@inner
def collect_full(
    texts: Texts, query: Array, start: int, end: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops of which query[start:end] is a full form. Returns as `insert_ranked`."""
    text = find_text(texts.lookup, query, start, end)
    return count if text < 0 else collect_marked(texts, text, FULL, passing, found, better, count)


@inner
def scan_postings(
    heads: Array,
    postings: Array,
    removed: Array,
    offsets: Array,
    order: Array,
    lacking: int,
    mark: int,
    barred: int,
    low: int,
    high: int,
    max_length: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the best shops of the range low:high of an order, by texts of at most `max_length` characters.

    A posting must have `mark` and must not have `barred`. Returns as `insert_ranked`.
    """
    for position in range(low, high):
        text = position if lacking == IN_ORDER else order[position]
        if offsets[text + 1] - offsets[text] > max_length:
            continue
        for at in range(heads[text], heads[text + 1]):
            shop = postings[at] >> POSTING_BITS
            if count == len(found) and found[count - 1] < shop:
                break
            if postings[at] & mark and not postings[at] & barred and passes(passing, removed, shop):
                count = insert_ranked(shop, found, better, count)
    return count


@inner
def flag_owners(texts: Texts, low: int, high: int, flags: Flags) -> None:
    """Set the flags of the shops of which one of the texts low:high is a word."""
    postings = texts.postings
    for at in range(texts.heads[low], texts.heads[high]):
        if postings[at] & WORD:
            flags[postings[at] >> POSTING_BITS] = True


@inner
def seek_shop(postings: Array, low: int, high: int, shop: int) -> int:
    """The first position in low:high, where postings ascend, of a shop not less than this one; a galloping search."""
    least = shop << POSTING_BITS
    leap = 1
    while low + leap <= high and postings[low + leap - 1] < least:
        low += leap
        leap <<= 1
    high = min(high, low + leap - 1)
    while low < high:
        middle = (low + high) >> 1
        if postings[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def passes(passing: Array, removed: Array, shop: int) -> bool:
    """Whether a shop is in the filter's bitmap (an empty one holds all shops) and is not removed."""
    word, bit = shop >> WORD_BITS, shop & IN_WORD
    if word < len(removed) and removed[word] >> bit & 1:
        return False
    return len(passing) == 0 or passing[word] >> bit & 1 == 1


@inner
def insert_ranked(shop: int, found: Array, better: int, count: int) -> int:
    """Insert a shop into found[better:count] by its number, unless it is among found[:count].

    Args:
        shop: its number.
        found: the answer, whose length is the limit; when it is full, its worst shop is dropped.
        better: how many shops in it are of better tiers.
        count: how many shops are in it.

    Returns:
        The new number of shops in it.
    """
    for position in range(better):
        if found[position] == shop:
            return count
    position = count
    while position > better and found[position - 1] > shop:
        position -= 1
    if position > better and found[position - 1] == shop:
        return count
    if count < len(found):
        count += 1
    for later in range(count - 1, position, -1):
        found[later] = found[later - 1]
    found[position] = shop
    return count
