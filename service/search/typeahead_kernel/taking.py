"""How shops are taken for an answer: in order, each once, and only those that pass the country's filter."""

import numpy as np

from index_mappings.typeahead import FULL, POSTING_BITS
from service.search.typeahead_kernel.arrays import IN_WORD, NOBODY, WORD_BITS, Array, Texts, inner
from service.search.typeahead_kernel.places import IN_ORDER, whole_text


@inner
def having(texts: Texts, own: Array, mark: int, passing: Array, found: Array, better: int, count: int) -> int:
    """Take the shops that have one of these texts with this mark. Returns as `taken`."""
    heads, postings, gone, offsets = texts.heads, texts.postings, texts.gone, texts.offsets
    for place in range(len(own)):
        text = int(own[place])
        end, most = text + 1, NOBODY
        count = scanned(
            heads, postings, gone, offsets, heads, IN_ORDER, mark, text, end, most, passing, found, better, count
        )
    return count


@inner
def is_full(
    texts: Texts, asked: Array, start: int, end: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops of which a part of what is asked is a full form. Returns as `taken`."""
    text = whole_text(texts, asked, start, end)
    return count if text < 0 else having(texts, np.array([text], np.int32), FULL, passing, found, better, count)


@inner
def scanned(
    heads: Array,
    postings: Array,
    gone: Array,
    offsets: Array,
    order: Array,
    lacking: int,
    mark: int,
    low: int,
    high: int,
    most: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Take the best shops of a range, by texts of at most so many letters. Returns as `taken`."""
    for place in range(low, high):
        text = place if lacking == IN_ORDER else order[place]
        if offsets[text + 1] - offsets[text] > most:
            continue
        for at in range(heads[text], heads[text + 1]):
            shop = postings[at] >> POSTING_BITS
            if count == len(found) and found[count - 1] < shop:
                break
            if postings[at] & mark and passes(passing, gone, shop):
                count = taken(shop, found, better, count)
    return count


@inner
def passes(passing: Array, gone: Array, shop: int) -> bool:
    """Whether a shop passes the filter, if there is one, and is still what it was."""
    word, bit = shop >> WORD_BITS, shop & IN_WORD
    if word < len(gone) and gone[word] >> bit & 1:
        return False
    return len(passing) == 0 or passing[word] >> bit & 1 == 1


@inner
def taken(shop: int, found: Array, better: int, count: int) -> int:
    """Put a shop among those found, in order, if it is none of them; found[:better] are of better tiers.

    Returns:
        how many there are now.
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
