"""Arrays of a segment that follow from others; `index_mappings.typeahead.segment` says what they are for."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from index_mappings.typeahead.segment import BLOCK, FIRSTS, LETTER_BITS

Ints = np.ndarray[tuple[int], np.dtype[np.int32]]
Longs = np.ndarray[tuple[int], np.dtype[np.int64]]
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]
Items = np.ndarray[tuple[int], np.dtype[Any]]

# Worse than any posting.
NO_POSTING: Final = np.iinfo(np.int32).max
# Bits of an item of a bitmap.
_WORD_BITS: Final = 32


def heads_of(counts: Items, dtype: type[np.integer[Any]] = np.int32) -> Items:
    """Where each of some lists begins, and the last one's end.

    Args:
        counts: how many items each list has.
        dtype: of the result.
    """
    heads = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=heads[1:])
    return heads


def spans(starts: Items, counts: Items) -> Longs:
    """All indices from each start on, as many as its count says, one span behind the other."""
    counts = counts.astype(np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts.astype(np.int64) - (ends - counts), counts) + np.arange(total, dtype=np.int64)


def letters_of(texts: Sequence[str]) -> Ints:
    """The code points of some texts, one text behind the other."""
    return np.frombuffer("".join(texts).encode("utf-32-le"), np.int32)


def lengths_of(texts: Sequence[str]) -> Ints:
    """How many characters each text has."""
    return np.fromiter(map(len, texts), np.int32, len(texts))


def firsts_of(letters: Ints, heads: Items) -> Longs:
    """The first characters of each text, packed as by `pack_firsts`.

    Args:
        letters: code points of the texts.
        heads: where each text begins in these, and the last one's end.
    """
    starts, lengths = heads[:-1], np.diff(heads)
    firsts = np.zeros(len(starts), np.int64)
    for place in range(FIRSTS):
        firsts <<= LETTER_BITS
        has = lengths > place
        firsts[has] |= letters[starts[has] + place]
    return firsts


def best_postings(postings: Ints, heads: Items, mark: int) -> Ints:
    """The best posting of each text that has a mark, NO_POSTING where none has it.

    Args:
        postings: of some texts, each of which has one at least.
        heads: where those of each text begin, and the last one's end.
        mark: what the postings are of their shops.
    """
    if len(heads) == 1:
        return np.zeros(0, np.int32)
    marked = np.where(postings & mark, postings, np.int32(NO_POSTING))
    return np.minimum.reduceat(marked, heads[:-1])


def best_tree(best: Ints) -> Ints:
    """The best posting below each node of a tree over whole blocks of texts; the root is the second item.

    Args:
        best: the best posting of each text.
    """
    blocks = len(best) // BLOCK
    tree = np.full(2 * blocks, NO_POSTING, np.int32)
    tree[blocks:] = best[: blocks * BLOCK].reshape(blocks, BLOCK).min(axis=1, initial=NO_POSTING)
    # Level by level, from the leaves up; a level may begin with a node whose children are of another level.
    high = blocks
    while high > 1:
        low = (high + 1) // 2
        nodes = np.arange(low, high)
        tree[low:high] = np.minimum(tree[2 * nodes], tree[2 * nodes + 1])
        high = low
    return tree


def pack_bits(bits: Bools) -> Ints:
    """A bitmap in whole items, the lowest bit of the first item first."""
    padded = np.zeros(-(-len(bits) // _WORD_BITS) * _WORD_BITS, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view(np.int32)


def unpack_bits(bitmap: Items, size: int) -> Bools:
    """So many bits of a bitmap; those that it lacks are zero."""
    bits = np.zeros(size, np.bool_)
    # numpy's own padding of an empty bitmap is whatever was in memory.
    found = np.unpackbits(bitmap.view(np.uint8), bitorder="little")[:size]
    bits[: len(found)] = found
    return bits


def inverted(heads: Items, items: Ints, size: int) -> tuple[Ints, Ints]:
    """Lists of items turned round: of each item the numbers of the lists that hold it, ascending.

    Args:
        heads: where each list begins, and the last one's end.
        items: of the lists, from 0 to `size` - 1.
        size: how many items there may be.

    Returns:
        heads and items of the result.
    """
    numbers = np.repeat(np.arange(len(heads) - 1, dtype=np.int32), np.diff(heads))
    order = np.argsort(items, kind="stable")
    return heads_of(np.bincount(items, minlength=size)), numbers[order]
