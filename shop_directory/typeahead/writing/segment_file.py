"""Segments: some of their arrays are computed from others; and their files, which have their hash as their name.

Files are opened memory-mapped once the hash is checked. `shop_directory.typeahead.segment` describes the arrays.
"""

import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple

import numpy as np
import orjson

from shop_directory.typeahead.manifest import SegmentUse, file_hash
from shop_directory.typeahead.segment import (
    ALIGNMENT,
    ARRAYS,
    BLOCK,
    FIRSTS,
    LETTER_BITS,
    POSTING_BITS,
    SUFFIX,
    ArrayPosition,
    Header,
    Shown,
    header_bytes,
    read_header,
)
from shop_directory.typeahead.writing.store import write_file

Ints = np.ndarray[tuple[int], np.dtype[np.int32]]
Longs = np.ndarray[tuple[int], np.dtype[np.int64]]
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]
Items = np.ndarray[tuple[int], np.dtype[Any]]

_COPY_BYTES: Final = 1 << 20
# The number of lists that are inverted together.
_INVERTED_LISTS: Final = 100_000
# The number of files whose check is cached: those of a few manifests.
_CHECKED: Final = 32
# Greater, and so worse, than any posting.
NO_POSTING: Final = np.iinfo(np.int32).max
# The mask of a posting's marks.
MARKS: Final = (1 << POSTING_BITS) - 1
# Postings are sorted as the lower half of an int64 whose upper half is the number of a text or of a shop.
ABOVE: Final = 32
BELOW: Final = 0xFFFF_FFFF
# The number of bits of an item of a bitmap.
_WORD_BITS: Final = 32


