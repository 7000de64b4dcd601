"""Computes arrays of a segment from others; `index_mappings.typeahead.segment` describes them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from index_mappings.typeahead.segment import BLOCK, FIRSTS, LETTER_BITS, POSTING_BITS

Ints = np.ndarray[tuple[int], np.dtype[np.int32]]
Longs = np.ndarray[tuple[int], np.dtype[np.int64]]
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]
Items = np.ndarray[tuple[int], np.dtype[Any]]

# Greater, and so worse, than any posting.
NO_POSTING: Final = np.iinfo(np.int32).max
# The mask of a posting's marks.
MARKS: Final = (1 << POSTING_BITS) - 1
# Postings are sorted as the lower half of an int64 whose upper half is the number of a text or of a shop.
ABOVE: Final = 32
BELOW: Final = 0xFFFF_FFFF
# The number of bits of an item of a bitmap.
_WORD_BITS: Final = 32


def heads_of(counts: Items, dtype: type[np.integer[Any]] = np.int32) -> Items:
    """The heads of lists with these numbers of items: the start of each list, and the end of the last one."""
    heads = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=heads[1:])
    return heads


def spans(starts: Items, counts: Items) -> Longs:
    """The indices of all spans, concatenated; a span has `count` consecutive indices from its start on."""
    counts = counts.astype(np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts.astype(np.int64) - (ends - counts), counts) + np.arange(total, dtype=np.int64)


def letters_of(texts: Sequence[str]) -> tuple[Ints, Items]:
    """The code points of some texts, concatenated, and the heads of the texts in these."""
    letters = np.frombuffer("".join(texts).encode("utf-32-le"), np.int32)
    return letters, heads_of(np.fromiter(map(len, texts), np.int32, len(texts)))


def firsts_of(letters: Ints, heads: Items) -> Longs:
    """The first characters of each text, packed as `FIRSTS` describes; `heads` are those of the texts in `letters`."""
    starts, lengths = heads[:-1], np.diff(heads)
    firsts = np.zeros(len(starts), np.int64)
    for position in range(FIRSTS):
        firsts <<= LETTER_BITS
        is_longer = lengths > position
        firsts[is_longer] |= letters[starts[is_longer] + position]
    return firsts


def best_postings(postings: Ints, heads: Items, mark: int) -> Ints:
    """The best posting with a mark of each text; NO_POSTING for a text without any. Each text has some posting."""
    if len(heads) == 1:
        return np.zeros(0, np.int32)
    marked = np.where(postings & mark, postings, np.int32(NO_POSTING))
    return np.minimum.reduceat(marked, heads[:-1])


def best_tree(best: Ints) -> Ints:
    """A tree over whole blocks of texts: the best of `best`, one for each text, below each node; item 1 is the root."""
    blocks = len(best) // BLOCK
    tree = np.full(2 * blocks, NO_POSTING, np.int32)
    tree[blocks:] = best[: blocks * BLOCK].reshape(blocks, BLOCK).min(axis=1, initial=NO_POSTING)
    # Level by level, from the leaves up; the children of a level's first node may be on different levels.
    high = blocks
    while high > 1:
        low = (high + 1) // 2
        nodes = np.arange(low, high)
        tree[low:high] = np.minimum(tree[2 * nodes], tree[2 * nodes + 1])
        high = low
    return tree


def pack_bits(bits: Bools) -> Ints:
    """Pack a bitmap into whole items, the lowest bit of the first item first."""
    padded = np.zeros(-(-len(bits) // _WORD_BITS) * _WORD_BITS, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view(np.int32)


def unpack_bits(bitmap: Items, size: int) -> Bools:
    """The first `size` bits of a bitmap, which may be shorter; missing bits are zero."""
    bits = np.zeros(size, np.bool_)
    # numpy's own padding of an empty bitmap is uninitialized memory.
    found = np.unpackbits(bitmap.view(np.uint8), bitorder="little")[:size]
    bits[: len(found)] = found
    return bits


def inverted(heads: Items, items: Ints, size: int) -> tuple[Ints, Ints]:
    """Invert lists of items from 0 to `size` - 1: for each item the numbers of the lists that have it, ascending.

    Returns heads and items of the result.
    """
    numbers = np.repeat(np.arange(len(heads) - 1, dtype=np.int32), np.diff(heads))
    order = np.argsort(items, kind="stable")
    return heads_of(np.bincount(items, minlength=size)), numbers[order]
