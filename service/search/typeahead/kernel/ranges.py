"""The best shops of ranges of texts: by the trees over blocks of texts, or by walking the shops in order of rank."""

from typing import Final

import numpy as np

from index_mappings.typeahead.segment import BLOCK, LEADING, POSTING_BITS
from service.search.typeahead.kernel.arrays import IN_WORD, NOBODY, WORD_BITS, Array, Ranges, Texts, inner
from service.search.typeahead.kernel.lookup import IN_ORDER, WITHOUT_FIRST, WITHOUT_SECOND
from service.search.typeahead.kernel.ranking import insert_ranked, passes, scan_postings

# Twice the depth of any tree.
_STACK: Final = 128
# A range of more than one in so many texts is answered faster by walking the shops in order of rank.
_LARGE_SHARE: Final = 100
# Reading a shop's texts takes as long as reading so many texts of a range with their shops; so many shops are read in
# any case.
_TEXTS_OF_A_SHOP: Final = 8
_READ_FIRST: Final = 1_000
# With fewer whole blocks every text is read.
_MIN_BLOCKS: Final = 3


@inner
def add_range(ranges: Ranges, count: int, low: int, high: int, lacking: int) -> int:
    """Append the range low:high of the order `lacking`, unless it is empty. Returns the number of ranges."""
    if low == high:
        return count
    ranges[count, 0], ranges[count, 1], ranges[count, 2] = low, high, lacking
    return count + 1


@inner
def collect_ranges(
    texts: Texts, ranges: Ranges, number_of: int, mark: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Insert the best shops of the first ranges, by texts with this mark. Returns as `insert_ranked`."""
    heads, postings, removed, offsets = texts.heads, texts.postings, texts.removed, texts.lookup.offsets
    barred = texts.barred if mark != LEADING else 0
    nodes = np.empty(_STACK, np.int32)
    for number in range(number_of):
        low, high, lacking = ranges[number, 0], ranges[number, 1], ranges[number, 2]
        most = ranges[number, 3]
        most = _longest(mark, most)
        if lacking == IN_ORDER and (high - low) * _LARGE_SHARE > len(texts.lookup.firsts):
            count, ended = _walk_shops(texts, mark, barred, low, high, most, passing, found, better, count)
            if ended:
                continue
        order, tree = texts.lookup.rests_0, texts.best_leading if mark == LEADING else texts.best_key
        if lacking == WITHOUT_FIRST:
            tree = texts.best_0
        elif lacking == WITHOUT_SECOND:
            order, tree = texts.lookup.rests_1, texts.best_1
        blocks = len(tree) >> 1
        first, last = (low + BLOCK - 1) // BLOCK, high // BLOCK
        # Both ends of the range are no whole blocks: these texts are read, and all where there are few blocks.
        read_until = high if last - first < _MIN_BLOCKS else first * BLOCK
        count = scan_postings(
            heads,
            postings,
            removed,
            offsets,
            order,
            lacking,
            mark,
            barred,
            low,
            read_until,
            most,
            passing,
            found,
            better,
            count,
        )
        if read_until == high:
            continue
        low = last * BLOCK
        count = scan_postings(
            heads,
            postings,
            removed,
            offsets,
            order,
            lacking,
            mark,
            barred,
            low,
            high,
            most,
            passing,
            found,
            better,
            count,
        )
        waiting = _push_covering(tree, nodes, first + blocks, last + blocks)
        while waiting:
            waiting -= 1
            node = nodes[waiting]
            if count == len(found) and found[count - 1] < tree[node] >> POSTING_BITS:
                continue
            if node >= blocks:
                low = (node - blocks) * BLOCK
                high = low + BLOCK
                count = scan_postings(
                    heads,
                    postings,
                    removed,
                    offsets,
                    order,
                    lacking,
                    mark,
                    barred,
                    low,
                    high,
                    most,
                    passing,
                    found,
                    better,
                    count,
                )
            else:
                nearer = 2 * node + (tree[2 * node + 1] < tree[2 * node])
                nodes[waiting], nodes[waiting + 1] = nearer ^ 1, nearer
                waiting += 2
    return count


@inner
def _walk_shops(
    texts: Texts,
    mark: int,
    barred: int,
    low: int,
    high: int,
    most: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> tuple[int, bool]:
    """Insert the best shops of a large range: the first that have a text of it.

    Where these are rare, as of names that are too long, it ends before it has taken longer than reading the range does.

    Returns:
        as `insert_ranked`, and whether it came to an end.
    """
    heads, own, offsets = texts.own_heads, texts.own, texts.lookup.offsets
    remaining = _READ_FIRST + (high - low) // _TEXTS_OF_A_SHOP
    shop = 0
    while shop < len(heads) - 1:
        if count == len(found) and found[count - 1] < shop:
            break
        if len(passing) and shop & IN_WORD == 0 and passing[shop >> WORD_BITS] == 0:
            shop += IN_WORD + 1  # in most countries few shops sell
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
                    and offsets[text + 1] - offsets[text] <= most
                ):
                    count = insert_ranked(shop, found, better, count)
                    break
        shop += 1
    return count, True


@inner
def _longest(mark: int, of_names: int) -> int:
    """How many characters a text with this mark may have: only leading names are bounded, by what was typed."""
    return of_names if mark == LEADING else NOBODY


@inner
def _push_covering(tree: Array, nodes: Array, first: int, last: int) -> int:
    """Push the fewest nodes that cover the leaves first:last onto the stack. Returns its height."""
    waiting = 0
    while first < last:
        if first & 1:
            waiting = _push_sorted(tree, nodes, waiting, first)
            first += 1
        if last & 1:
            last -= 1
            waiting = _push_sorted(tree, nodes, waiting, last)
        first, last = first >> 1, last >> 1
    return waiting


@inner
def _push_sorted(tree: Array, nodes: Array, waiting: int, node: int) -> int:
    """Push a node onto the stack so that the best one is on top. Returns its height."""
    place = waiting
    while place and tree[nodes[place - 1]] < tree[node]:
        nodes[place] = nodes[place - 1]
        place -= 1
    nodes[place] = node
    return waiting + 1
