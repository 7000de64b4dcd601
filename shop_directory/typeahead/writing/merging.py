"""Merges segments into one that equals the segment built of the same shops directly.

The sorted texts of all inputs are read in parallel, in rounds of blocks, and large arrays are spilt to files, so that
memory holds a few bytes for each shop and each text, and never all texts. Blocks are concatenated and sorted, which is
a merge, because Python's sort detects sorted runs.

While commits continue, a process of low priority merges. It writes the merged segment into the folder and reports it,
and changes nothing else, so if it is killed, its files are removed as unneeded. A later commit adopts the result
(`editor`).
"""

import json
import logging
import os
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from hashlib import sha256
from itertools import chain, compress, islice, pairwise
from operator import ne
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, NamedTuple

import numpy as np

from shop_directory.typeahead.manifest import MAX_SEGMENTS, Covering, SegmentUse, TypeaheadManifest
from shop_directory.typeahead.segment import ARRAYS, KEY, LACKING, LEADING, POSTING_BITS, segment_path
from shop_directory.typeahead.writing.segment_file import (
    ABOVE,
    BELOW,
    MARKS,
    NO_POSTING,
    Bools,
    Contents,
    Ints,
    Items,
    Longs,
    Segment,
    Spill,
    best_postings,
    best_tree,
    firsts_of,
    heads_of,
    inverted,
    letters_of,
    live_shops,
    mapped,
    mapped_parts,
    open_segment,
    pack_bits,
    spans,
    unpack_bits,
    write_segment,
)

# The maximum number of texts in memory, of all inputs together. It is more where each input would have fewer than the
# second number: then the time that a round takes for an input outweighs that of its texts.
_MAX_TEXTS: Final = 100_000
_MIN_TEXTS_OF_AN_INPUT: Final = 800

# Reads the texts of a half-open range of positions.
Reader = Callable[[int, int], list[str]]
# The new number of a removed shop, and of a text or category that no current shop has.
GONE: Final = -1
# The number of shops whose lists are in memory together, and of keys of 8 bytes.
_BLOCK: Final = 8_000
_KEYS: Final = 1_000_000

# Converts the items of an input's lists to those of the result.
_Renumber = Callable[[int, Items], Items]
# The heads of these lists are int32.
_LISTS: Final = ("letters", "postings", "own_categories", "ids")
# A list of this many items counts as one text, and a shop as several texts. So a segment of the maximum weight has
# fewer than 2^31 items, and fewer shops than a posting can number.
_ITEMS_OF_A_TEXT: Final = 16
_TEXTS_OF_A_SHOP: Final = 8
# The oldest segment is merged as well when more than one in this many of its shops are removed or newer elsewhere.
_BASE_PART: Final = 4
_NICENESS: Final = 19
_END_S: Final = 5.0
# The process must import the same code as this one, whatever its working directory.
_ROOT: Final = str(Path(__file__).parents[3])
_LOG: Final = logging.getLogger(__name__)


class Input(NamedTuple):
    """A segment to be merged, and a bitmap of the shops that are left out, as in a manifest."""

    segment: Segment
    removed: bytes = b""


def weight(contents: Contents) -> int:
    """The number of texts that a segment counts as for the maximum of its store.

    A merged segment weighs at most as much as its inputs together, and one of the maximum weight can number its shops,
    its texts and the items of its lists.
    """
    longest = max(len(contents.arrays[name]) for name in _LISTS)
    return weight_of(contents.shops, len(contents.arrays["firsts"]), longest)


