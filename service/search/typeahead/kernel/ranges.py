"""The best shops of ranges of texts: found by the trees over blocks of texts, or by a scan of the shops by rank."""

from typing import Final

import numpy as np

from index_mappings.typeahead.segment import BLOCK, FULL, LEADING, POSTING_BITS
from service.search.typeahead.kernel.arrays import IN_WORD, MAX_INT, WORD_BITS, Array, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, WITHOUT_FIRST, WITHOUT_SECOND
from service.search.typeahead.kernel.ranking import insert_ranked, passes, scan_postings

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


@inner
def add_range(ranges: Ranges, count: int, bounds: tuple[int, int], lacking: int) -> int:
    """Append a range of the order `lacking`, unless it is empty. Returns the new number of ranges."""
    low, high = bounds
    if low == high:
        return count
    ranges[count, 0], ranges[count, 1], ranges[count, 2] = low, high, lacking
    return count + 1


@inner
def collect_ranges(
    texts: Texts, ranges: Ranges, range_count: int, mark: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the best shops of the first ranges, by postings with this mark. Returns as `insert_ranked`."""
    heads, postings, removed, offsets = texts.heads, texts.postings, texts.removed, texts.lookup.offsets
    barred = texts.barred if mark != LEADING else 0
    nodes = np.empty(_STACK, np.int32)
    for number in range(range_count):
        low, high, lacking = ranges[number, 0], ranges[number, 1], ranges[number, 2]
        # Only leading names, and full forms alone, are bounded by the length of the query.
        max_length = ranges[number, 3] if mark in (LEADING, FULL) else MAX_INT
        if lacking == IN_ORDER and (high - low) * _LARGE_SHARE > len(texts.lookup.firsts):
            count, complete = _scan_shops(texts, mark, barred, low, high, max_length, passing, found, better, count)
            if complete:
                continue
        order, tree = texts.lookup.rests_0, texts.best_leading if mark == LEADING else texts.best_key
        if lacking == WITHOUT_FIRST:
            tree = texts.best_0
        elif lacking == WITHOUT_SECOND:
            order, tree = texts.lookup.rests_1, texts.best_1
        blocks = len(tree) >> 1
        first, last = (low + BLOCK - 1) // BLOCK, high // BLOCK
        # The texts at both ends of the range fill no whole block and are read; all are where there are few blocks.
        first_end, last_start = first * BLOCK, last * BLOCK
        if last - first < _MIN_BLOCKS:
            first, last, first_end, last_start = 0, 0, high, high
        for part in range(2):
            start, end = (last_start, high) if part else (low, first_end)
            count = scan_postings(
                heads,
                postings,
                removed,
                offsets,
                order,
                lacking,
                mark,
                barred,
                start,
                end,
                max_length,
                passing,
                found,
                better,
                count,
            )
        height = _push_covering(tree, nodes, first + blocks, last + blocks)
        while height:
            height -= 1
            node = nodes[height]
            if count == len(found) and found[count - 1] < tree[node] >> POSTING_BITS:
                continue
            if node >= blocks:
                start = (node - blocks) * BLOCK
                count = scan_postings(
                    heads,
                    postings,
                    removed,
                    offsets,
                    order,
                    lacking,
                    mark,
                    barred,
                    start,
                    start + BLOCK,
                    max_length,
                    passing,
                    found,
                    better,
                    count,
                )
            else:
                nearer = 2 * node + (tree[2 * node + 1] < tree[2 * node])
                nodes[height], nodes[height + 1] = nearer ^ 1, nearer
                height += 2
    return count


@inner
def _scan_shops(
    texts: Texts,
    mark: int,
    barred: int,
    low: int,
    high: int,
    max_length: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> tuple[int, bool]:
    """Insert the best shops of a large range by a scan of the shops, which are numbered by rank.

    If few shops have a text of the range, for example because names are too long, the scan stops before it takes
    longer than reading the range would.

    Returns:
        As `insert_ranked`, and whether the scan was complete.
    """
    heads, own, offsets = texts.own_heads, texts.own, texts.lookup.offsets
    remaining = _MIN_READ + (high - low) // _TEXTS_PER_SHOP
    shop = 0
    while shop < len(heads) - 1:
        if count == len(found) and found[count - 1] < shop:
            break
        if len(passing) and shop & IN_WORD == 0 and passing[shop >> WORD_BITS] == 0:
            shop += IN_WORD + 1  # few shops sell in most countries: skip an empty word of the bitmap
            continue
        if passes(passing, texts.removed, shop):
            if not remaining:
                return count, False
            remaining -= 1
            for at in range(heads[shop], heads[shop + 1]):
                text = own[at] >> POSTING_BITS
                if (
                    low <= text < high
                    and own[at] & mark
                    and not own[at] & barred
                    and offsets[text + 1] - offsets[text] <= max_length
                ):
                    count = insert_ranked(shop, found, better, count)
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
