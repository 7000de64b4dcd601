"""The best shops of texts: inserted in order, each once, and only those that pass the filter and are not removed.

The shops of a range of texts are found by the trees over blocks of texts, or by a scan of the shops by rank.
"""

from typing import Final, NamedTuple

import numpy as np

from shop_directory.typeahead.kernel.arrays import (
    IN_ORDER,
    IN_WORD,
    MAX_INT,
    WITHOUT_FIRST,
    WITHOUT_SECOND,
    WORD_BITS,
    Array,
    Flags,
    Ranges,
    Ranking,
    Texts,
    find_text,
    inner,
)
from shop_directory.typeahead.segment import ANY_FULL, BLOCK, FULL, KEY, LEADING, POSTING_BITS, WORD

# Capacity of the stack of nodes: twice the depth of the deepest tree.
_STACK: Final = 128
# A range of more than one in so many texts is searched faster by a scan of the shops by rank.
_LARGE_SHARE: Final = 100
# Reading the texts of one shop takes as long as reading so many texts of a range with their postings.
_TEXTS_PER_SHOP: Final = 8
# A scan of the shops reads at least so many shops before it gives up.
_MIN_READ: Final = 1_000
# A range with fewer whole blocks is read text by text.
_MIN_BLOCKS: Final = 3


class Postings(NamedTuple):
    """The postings of the texts of an order, of which `texts` has the numbers unless the texts are in order."""

    heads: Array
    postings: Array
    offsets: Array
    texts: Array
    lacking: int


class Matching(NamedTuple):
    """Which postings match: those with `mark` and without `barred`, of texts of at most `max_length` characters."""

    mark: int
    barred: int
    max_length: int


@inner
def collect_marked(texts: Texts, text: int, mark: int, ranking: Ranking, count: int) -> int:
    """Insert the shops of a text by its postings with this mark."""
    postings = Postings(texts.heads, texts.postings, texts.lookup.offsets, texts.heads, IN_ORDER)
    matching = Matching(mark, texts.barred if mark == KEY else 0, MAX_INT)
    return scan_postings(postings, matching, text, text + 1, ranking, count)


@inner
def collect_full(texts: Texts, query: Array, start: int, end: int, ranking: Ranking, count: int) -> int:
    """Insert the shops of which query[start:end] is a full form."""
    text = find_text(texts.lookup, query, start, end)
    return count if text < 0 else collect_marked(texts, text, FULL, ranking, count)


@inner
def scan_postings(texts: Postings, matching: Matching, low: int, high: int, ranking: Ranking, count: int) -> int:
    """Insert the best shops of the range low:high of an order."""
    heads, postings, offsets, found = texts.heads, texts.postings, texts.offsets, ranking.found
    for position in range(low, high):
        text = position if texts.lacking == IN_ORDER else texts.texts[position]
        if offsets[text + 1] - offsets[text] > matching.max_length:
            continue
        for at in range(heads[text], heads[text + 1]):
            shop = postings[at] >> POSTING_BITS
            if count == len(found) and found[count - 1] < shop:
                break
            if postings[at] & matching.mark and not postings[at] & matching.barred and passes(ranking, shop):
                count = insert_ranked(shop, ranking, count)
    return count


@inner
def flag_owners(texts: Texts, low: int, high: int, flags: Flags) -> None:
    """Set the flags of the shops of which one of the texts low:high is a word."""
    postings = texts.postings
    for at in range(texts.heads[low], texts.heads[high]):
        if postings[at] & WORD:
            flags[postings[at] >> POSTING_BITS] = True


@inner
def passes(ranking: Ranking, shop: int) -> bool:
    """Whether a shop passes the filter and is not removed."""
    passing, removed = ranking.passing, ranking.removed
    word, bit = shop >> WORD_BITS, shop & IN_WORD
    if word < len(removed) and removed[word] >> bit & 1:
        return False
    return len(passing) == 0 or passing[word] >> bit & 1 == 1


@inner
def insert_ranked(shop: int, ranking: Ranking, count: int) -> int:
    """Insert a shop by its number into the found ones of this tier, unless it is among all `count` found ones.

    Returns the new number of found shops.
    """
    found, better = ranking.found, ranking.better
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


@inner
def add_range(ranges: Ranges, count: int, bounds: tuple[int, int], lacking: int) -> int:
    """Append a range of the order `lacking`, unless it is empty. Returns the new number of ranges."""
    low, high = bounds
    if low == high:
        return count
    ranges[count, 0], ranges[count, 1], ranges[count, 2] = low, high, lacking
    return count + 1