class Spill:
    """An array that grows in an unnamed temporary file instead of in memory."""

    def __init__(self, directory: Path, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._file: IO[bytes] = TemporaryFile(dir=directory)  # noqa: SIM115 - closed by `close`
        self._bytes = 0

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def __len__(self) -> int:
        return self._bytes // self._dtype.itemsize

    def append(self, items: Items) -> None:
        """Append items."""
        data = np.ascontiguousarray(items, self._dtype).data
        self._file.write(data)
        self._bytes += data.nbytes

    def items(self) -> Items:
        """The array so far, memory-mapped: the system can reclaim its memory."""
        self._file.flush()
        return np.memmap(self._file, self._dtype, "r") if self._bytes else np.zeros(0, self._dtype)

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the array in blocks."""
        self._file.seek(0)
        while chunk := self._file.read(_COPY_BYTES):
            yield chunk


def mapped(directory: Path, size: int, dtype: np.dtype[Any]) -> Items:
    """An array of zeros in an unnamed temporary file, whose memory the system can reclaim; OSError on a full disk."""
    if not size:
        return np.zeros(0, dtype)
    with TemporaryFile(dir=directory) as file:
        # Written first: a mapped page for which the disk has no room ends the process.
        for left in range(size * dtype.itemsize, 0, -_COPY_BYTES):
            file.write(bytes(min(left, _COPY_BYTES)))
        file.flush()
        return np.asarray(np.memmap(file, dtype, "r+", shape=size))


def mapped_parts(directory: Path, sizes: Sequence[int]) -> list[Ints]:
    """Arrays of zeros of these sizes in one file, as `mapped`: each mapped file is open as well."""
    return np.split(mapped(directory, sum(sizes), np.dtype(np.int32)), np.cumsum(sizes)[:-1])


class Contents(NamedTuple):
    """The contents of a segment: `countries` are of the rows of `markets` and `known`, `arrays` those of ARRAYS."""

    shops: int
    countries: tuple[str, ...]
    categories: tuple[str, ...]
    arrays: Mapping[str, Items]


def write_segment(
    directory: Path,
    shops: int,
    countries: tuple[str, ...],
    categories: tuple[str, ...],
    arrays: Mapping[str, Items | Spill],
) -> SegmentUse:
    """Write a durable segment with the arrays of ARRAYS into a folder, completely or not at all."""

    def write(file: IO[bytes]) -> None:
        parts = {name: _write_array(file, arrays[name], dtype) for name, dtype in ARRAYS.items()}
        file.write(header_bytes(Header(shops, countries, categories, parts), file.tell()))

    path = write_file(directory, SUFFIX, write)
    return SegmentUse(path.stem, path.stat().st_size, shops)


def _write_array(file: IO[bytes], items: Items | Spill, dtype: str) -> ArrayPosition:
    """Write an array at the next multiple of ALIGNMENT."""
    file.write(bytes(-file.tell() % ALIGNMENT))
    start = file.tell()
    if isinstance(items, Spill):
        file.writelines(items.chunks())
        # Its space is needed for the arrays that follow.
        items.close()
    else:
        file.write(np.ascontiguousarray(items, dtype).data)
    return ArrayPosition(start, len(items))


class Segment:
    """A segment whose arrays are in memory or memory-mapped."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        arrays = contents.arrays
        # Memoryviews, because reading a single item of one is far faster than of an array.
        self._by_id, self._id_ends = arrays["by_id"].data, arrays["id_ends"].data
        self._ids = arrays["ids"].data
        self._shown_ends, self._shown = arrays["shown_ends"].data, arrays["shown"].data

    def number(self, shop_id: str) -> int | None:
        """The number of a shop; None if the segment has no shop of this id."""
        encoded = shop_id.encode()
        position = bisect_left(self._by_id, encoded, key=self._id)
        if position < len(self._by_id) and self._id(number := self._by_id[position]) == encoded:
            return number
        return None

    def shown(self, after: str, end: str | None, removed: bytes) -> Iterator[Shown]:
        """The suggestions' fields of the shops with ids after `after`, up to `end` if given, without removed shops."""
        first = bisect_right(self._by_id, after.encode(), key=self._id)
        last = len(self._by_id) if end is None else bisect_right(self._by_id, end.encode(), key=self._id)
        for number in self._by_id[first:last]:
            if not is_removed(removed, number):
                shop_id, name, domain, category, popularity = orjson.loads(
                    self._shown[self._shown_ends[number] : self._shown_ends[number + 1]]
                )
                yield shop_id, name, domain, category, popularity

    def ids(self, numbers: Iterator[int]) -> Iterator[str]:
        """The ids of some shops."""
        return (self._id(number).decode("ascii") for number in numbers)

    def _id(self, number: int) -> bytes:
        return bytes(self._ids[self._id_ends[number] : self._id_ends[number + 1]])


def open_segment(path: Path) -> Segment:
    """Map a segment's file into memory, and check its hash."""
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    check_file(path)
    header = read_header(data)
    arrays: Mapping[str, Items] = {
        name: np.frombuffer(data, np.dtype(dtype), header.parts[name].size, header.parts[name].start)
        for name, dtype in ARRAYS.items()
    }
    return Segment(Contents(header.shops, header.countries, header.categories, arrays))


def is_removed(removed: bytes, number: int) -> bool:
    """Whether a number is in a bitmap of a manifest."""
    byte = number >> 3
    return byte < len(removed) and bool(removed[byte] >> (number & 7) & 1)


def live_shops(shops: int, removed: bytes) -> Bools:
    """For each number whether its shop is still current."""
    return ~unpack_bits(np.frombuffer(removed, np.uint8), shops)


def check_file(path: Path) -> None:
    """Compare a file's hash with its name; while inode, size and time are the same, so are its bytes."""
    found = path.stat()
    _check(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=_CHECKED)
def _check(path: Path, inode: int, size: int, changed_ns: int) -> None:
    """As `check_file`; the other arguments make the cache miss for a changed file."""
    del inode, size, changed_ns
    if file_hash(path) != path.stem:
        raise ValueError("a segment of the typeahead is damaged")


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


def inverted(heads: Items, items: Items, size: int, keys: Longs) -> Ints:
    """Invert lists of items from 0 to `size` - 1. Returns the heads of the lists' numbers of each item.

    These numbers, ascending for each item, are below ABOVE in `keys`, which is memory for a key of each item.
    """
    counts = np.zeros(size, np.int64)
    for low in range(0, len(heads) - 1, _INVERTED_LISTS):
        own = heads[low : low + _INVERTED_LISTS + 1]
        found = items[own[0] : own[-1]]
        numbers = np.repeat(np.arange(low, low + len(own) - 1), np.diff(own))
        keys[own[0] : own[-1]] = found.astype(np.int64) << ABOVE | numbers
        counts += np.bincount(found, minlength=size)
    keys.sort()
    return heads_of(counts)
