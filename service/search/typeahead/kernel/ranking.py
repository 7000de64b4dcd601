"""How shops get into an answer: in order, each once, and only those that pass the filter and are not removed."""

from index_mappings.typeahead.segment import FULL, KEY, POSTING_BITS, WORD
from service.search.typeahead.kernel.arrays import IN_WORD, NOBODY, WORD_BITS, Array, Flags, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, find_text


@inner
def collect_marked(texts: Texts, text: int, mark: int, passing: Array, found: Array, better: int, count: int) -> int:
    """Insert the shops that have a text with this mark. Returns as `insert_ranked`."""
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
        NOBODY,
        passing,
        found,
        better,
        count,
    )


@inner
def collect_full(
    texts: Texts, asked: Array, start: int, end: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the shops of which asked[start:end] is a full form. Returns as `insert_ranked`."""
    text = find_text(texts.lookup, asked, start, end)
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
    most: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Insert the best shops of the range low:high of an order, by texts of at most `most` characters.

    A posting must have `mark`, and no mark that is `barred`. Returns as `insert_ranked`.
    """
    for place in range(low, high):
        text = place if lacking == IN_ORDER else order[place]
        if offsets[text + 1] - offsets[text] > most:
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
    """Set the flags of the shops that have one of the texts low:high as a word."""
    postings = texts.postings
    for at in range(texts.heads[low], texts.heads[high]):
        if postings[at] & WORD:
            flags[postings[at] >> POSTING_BITS] = True


@inner
def seek_shop(postings: Array, low: int, high: int, shop: int) -> int:
    """The first place of low:high, where postings ascend, of a shop not less than this one; by leaps."""
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
    """Whether a shop passes the filter (an empty one lets all pass) and is not removed."""
    word, bit = shop >> WORD_BITS, shop & IN_WORD
    if word < len(removed) and removed[word] >> bit & 1:
        return False
    return len(passing) == 0 or passing[word] >> bit & 1 == 1


@inner
def insert_ranked(shop: int, found: Array, better: int, count: int) -> int:
    """Insert a shop into found[better:count] by its number, unless it is among found[:count].

    Args:
        shop: its number.
        found: the answer, as long as the limit; its worst shop is dropped when it is full.
        better: how many of it are of better tiers.
        count: how many are in it.

    Returns:
        how many are in it now.
    """
    for place in range(better):
        if found[place] == shop:
            return count
    place = count
    while place > better and found[place - 1] > shop:
        place -= 1
    if place > better and found[place - 1] == shop:
        return count
    if count < len(found):
        count += 1
    for later in range(count - 1, place, -1):
        found[later] = found[later - 1]
    found[place] = shop
    return count
