"""Reads the sorted texts of several segments in parallel, in rounds, so that few are in memory."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from indexer.sinks.typeahead.arrays import Items, heads_of, spans

# The maximum number of texts in memory, of all inputs together.
_MAX_TEXTS: Final = 100_000

# Reads the texts of a half-open range of positions.
Reader = Callable[[int, int], list[str]]


class Block(NamedTuple):
    """Texts of one input.

    Attributes:
        source: number of the input.
        low, high: their positions in it.
        texts: the texts.
    """

    source: int
    low: int
    high: int
    texts: list[str]


def rounds(counts: Sequence[int], readers: Sequence[Reader], most: int = _MAX_TEXTS) -> Iterator[list[Block]]:
    """Read sorted texts in rounds of ascending texts; equal texts are in the same round.

    A round is a block of each input that has texts in it. At most `most` texts are in memory, unless more are equal.
    """
    inputs = [_Pending(source, count, readers[source]) for source, count in enumerate(counts)]
    step = max(1, most // max(1, len(inputs)))
    while True:
        for entry in inputs:
            entry.fill(step)
        # Inputs that are not read to the end may continue with any text from their last one on.
        bound = min((entry.texts[-1] for entry in inputs if not entry.is_read), default=None)
        blocks = [block for entry in inputs if (block := entry.take(bound)).texts]
        if blocks:
            yield blocks
        elif bound is None:
            return
        else:
            for entry in inputs:
                if not entry.is_read and entry.texts[-1] == bound:
                    entry.fill(len(entry.texts) + step)


class _Pending:
    """Texts of one input that were read and not returned yet."""

    def __init__(self, source: int, count: int, read: Reader) -> None:
        self._source, self._count, self._read = source, count, read
        self._low = 0
        self.texts: list[str] = []

    @property
    def is_read(self) -> bool:
        """Whether all texts of the input were read."""
        return self._low + len(self.texts) == self._count

    def fill(self, size: int) -> None:
        """Read until `size` texts are pending, or the input ends."""
        begin, end = self._low + len(self.texts), min(self._count, self._low + size)
        if begin < end:
            self.texts += self._read(begin, end)

    def take(self, bound: str | None) -> Block:
        """Remove and return the texts below a bound; all for None."""
        cut = len(self.texts) if bound is None else bisect_left(self.texts, bound)
        block = Block(self._source, self._low, self._low + cut, self.texts[:cut])
        self._low += cut
        self.texts = self.texts[cut:]
        return block


def text_reader(arrays: Mapping[str, Items]) -> Reader:
    """A reader of the texts of a segment."""
    offsets, letters = arrays["offsets"], arrays["letters"]

    def read(low: int, high: int) -> list[str]:
        heads = offsets[low : high + 1]
        return _texts(letters[heads[0] : heads[-1]], heads - heads[0])

    return read


def rest_reader(arrays: Mapping[str, Items], lacking: int) -> Reader:
    """A reader of a segment's keys without the character at a position, in their own order."""
    offsets, letters, numbers = arrays["offsets"], arrays["letters"], arrays[f"rests_{lacking}"]

    def read(low: int, high: int) -> list[str]:
        found = numbers[low:high]
        starts = offsets[found]
        heads = heads_of(offsets[found + 1] - starts)
        indices = np.delete(spans(starts, np.diff(heads)), heads[:-1] + lacking)
        return _texts(letters[indices], heads - np.arange(len(heads), dtype=np.int32))

    return read


def _texts(letters: Items, heads: Items) -> list[str]:
    text = letters.tobytes().decode("utf-32-le")
    return [text[start:end] for start, end in pairwise(heads.tolist())]