def weight_of(shops: int, texts: int, items: int) -> int:
    """The weight of a number of shops and texts; `items` is the length of the longest list."""
    return max(_TEXTS_OF_A_SHOP * shops, texts, -(-items // _ITEMS_OF_A_TEXT))


def merge(directory: Path, inputs: Sequence[Input]) -> SegmentUse:
    """Write the segment of all current shops of some segments; no shop is current in two of them.

    `directory` gets the result, and unnamed temporary files. Together the inputs weigh at most what a segment may.
    """
    with ExitStack() as stack:

        def spill(name: str) -> Spill:
            return stack.enter_context(closing(Spill(directory, ARRAYS[name])))

        contents = [entry.segment.contents for entry in inputs]
        live = [live_shops(entry.segment.contents.shops, entry.removed) for entry in inputs]
        shops = _MergedShops(contents, live, directory)
        numbers = mapped_parts(directory, [len(found.arrays["firsts"]) for found in contents])
        texts = _MergedTexts([found.arrays for found in contents], shops.numbers, numbers, spill)
        arrays: dict[str, Items | Spill] = {**texts.arrays(), **shops.arrays(texts.numbers, spill)}
        return write_segment(directory, shops.count, shops.countries, shops.categories, arrays)


class Block(NamedTuple):
    """Texts of one input, which is numbered, from a position to another."""

    source: int
    low: int
    high: int
    texts: list[str]


def rounds(counts: Sequence[int], readers: Sequence[Reader], most: int | None = None) -> Iterator[list[Block]]:
    """Read sorted texts in rounds of ascending texts; equal texts are in the same round.

    At most `most` texts are in memory, unless more are equal. Yields the blocks of a round, one for each input that has
    texts in it.
    """
    most = most or max(_MAX_TEXTS, _MIN_TEXTS_OF_AN_INPUT * len(counts))
    # Samples at equal distances from all inputs. Between two that are as many samples apart as there are inputs, these
    # have at most so many whole distances, and as many parts of one.
    inputs = list(zip(counts, readers, strict=True))
    step = max(1, most // (2 * len(inputs)))
    sampled = [[read(at, at + 1)[0] for at in range(0, count, step)] for count, read in inputs]
    samples = sorted(chain.from_iterable(sampled))
    lows = [0] * len(inputs)
    for bound in (*samples[len(inputs) :: len(inputs)], None):
        highs = [_position(read, bound, count, own, step) for (count, read), own in zip(inputs, sampled, strict=True)]
        ranges = enumerate(zip(lows, highs, readers, strict=True))
        if blocks := [Block(source, low, high, read(low, high)) for source, (low, high, read) in ranges if low < high]:
            yield blocks
        lows = highs


def _position(read: Reader, bound: str | None, count: int, sampled: Sequence[str], step: int) -> int:
    """The first position of a text that is not below a bound; `count` if there is none.

    It is behind the last of the samples, one in `step` texts, that are below the bound: to read a text takes longer.
    """
    if bound is None:
        return count
    after = bisect_left(sampled, bound)
    if not after:
        return 0
    low, high = (after - 1) * step + 1, min(after * step, count)
    return bisect_left(range(count), bound, low, high, key=lambda at: read(at, at + 1)[0])


def _text_reader(arrays: Mapping[str, Items]) -> Reader:
    offsets, letters = arrays["offsets"], arrays["letters"]

    def read(low: int, high: int) -> list[str]:
        heads = offsets[low : high + 1]
        return _texts(letters[heads[0] : heads[-1]], heads - heads[0])

    return read


def _rest_reader(arrays: Mapping[str, Items], lacking: int) -> Reader:
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


class _MergedShops:
    """The shops of a merge; `countries` and `categories` as in `Contents`.

    `numbers` has for each input the new number of each shop; GONE if it is removed.
    """

    def __init__(self, inputs: Sequence[Contents], live: Sequence[Bools], directory: Path) -> None:
        """Number the shops; `live` says for each input whether each shop is current."""
        self._inputs = inputs
        self._live, self._directory = live, directory
        ends = np.cumsum([flags.sum() for flags in live])
        self.count = int(ends[-1])

        def kept(kind: str) -> Items:
            # All that has an item for each shop is in files: of ten million shops it would take 0.8 GB of memory.
            return mapped(directory, self.count, np.dtype(kind))

        negated, former, sources = kept("f8"), kept("i4"), kept("i4")
        parts = [np.split(items, ends[:-1]) for items in (negated, former, sources)]
        for source, (found, flags, negative, own, same) in enumerate(zip(inputs, live, *parts, strict=True)):
            own[:], same[:] = np.flatnonzero(flags), source
            np.negative(found.arrays["popularities"][flags], out=negative)
        ids = _ids(inputs, live, directory)
        # The places, in the order of the inputs, of the shops in the new order.
        self._order, numbers, self._by_id = kept("i4"), kept("i4"), kept("i4")
        self._order[:] = np.lexsort((ids, negated))
        numbers[self._order] = np.arange(self.count, dtype=np.int32)
        np.take(numbers, np.argsort(ids), out=self._by_id, mode="clip")
        self._source_of, self._former_of, self._popularities = kept("i4"), kept("i4"), kept("f8")
        for items, out in ((sources, self._source_of), (former, self._former_of), (negated, self._popularities)):
            np.take(items, self._order, out=out, mode="clip")
        np.negative(self._popularities, out=self._popularities)
        self.numbers = mapped_parts(directory, list(map(len, live)))
        for renumbered, flags, own in zip(self.numbers, live, np.split(numbers, ends[:-1]), strict=True):
            renumbered[:] = GONE
            renumbered[flags] = own
        self.countries = (
            "",
            *sorted({code for found, flags in zip(inputs, live, strict=True) for code in _named(found, flags)}),
        )
        self.categories = tuple(
            sorted({slug for found, flags in zip(inputs, live, strict=True) for slug in _carried(found, flags)})
        )

    def arrays(self, texts: Sequence[Ints], spill: Callable[[str], Spill]) -> dict[str, Items | Spill]:
        """All arrays of shops; `texts` has for each input the new number of each text."""
        slugs = {slug: number for number, slug in enumerate(self.categories)}
        tables = [np.array([slugs.get(slug, GONE) for slug in found.categories], np.int32) for found in self._inputs]

        def own(source: int, items: Items) -> Items:
            return texts[source][items]

        def categories(source: int, items: Items) -> Items:
            return tables[source][items]

        def same(_: int, items: Items) -> Items:
            return items

        arrays: dict[str, Items | Spill] = {"popularities": self._popularities, "by_id": self._by_id}
        for heads_name, name, renumber in (
            ("own_category_heads", "own_categories", categories),
            ("own_heads", "own", own),
            ("own_heads", "own_marks", same),
            ("shown_ends", "shown", same),
            ("id_ends", "ids", same),
        ):
            heads, items = spill(heads_name), spill(name)
            self._append_lists(heads, items, heads_name, name, renumber)
            arrays |= {heads_name: heads, name: items}
            if name == "own_categories":
                keys = mapped(self._directory, len(items), np.dtype(np.int64))
                arrays["category_heads"] = inverted(heads.items(), items.items(), len(self.categories), keys)
                spilt = arrays["category_shops"] = spill("category_shops")
                for low in range(0, len(keys), _KEYS):
                    spilt.append(keys[low : low + _KEYS] & BELOW)
        for name in ("markets", "known"):
            spilt = arrays[name] = spill(name)
            for country in self.countries:
                spilt.append(pack_bits(self._passing(name, country)))
        return arrays

    def _passing(self, name: str, country: str) -> Bools:
        passing = []
        for found, flags in zip(self._inputs, self._live, strict=True):
            row = found.countries.index(country) if country in found.countries else 0
            bitmaps = found.arrays[name].reshape(len(found.countries), -1)
            passing.append(unpack_bits(bitmaps[row], found.shops)[flags])
        bits: Bools = np.concatenate(passing)[self._order]
        return bits

    def _append_lists(self, ends: Spill, items: Spill, heads_name: str, name: str, renumber: _Renumber) -> None:
        """Append the lists of all shops in the new order to `items`, and their heads to `ends`."""
        ends.append(np.zeros(1, np.int64))
        for low in range(0, self.count, _BLOCK):
            sources, former = self._source_of[low : low + _BLOCK], self._former_of[low : low + _BLOCK]
            starts, lengths = np.empty(len(sources), np.int64), np.empty(len(sources), np.int64)
            by_source = np.argsort(sources, kind="stable")
            present, firsts = np.unique(sources[by_source], return_index=True)
            chosen = dict(zip(present.tolist(), np.split(by_source, firsts[1:]), strict=True))
            for source, positions in chosen.items():
                heads = self._inputs[source].arrays[heads_name]
                starts[positions] = heads[former[positions]]
                lengths[positions] = heads[former[positions] + 1] - starts[positions]
            heads = heads_of(lengths, np.int64)
            block = np.empty(int(heads[-1]), self._inputs[0].arrays[name].dtype)
            for source, positions in chosen.items():
                found = self._inputs[source].arrays[name][spans(starts[positions], lengths[positions])]
                block[spans(heads[:-1][positions], lengths[positions])] = renumber(source, found)
            ends.append(heads[1:] + len(items))
            items.append(block)


def _ids(inputs: Sequence[Contents], live: Sequence[Bools], directory: Path) -> Items:
    """The ids of the current shops of each input, one input after the other."""
    width = max(int(np.diff(found.arrays["id_ends"]).max(initial=1)) for found in inputs)
    ids, position = mapped(directory, sum(int(flags.sum()) for flags in live), np.dtype(f"S{width}")), 0
    for found, flags in zip(inputs, live, strict=True):
        numbers = np.flatnonzero(flags)
        for low in range(0, len(numbers), _BLOCK):
            block = numbers[low : low + _BLOCK]
            starts, ends = (found.arrays["id_ends"][block + after] for after in (0, 1))
            data = found.arrays["ids"][starts[0] : ends[-1]].tobytes()
            spans_of = zip((starts - starts[0]).tolist(), (ends - starts[0]).tolist(), strict=True)
            ids[position : position + len(block)] = [data[start:end] for start, end in spans_of]
            position += len(block)
    return ids


def _named(found: Contents, live: Bools) -> Iterator[str]:
    """The countries that some current shop names."""
    known = found.arrays["known"].reshape(len(found.countries), -1)
    current = pack_bits(live) & ~known[0]
    return (code for code, row in zip(found.countries[1:], known[1:], strict=True) if (row & current).any())


def _carried(found: Contents, live: Bools) -> Iterator[str]:
    """The categories that some current shop carries."""
    current = np.repeat(live, np.diff(found.arrays["own_category_heads"]))
    numbers = np.unique(found.arrays["own_categories"][current]).tolist()
    return (found.categories[number] for number in numbers)


class _MergedTexts:
    """The texts of a merge; `numbers` has for each input the new number of each text, or GONE if no shop has it."""

    def __init__(
        self,
        sources: Sequence[Mapping[str, Items]],
        shops: Sequence[Ints],
        numbers: Sequence[Ints],
        spill: Callable[[str], Spill],
    ) -> None:
        """`numbers` is memory for a number of each text of each input."""
        # For each input its arrays, and the new number of each shop.
        self._sources, self._shops, self._spill = sources, shops, spill
        self.numbers = numbers
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
        readers = list(map(_text_reader, self._sources))
        for blocks in rounds([len(found) for found in self.numbers], readers):
            merged, found, heads = self._round(blocks, texts)
            for mark, bests in best.items():
                bests.append(best_postings(found, heads, mark))
            characters, offsets = letters_of(merged)
            spilt["letters"].append(characters)
            spilt["firsts"].append(firsts_of(characters, offsets))
            spilt["postings"].append(found)
            spilt["offsets"].append(offsets[1:] + np.int32(letters))
            spilt["heads"].append(heads[1:] + np.int32(postings))
            texts, letters, postings = texts + len(merged), letters + len(characters), postings + len(found)
        self._best_key = best[KEY].items()
        return {
            **spilt,
            "best_leading": best_tree(best[LEADING].items()),
            "best_key": best_tree(self._best_key),
        }

    def _round(self, blocks: list[Block], before: int) -> tuple[list[str], Ints, Ints]:
        """Merge the blocks of one round, and store the new numbers of their texts, of which `before` came earlier.

        Returns the texts, their postings, and the heads of each text's postings.
        """
        current = [self._current(block) for block in blocks]
        texts = [text for block, (has, _, _) in zip(blocks, current, strict=True) for text in _chosen(block.texts, has)]
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
        return merged, (sorted_postings & BELOW).astype(np.int32), heads

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
        readers = [_rest_reader(arrays, lacking) for arrays in self._sources]
        for blocks in rounds([len(arrays[name]) for arrays in self._sources], readers):
            numbers = [self.numbers[one.source][self._sources[one.source][name][one.low : one.high]] for one in blocks]
            # A text may have been a key of removed shops only.
            keys = [is_key[own] for own in numbers]
            rests = [rest for block, key in zip(blocks, keys, strict=True) for rest in _chosen(block.texts, key)]
            order, ordered, is_new = _sorted(rests)
            chosen = np.concatenate([own[key] for own, key in zip(numbers, keys, strict=True)])[order]
            # Distinct keys, those with the same rest in the order of their numbers.
            keyed = np.unique((np.cumsum(is_new) - 1) << ABOVE | chosen)
            merged = (keyed & BELOW).astype(np.int32)
            found.append(merged)
            firsts.append(firsts_of(*letters_of(_chosen(ordered, is_new)))[keyed >> ABOVE])
            best.append(self._best_key[merged])
        return {name: found, f"firsts_{lacking}": firsts, f"best_{lacking}": best_tree(best.items())}


def _sorted(texts: list[str]) -> tuple[list[int], list[str], Bools]:
    """Sort texts. Returns their indices in order, the sorted texts, and whether each differs from the previous one."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    ordered = list(map(texts.__getitem__, order))
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = np.fromiter(map(ne, ordered, islice(ordered, 1, None)), np.bool_, max(0, len(ordered) - 1))
    return order, ordered, is_new


def _chosen(texts: list[str], flags: Bools) -> list[str]:
    return texts if flags.all() else list(compress(texts, flags.tolist()))


class BackgroundMerging:
    """Runs the background merges of one sink, one at a time; `close` ends the current one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._directory = Path()
        self._inputs: Covering = ()

    @property
    def process_id(self) -> int | None:
        """The process of the current merge, until its result is fetched."""
        return None if self._process is None else self._process.pid

    def start(self, directory: Path, inputs: Covering) -> None:
        """Start merging segments of a folder, unless a merge is running."""
        if self._process is not None or not inputs:
            return
        job = TypeaheadManifest((inputs,)).to_bytes()
        paths = (_ROOT, os.environ.get("PYTHONPATH"))
        command = [sys.executable, "-P", "-m", __name__, str(directory), sha256(job).hexdigest()]
        with TemporaryFile() as file:
            file.write(job)
            file.seek(0)
            try:
                # In its own group, so that an interrupt of the terminal reaches only this process. In its own session
                # the niceness would have no effect where the system divides the processor among sessions.
                self._process = subprocess.Popen(  # noqa: S603 - constants and a folder
                    command,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                    stdin=file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    process_group=0,
                )
            except OSError as error:
                _LOG.warning("segments of the typeahead can't be merged: %s", error)
                return
        self._directory, self._inputs = directory, inputs

    def wait(self) -> None:
        """Wait until no merge is running."""
        if self._process is not None:
            self._process.wait()

    def finished(self, directory: Path) -> tuple[Covering, SegmentUse] | None:
        """The merge that has finished since the last call; None if there is none, or its folder is another one.

        Returns the merged segments, as they were at the start, and the segment of their shops.
        """
        process = self._process
        if process is None or process.poll() is None:
            return None
        answer, _ = process.communicate()
        self._process = None
        if process.returncode:
            _LOG.warning("merging segments of the typeahead ended with code %d and is retried", process.returncode)
            return None
        return (self._inputs, SegmentUse(*json.loads(answer))) if directory == self._directory else None

    def close(self) -> None:
        """Terminate the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def newest_group(weights: Sequence[int], most: int) -> int:
    """The first of the longest run of last segments that may become one segment: the last one, if no two may."""
    start, total = len(weights) - 1, weights[-1]
    while start and (total := total + weights[start - 1]) <= most:
        start -= 1
    return start


def has_room(weights: Sequence[int], most: int) -> bool:
    """Whether a covering may have one more segment; those that can't be merged with newer ones don't count."""
    return len(weights) - newest_group(weights, most) < MAX_SEGMENTS


def mergeable(covering: Covering, weights: Sequence[int], small_shops: int, most: int) -> Covering:
    """The consecutive segments of a manifest's only covering that should be merged into one; empty if none should.

    Commits rewrite the last segment while it has fewer than `small_shops` shops. No segments are merged that weigh more
    than `most` together.
    """
    # With the maximum number of segments, commits rewrite the last one although it is large.
    is_settled = covering[-1].shops >= small_shops and has_room(weights, most)
    settled = covering if is_settled else covering[:-1]
    if not settled:
        return ()
    start = newest_group(weights[: len(settled)], most)
    base, newer = settled[start], settled[start + 1 :]
    elsewhere = _removed(base) + sum(use.shops - _removed(use) for use in newer)
    if elsewhere * _BASE_PART > base.shops:
        return settled[start:]
    if len(newer) > 1:
        return newer
    return _shrinkable(settled[: start + 1], weights, most)


def _shrinkable(older: Covering, weights: Sequence[int], most: int) -> Covering:
    """The first segment with many removed shops, or the first two that together are no longer too large."""
    for position, use in enumerate(older[:-1]):
        if _removed(use) * _BASE_PART > use.shops:
            return (use,)
        if weights[position] + weights[position + 1] <= most:
            return older[position : position + 2]
    return ()


def _removed(use: SegmentUse) -> int:
    return int.from_bytes(use.removed, "little").bit_count()


def main(arguments: Sequence[str]) -> None:
    """Merge the segments of the manifest that is read from standard input, and print the result as JSON.

    The arguments are the folder of the segments, and the manifest's name.
    """
    os.nice(_NICENESS)
    directory, name = Path(arguments[0]), arguments[1]
    (inputs,) = TypeaheadManifest.from_bytes(sys.stdin.buffer.read(), name).coverings
    result = merge(directory, [Input(open_segment(segment_path(directory, use.name)), use.removed) for use in inputs])
    sys.stdout.write(json.dumps([result.name, result.size, result.shops]))


if __name__ == "__main__":
    main(sys.argv[1:])
