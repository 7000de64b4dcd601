"""Reads segments and manifests, for writing the next ones and for comparing them with the index."""

import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from index_mappings.typeahead import manifest, segment
from index_mappings.typeahead.manifest import TypeaheadManifest
from index_mappings.typeahead.segment import ARRAYS, Shown, read_header
from indexer.sinks.typeahead.arrays import Bools, Items, unpack_bits
from indexer.sinks.typeahead.segment_file import Contents
from indexer.sinks.typeahead.store import TypeaheadStore

# The number of files whose check is cached: those of a few manifests.
_CHECKED: Final = 32


class Segment:
    """A segment whose arrays are in memory or memory-mapped."""

    def __init__(self, contents: Contents) -> None:
        """Open contents that were read or built."""
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
        """The suggestions' fields of the shops in a range of ids, without removed shops.

        `after` is the id before the range, `end` its last id, or None for no end; `removed` is a bitmap, as in a
        manifest.
        """
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
    """Map a segment's file into memory, and check its hash.

    Raises:
        OSError, ValueError: it is missing or damaged.
    """
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    check_file(path)
    header = read_header(data)
    arrays: Mapping[str, Items] = {
        name: np.frombuffer(data, np.dtype(dtype), header.parts[name].size, header.parts[name].start)
        for name, dtype in ARRAYS.items()
    }
    return Segment(Contents(header.shops, header.countries, header.categories, arrays))


def fetch_manifest(store: TypeaheadStore, name: str) -> TypeaheadManifest:
    """Read a manifest of a store.

    Raises:
        OSError, ValueError: it is missing or damaged.
    """
    return TypeaheadManifest.from_bytes(store.fetch(name, manifest.SUFFIX).read_bytes(), name)


def is_removed(removed: bytes, number: int) -> bool:
    """Whether a number is in a bitmap of a manifest."""
    byte = number >> 3
    return byte < len(removed) and bool(removed[byte] >> (number & 7) & 1)


def live_shops(shops: int, removed: bytes) -> Bools:
    """For each number whether its shop is still current."""
    return ~unpack_bits(np.frombuffer(removed, np.uint8), shops)


def check_file(path: Path) -> None:
    """Compare a file's hash with its name; while inode, size and time are the same, so are its bytes.

    Raises:
        OSError, ValueError: it can't be read, or is damaged.
    """
    found = path.stat()
    _check(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=_CHECKED)
def _check(path: Path, inode: int, size: int, changed_ns: int) -> None:
    """As `check_file`; the other arguments make the cache miss for a changed file."""
    del inode, size, changed_ns
    if file_hash(path) != path.stem:
        raise ValueError("a segment of the typeahead is damaged")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def damaged_files(
    store: TypeaheadStore, manifest_name: str, check: Callable[[], None] = lambda: None
) -> tuple[str, ...]:
    """The files of a manifest, itself included, that are missing or damaged; reads all of them.

    `check` is called before each file; its errors are raised.

    Raises:
        SinkError: the store failed.
    """
    try:
        found = fetch_manifest(store, manifest_name)
    except (OSError, ValueError):
        return (f"{manifest_name}{manifest.SUFFIX}",)
    damaged: list[str] = []
    for name in found.files():
        check()
        try:
            is_whole = file_hash(store.fetch(name, segment.SUFFIX)) == name
        except (OSError, ValueError):
            is_whole = False
        if not is_whole:
            damaged.append(f"{name}{segment.SUFFIX}")
    return tuple(damaged)
