"""The best shops of ranges of texts, by the trees over their blocks or by going through the shops, best first."""

from typing import Final

import numpy as np

from index_mappings.typeahead import BLOCK, LEADING, POSTING_BITS
from service.search.typeahead_kernel.arrays import IN_WORD, NOBODY, WORD_BITS, Array, Ranges, Texts, inner
from service.search.typeahead_kernel.places import IN_ORDER, WITHOUT_FIRST, WITHOUT_SECOND
from service.search.typeahead_kernel.taking import passes, scanned, taken

# Twice as deep as any tree is.
_STACK: Final = 128
# From this share of all texts on it takes less to go through the shops, best first.
_LARGE_SHARE: Final = 100
# Of fewer blocks each text is looked at.
_WORTH_A_TREE: Final = 3


@inner
def noted_range(ranges: Ranges, noted: int, low: int, high: int, lacking: int) -> int:
    """Note a range of the order that `lacking` names, unless it is empty. Returns how many there are."""
    if low == high:
        return noted
    ranges[noted, 0], ranges[noted, 1], ranges[noted, 2] = low, high, lacking
    return noted + 1


@inner
def best_of(
    texts: Texts, ranges: Ranges, noted: int, mark: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the best shops of some ranges, each of an order, by texts with this mark. Returns as `taken`."""
    heads, postings, gone, offsets = texts.heads, texts.postings, texts.gone, texts.offsets
    nodes = np.empty(_STACK, np.int32)
    for number in range(noted):
        low, high, lacking, most = ranges[number]
        most = _longest(mark, most)
        if lacking == IN_ORDER and (high - low) * _LARGE_SHARE > len(texts.firsts):
            count = _by_rank(texts, mark, low, high, most, passing, found, better, count)
            continue
        order, tree = texts.rests_0, texts.best_leading if mark == LEADING else texts.best_key
        if lacking == WITHOUT_FIRST:
            tree = texts.best_0
        elif lacking == WITHOUT_SECOND:
            order, tree = texts.rests_1, texts.best_1
        blocks = len(tree) >> 1
        first, last = (low + BLOCK - 1) // BLOCK, high // BLOCK
        # The texts at both ends, or all of few, are looked at one by one.
        one_by_one = high if last - first < _WORTH_A_TREE else first * BLOCK
        count = scanned(
            heads, postings, gone, offsets, order, lacking, mark, low, one_by_one, most, passing, found, better, count
        )
        if one_by_one == high:
            continue
        low = last * BLOCK
        count = scanned(
            heads, postings, gone, offsets, order, lacking, mark, low, high, most, passing, found, better, count
        )
        waiting = _covering(tree, nodes, first + blocks, last + blocks)
        while waiting:
            waiting -= 1
            node = nodes[waiting]
            if count == len(found) and found[count - 1] < tree[node] >> POSTING_BITS:
                continue
            if node >= blocks:
                low = (node - blocks) * BLOCK
                high = low + BLOCK
                count = scanned(
                    heads, postings, gone, offsets, order, lacking, mark, low, high, most, passing, found, better, count
                )
            else:
                nearer = 2 * node + (tree[2 * node + 1] < tree[2 * node])
                nodes[waiting], nodes[waiting + 1] = nearer ^ 1, nearer
                waiting += 2
    return count


@inner
def _by_rank(
    texts: Texts, mark: int, low: int, high: int, most: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the best shops of a large range: the first that have a text of it. Returns as `taken`."""
    heads, own, offsets = texts.own_heads, texts.own, texts.offsets
    shop = 0
    while shop < len(heads) - 1:
        if count == len(found) and found[count - 1] < shop:
            break
        if len(passing) and shop & IN_WORD == 0 and passing[shop >> WORD_BITS] == 0:
            shop += IN_WORD + 1  # few sell in most countries
            continue
        if passes(passing, texts.gone, shop):
            for at in range(heads[shop], heads[shop + 1]):
                text = own[at] >> POSTING_BITS
                if low <= text < high and own[at] & mark and offsets[text + 1] - offsets[text] <= most:
                    count = taken(shop, found, better, count)
                    break
        shop += 1
    return count


@inner
def _longest(mark: int, of_names: int) -> int:
    """How many letters a text with this mark may have: only of leading names half must have been typed."""
    return of_names if mark == LEADING else NOBODY


@inner
def _covering(tree: Array, nodes: Array, first: int, last: int) -> int:
    """Put the fewest nodes that are first:last of the tree's leaves among those that wait. Returns how many wait."""
    waiting = 0
    while first < last:
        if first & 1:
            waiting = _stacked(tree, nodes, waiting, first)
            first += 1
        if last & 1:
            last -= 1
            waiting = _stacked(tree, nodes, waiting, last)
        first, last = first >> 1, last >> 1
    return waiting


@inner
def _stacked(tree: Array, nodes: Array, waiting: int, node: int) -> int:
    """Put a node among those that wait, the best one last. Returns how many wait."""
    place = waiting
    while place and tree[nodes[place - 1]] < tree[node]:
        nodes[place] = nodes[place - 1]
        place -= 1
    nodes[place] = node
    return waiting + 1
