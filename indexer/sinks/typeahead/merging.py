"""Merges segments into one that equals the segment built of the same shops directly.

The texts of all inputs are read block by block, and large arrays are spilt to files, so that memory holds a few bytes
for each shop and each text, and never all texts. Blocks are concatenated and sorted, which is a merge, because Python's
sort detects sorted runs.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import compress, islice
from operator import ne
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from index_mappings.typeahead.manifest import SegmentUse
from index_mappings.typeahead.segment import ARRAYS, KEY, LACKING, LEADING, POSTING_BITS
from indexer.sinks.failures import SinkError
from indexer.sinks.typeahead.arrays import (
    ABOVE,
    BELOW,
    MARKS,
    NO_POSTING,
    Bools,
    Ints,
    Items,
    Longs,
    best_postings,
    best_tree,
    heads_of,
    lengths_of,
    letters_of,
)
from indexer.sinks.typeahead.merging_shops import GONE, MergedShops
from indexer.sinks.typeahead.reading import Segment, live_shops
from indexer.sinks.typeahead.rounds import Block, rest_reader, rounds, text_reader
from indexer.sinks.typeahead.segment_file import Spill, write_segment

# The maximum number of shops and of texts: they are numbered by the bits of an int32 above a posting's marks.
MAX_NUMBERED: Final = 1 << 31 - POSTING_BITS


class Input(NamedTuple):
    """A segment to be merged, and a bitmap of the shops that are left out, as in a manifest."""

    segment: Segment
    removed: bytes = b""


def merge(directory: Path, inputs: Sequence[Input], most: int = MAX_NUMBERED) -> SegmentUse:
    """Write the segment of all current shops of some segments; no shop is current in two of them.

    `directory` gets the result, and unnamed temporary files. `most` is the maximum number of shops, and of texts.

    Raises:
        OSError: it can't be written.
        SinkError: it would have more shops or texts than can be numbered.
    """
    with ExitStack() as stack:

        def spill(name: str) -> Spill:
            return stack.enter_context(closing(Spill(directory, ARRAYS[name])))

        contents = [entry.segment.contents for entry in inputs]
        shops = MergedShops(contents, [live_shops(entry.segment.contents.shops, entry.removed) for entry in inputs])
        _check_number("shops", shops.count, most)
        texts = _MergedTexts([found.arrays for found in contents], shops.numbers, spill, most)
        arrays: dict[str, Items | Spill] = {**texts.arrays(), **shops.arrays(texts.numbers, spill)}
        return write_segment(directory, shops.count, shops.countries, shops.categories, arrays)


class _MergedTexts:
    """The texts of a merge.

    Attributes:
        numbers: for each input the new number of each text; GONE if no current shop has it.
    """

    def __init__(
        self, sources: Sequence[Mapping[str, Items]], shops: Sequence[Ints], spill: Callable[[str], Spill], most: int
    ) -> None:
        # For each input its arrays, and the new number of each shop.
        self._sources, self._shops, self._spill, self._most = sources, shops, spill, most
        self.numbers = [np.full(len(arrays["firsts"]), GONE, np.int32) for arrays in sources]
        self._best_key: Ints = np.zeros(0, np.int32)

    def arrays(self) -> dict[str, Items | Spill]:
        """Merge. Returns all arrays of texts."""
        arrays = self._merged()
        for lacking in LACKING:
            arrays |= self._merged_rests(lacking)
        return arrays

    def _merged(self) -> dict[str, Items | Spill]:
        spilt = {name: self._spill(name) for name in ("offsets", "letters", "firsts", "heads", "postings")}
        for name in ("offsets", "heads"):
            spilt[name].append(np.zeros(1, np.int32))
        best = {LEADING: self._spill("best_leading"), KEY: self._spill("best_key")}
        texts = letters = postings = 0
        readers = list(map(text_reader, self._sources))
        for blocks in rounds([len(found) for found in self.numbers], readers):
            merged, firsts, found, heads = self._round(blocks, texts)
            for mark, bests in best.items():
                bests.append(best_postings(found, heads, mark))
            offsets = heads_of(lengths_of(merged))
            spilt["letters"].append(letters_of(merged))
            spilt["firsts"].append(firsts)
            spilt["postings"].append(found)
            spilt["offsets"].append(offsets[1:] + np.int32(letters))
            spilt["heads"].append(heads[1:] + np.int32(postings))
            texts, letters, postings = texts + len(merged), letters + int(offsets[-1]), postings + len(found)
            _check_number("texts", texts, self._most)
        self._best_key = best[KEY].items()
        return {
            **spilt,
            "best_leading": best_tree(best[LEADING].items()),
            "best_key": best_tree(self._best_key),
        }

    def _round(self, blocks: list[Block], before: int) -> tuple[list[str], Longs, Ints, Ints]:
        """Merge the blocks of one round, and store the new numbers of their texts, of which `before` came earlier.

        Returns:
            The texts, their first characters, their postings, and the heads of each text's postings.
        """
        current = [self._current(block) for block in blocks]
        texts = [text for block, (has, _, _) in zip(blocks, current, strict=True) for text in _chosen(block.texts, has)]
        firsts = [
            self._sources[block.source]["firsts"][block.low : block.high][has]
            for block, (has, _, _) in zip(blocks, current, strict=True)
        ]
        order, ordered, is_new = _sorted(texts)
        numbers = np.empty(len(texts), np.int32)
        numbers[order] = np.cumsum(is_new) - 1
        keyed: list[Longs] = []
        start = 0
        for block, (has, owners, postings) in zip(blocks, current, strict=True):
            own = np.full(len(has), GONE, np.int32)
            end = start + int(has.sum())
            own[has] = numbers[start:end]
            start = end
            self.numbers[block.source][block.low : block.high] = np.where(has, own + np.int32(before), own)
            keyed.append(own[owners].astype(np.int64) << ABOVE | postings)
        sorted_postings = np.sort(np.concatenate(keyed))
        merged = _chosen(ordered, is_new)
        heads = heads_of(np.bincount(sorted_postings >> ABOVE, minlength=len(merged)))
        return merged, np.concatenate(firsts)[order][is_new], (sorted_postings & BELOW).astype(np.int32), heads

    def _current(self, block: Block) -> tuple[Bools, Longs, Longs]:
        """For each text of a block whether it has a current shop; the text of each current posting; these postings."""
        arrays = self._sources[block.source]
        heads = arrays["heads"][block.low : block.high + 1]
        postings = arrays["postings"][heads[0] : heads[-1]]
        shops = self._shops[block.source][postings >> POSTING_BITS]
        current = shops != GONE
        owners = np.repeat(np.arange(len(block.texts)), np.diff(heads))[current]
        has = np.zeros(len(block.texts), np.bool_)
        has[owners] = True
        return has, owners, shops[current].astype(np.int64) << POSTING_BITS | postings[current] & MARKS

    def _merged_rests(self, lacking: int) -> dict[str, Items | Spill]:
        name = f"rests_{lacking}"
        found, firsts, best = (self._spill(f"{kind}_{lacking}") for kind in ("rests", "firsts", "best"))
        # The last item is for GONE.
        is_key = np.append(self._best_key != NO_POSTING, np.False_)
        readers = [rest_reader(arrays, lacking) for arrays in self._sources]
        for blocks in rounds([len(arrays[name]) for arrays in self._sources], readers):
            numbers = [self.numbers[block.source][self._of(block, name)] for block in blocks]
            # A text may have been a key of removed shops only.
            keys = [is_key[own] for own in numbers]
            rests = [rest for block, key in zip(blocks, keys, strict=True) for rest in _chosen(block.texts, key)]
            order, _, is_new = _sorted(rests)
            own_firsts = [self._of(block, f"firsts_{lacking}")[key] for block, key in zip(blocks, keys, strict=True)]
            chosen = np.concatenate([own[key] for own, key in zip(numbers, keys, strict=True)])[order]
            # Distinct keys, those with the same rest in the order of their numbers.
            keyed = np.unique((np.cumsum(is_new) - 1) << ABOVE | chosen)
            merged = (keyed & BELOW).astype(np.int32)
            found.append(merged)
            firsts.append(np.concatenate(own_firsts)[order][is_new][keyed >> ABOVE])
            best.append(self._best_key[merged])
        return {name: found, f"firsts_{lacking}": firsts, f"best_{lacking}": best_tree(best.items())}

    def _of(self, block: Block, name: str) -> Items:
        return self._sources[block.source][name][block.low : block.high]


def _check_number(what: str, number: int, most: int) -> None:
    """Refuse a segment that is too large, before a number overflows and the service refuses the segment."""
    if number > most:
        raise SinkError(
            f"the typeahead would have more than {most:,} {what}, which is all that a segment can number: leave "
            "aliases out of the catalogue, or divide it among several indices, each with a service of its own"
        )


def _sorted(texts: list[str]) -> tuple[list[int], list[str], Bools]:
    """Sort texts. Returns their indices in order, the sorted texts, and whether each differs from the previous one."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    ordered = list(map(texts.__getitem__, order))
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = np.fromiter(map(ne, ordered, islice(ordered, 1, None)), np.bool_, max(0, len(ordered) - 1))
    return order, ordered, is_new


def _chosen(texts: list[str], flags: Bools) -> list[str]:
    return texts if flags.all() else list(compress(texts, flags.tolist()))
