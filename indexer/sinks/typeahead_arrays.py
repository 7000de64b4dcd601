"""The arrays of sorted texts that are made of others in memory; `index_mappings.typeahead` tells what they are for."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import numpy as np

from index_mappings.typeahead import BLOCK, FIRSTS, LETTER_BITS, POSTING_BITS

if TYPE_CHECKING:
    from array import array

Numbers = np.ndarray[tuple[int], np.dtype[np.int32]]

# No posting: worse than all.
NOBODY: Final = np.iinfo(np.int32).max
# The bits of one number.
WORD_SIZE: Final = 32


def first_characters(text: str) -> int:
    """What is said of the first characters of a text."""
    value = 0
    for place in range(FIRSTS):
        value = value << LETTER_BITS | (ord(text[place]) if place < len(text) else 0)
    return value


def by_shop(shops: int, heads: "array[int]", postings: "array[int]") -> tuple[Numbers, Numbers]:
    """The postings turned round: where those of each shop begin, and its texts with the marks."""
    found = np.array(postings, np.int32)
    texts = np.repeat(np.arange(len(heads) - 1, dtype=np.int32), np.diff(np.asarray(heads)).astype(np.int64))
    owners = found >> POSTING_BITS
    order = np.argsort(owners, kind="stable")
    ends = np.cumsum(np.bincount(owners, minlength=shops), dtype=np.int32)
    marks = found & ((1 << POSTING_BITS) - 1)
    return np.concatenate((np.zeros(1, np.int32), ends)), (texts << POSTING_BITS | marks)[order]


def best_tree(best: Numbers) -> Numbers:
    """The best below each node over the whole blocks of some texts; the first node is the second item."""
    blocks = len(best) // BLOCK
    tree = np.full(2 * blocks, NOBODY, np.int32)
    tree[blocks:] = best[: blocks * BLOCK].reshape(blocks, BLOCK).min(axis=1, initial=NOBODY)
    for node in range(blocks - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    return tree


def bits_of(places: Collection[int]) -> Numbers:
    """A bit for each of these places, in no more words than they need."""
    words = np.zeros(max(places) // WORD_SIZE + 1 if places else 0, np.uint32)
    for place in places:
        words[place // WORD_SIZE] |= np.uint32(1 << place % WORD_SIZE)
    return words.view(np.int32)