@inner
def collect_ranges(texts: Texts, ranges: Ranges, range_count: int, mark: int, ranking: Ranking, count: int) -> int:
    """Insert the best shops of the first ranges, by postings with this mark."""
    lookup, found = texts.lookup, ranking.found
    barred = texts.barred if mark != LEADING else 0
    nodes = np.empty(_STACK, np.int32)
    for number in range(range_count):
        low, high, lacking = ranges[number, 0], ranges[number, 1], ranges[number, 2]
        # Only leading names, and full forms alone, are bounded by the length of the query.
        matching = Matching(mark, barred, ranges[number, 3] if mark in (LEADING, ANY_FULL) else MAX_INT)
        if lacking == IN_ORDER and (high - low) * _LARGE_SHARE > len(lookup.firsts):
            count, complete = _scan_shops(texts, matching, low, high, ranking, count)
            if complete:
                continue
        order, tree = lookup.rests_0, texts.best_leading if mark == LEADING else texts.best_key
        if lacking == WITHOUT_FIRST:
            tree = texts.best_0
        elif lacking == WITHOUT_SECOND:
            order, tree = lookup.rests_1, texts.best_1
        postings = Postings(texts.heads, texts.postings, lookup.offsets, order, lacking)
        blocks = len(tree) >> 1
        first, last = (low + BLOCK - 1) // BLOCK, high // BLOCK
        # The texts at both ends of the range fill no whole block and are read; all are where there are few blocks.
        first_end, last_start = first * BLOCK, last * BLOCK
        if last - first < _MIN_BLOCKS:
            first, last, first_end, last_start = 0, 0, high, high
        for part in range(2):
            start, end = (last_start, high) if part else (low, first_end)
            count = scan_postings(postings, matching, start, end, ranking, count)
        height = _push_covering(tree, nodes, first + blocks, last + blocks)
        while height:
            height -= 1
            node = nodes[height]
            if count == len(found) and found[count - 1] < tree[node] >> POSTING_BITS:
                continue
            if node >= blocks:
                start = (node - blocks) * BLOCK
                count = scan_postings(postings, matching, start, start + BLOCK, ranking, count)
            else:
                nearer = 2 * node + (tree[2 * node + 1] < tree[2 * node])
                nodes[height], nodes[height + 1] = nearer ^ 1, nearer
                height += 2
    return count


@inner
def _scan_shops(
    texts: Texts, matching: Matching, low: int, high: int, ranking: Ranking, count: int
) -> tuple[int, bool]:
    """Insert the best shops of a large range by a scan of the shops, which are numbered by rank.

    If few shops have a text of the range, for example because names are too long, the scan stops before it takes
    longer than reading the range would. Returns also whether the scan was complete.
    """
    heads, own, marks, offsets = texts.own_heads, texts.own, texts.own_marks, texts.lookup.offsets
    passing, found = ranking.passing, ranking.found
    remaining = _MIN_READ + (high - low) // _TEXTS_PER_SHOP
    shop = 0
    while shop < len(heads) - 1:
        if count == len(found) and found[count - 1] < shop:
            break
        if len(passing) and shop & IN_WORD == 0 and passing[shop >> WORD_BITS] == 0:
            shop += IN_WORD + 1  # few shops sell in most countries: skip an empty word of the bitmap
            continue
        if passes(ranking, shop):
            if not remaining:
                return count, False
            remaining -= 1
            for at in range(heads[shop], heads[shop + 1]):
                text = own[at]
                if (
                    low <= text < high
                    and marks[at] & matching.mark
                    and not marks[at] & matching.barred
                    and offsets[text + 1] - offsets[text] <= matching.max_length
                ):
                    count = insert_ranked(shop, ranking, count)
                    break
        shop += 1
    return count, True


@inner
def _push_covering(tree: Array, nodes: Array, first: int, last: int) -> int:
    """Push the fewest nodes that cover the leaves first:last onto an empty stack. Returns its height."""
    height = 0
    while first < last:
        if first & 1:
            height = _push_sorted(tree, nodes, height, first)
            first += 1
        if last & 1:
            last -= 1
            height = _push_sorted(tree, nodes, height, last)
        first, last = first >> 1, last >> 1
    return height


@inner
def _push_sorted(tree: Array, nodes: Array, height: int, node: int) -> int:
    """Insert a node into the stack so that the best one stays on top. Returns the new height."""
    position = height
    while position and tree[nodes[position - 1]] < tree[node]:
        nodes[position] = nodes[position - 1]
        position -= 1
    nodes[position] = node
    return height + 1
