"""Opens segments: maps them into memory, checks them, and shares them between the stamps that name them.

No array of a segment may point outside another one, because the kernel checks no bounds (E3).
"""

import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
import orjson

from index_mappings.documents import CategoryEntry
from shop_directory.typeahead.kernel import segments
from shop_directory.typeahead.kernel.arrays import NOTHING, SAMPLED, Array, read_only
from shop_directory.typeahead.kernel.segments import FILTERS, TIER_BITS
from shop_directory.typeahead.kernel.suggest import BEGUN, suggest
from shop_directory.typeahead.segment import (
    ARRAYS,
    BLOCK,
    KEY,
    LACKING,
    POSTING_BITS,
    Header,
    read_header,
    segment_path,
)
from shop_directory.typeahead.suggestions import SegmentCutError, SuggestedShop, Suggestion
from shop_directory.words.categories import CategoryTable

# The requests of other workers need processors too.
_MAX_THREADS: Final = 4
# The maximum number of cached suggestions of a segment: some 30 MB.
_CACHED: Final = 49_152
# Smaller files are read, because truncating a mapped file kills the process that reads it.
_MAPPED_BYTES: Final = 16 * 1024**2
_TIER: Final = (1 << TIER_BITS) - 1
_LAST_LETTER: Final = 0x10FFFF
_WORD: Final = 32
# The filters of a request that has none, for one segment.
_EVERYWHERE: Final = read_only(np.zeros(FILTERS, np.int64))

SegmentArrays = Mapping[str, np.ndarray[Any, Any]]


class MappedSegment:
    """One segment, in memory or mapped into it; its number of shops includes removed ones."""

    def __init__(self, path: Path) -> None:
        """Read or map a segment, and check its hash and its arrays; OSError, or ValueError if it is damaged or none."""
        data = _read(path)
        if sha256(data).hexdigest() != path.stem:
            raise ValueError("a segment of the typeahead is damaged")
        header = read_header(data)
        parts: SegmentArrays = {
            name: np.frombuffer(data, np.dtype(dtype), header.parts[name].size, header.parts[name].start)
            for name, dtype in ARRAYS.items()
        }
        check_bounds(header, parts)
        self.bytes = len(data)
        self._name = path.name
        self._mapped = data.obj if isinstance(data.obj, mmap.mmap) else None
        self.shops = header.shops
        # By the kernel's entries.
        self.cache: dict[int, Suggestion] = {}
        samples = np.concatenate([parts[name][::SAMPLED] for name in ("firsts", "firsts_0", "firsts_1")])
        self._parts = {**parts, "samples": samples}
        # A table with only this segment, no shop of which is removed.
        self._table = read_only(np.array(self.row(NOTHING), np.int64))
        self._countries = {country: number for number, country in enumerate(header.countries)}
        self._categories = {slug: number for number, slug in enumerate(header.categories)}

    def row(self, removed: Array) -> list[int]:
        """The row of a table of segments; the segment and `removed`, a bitmap of shops, must outlive the table."""
        return addresses((*(self._parts[name] for name in segments.ARRAYS), removed))

    def sellers(self, country: str) -> list[int]:
        """The filters of a request with a country, an upper-case ISO code."""
        number, words = self._countries.get(country, 0), -(-self.shops // _WORD)
        return addresses(self._parts[name][number * words : (number + 1) * words] for name in ("markets", "known"))

    def passing(self, countries: Sequence[str], categories: Sequence[str], prefixes: Sequence[str] = ()) -> Array:
        """Bitmap of the shops that pass filters, in int32 words; empty without a filter.

        The shops sell in one of the countries, carry one of the categories, if any, and have no key with a prefix.
        """
        words = -(-self.shops // _WORD)
        if not countries and not categories and not prefixes:
            return NOTHING
        bits = np.full(words, -1, np.int32)
        if countries:
            rows = [self._countries.get(country, 0) for country in countries]
            bits &= np.bitwise_or.reduce(self._parts["markets"].reshape(len(self._countries), words)[rows])
        if categories:
            numbers = [number for slug in categories if (number := self._categories.get(slug)) is not None]
            heads, carrying = self._parts["category_heads"], self._parts["category_shops"]
            shops = [carrying[heads[number] : heads[number + 1]] for number in numbers]
            bits &= _bitmap(np.concatenate(shops) if shops else NOTHING, words)
        for prefix in prefixes:
            if (begun := self._shops_with_key_prefix(prefix)).size:
                bits &= ~_bitmap(begun, words)
        return read_only(bits)

    def domains(self, removed: Array, start: int, stop: int) -> tuple[int, list[str]]:
        """The number of shops that are not removed, and the domains of those from one position to another.

        `removed` is the bitmap of the removed shops in int32 words. Raises as `best`.
        """
        # Not with `count`: what numpy adds to an empty bitmap is uninitialized memory.
        bits = np.unpackbits(removed.view(np.uint8), bitorder="little")
        current = np.delete(np.arange(self.shops), np.flatnonzero(bits))
        domains = [self._shown(number).domain for number in current[start:stop].tolist()]
        self.refuse_cut()
        return len(current), domains

    def is_cut(self) -> bool:
        """Whether the mapped file was cut short: the rest of its last page reads as zeros."""
        return self._mapped is not None and self._mapped.size() != self.bytes

    def refuse_cut(self) -> None:
        """Raise between reading from the file and answering, if the file was cut short (E3)."""
        if self.is_cut():
            raise SegmentCutError(f"the file {self._name} of the typeahead is damaged")

    def _shops_with_key_prefix(self, text: str) -> Array:
        """The numbers of the shops with a key that begins with a text, in any order, with repeats."""
        query = np.frombuffer(text.encode("utf-32-le"), np.int32)
        first, end = suggest(self._table, _EVERYWHERE, query, 0, NOTHING, 1, BEGUN).tolist()
        heads, postings = self._parts["heads"], self._parts["postings"]
        found = postings[heads[first] : heads[end]]
        numbers: Array = found[found & KEY != 0] >> POSTING_BITS
        return numbers

    def category(self, slug: str) -> int | None:
        """The number of a category; None if no shop of this segment carries it."""
        return self._categories.get(slug)

    def suggestion(self, entry: int) -> Suggestion:
        """The suggestion of an entry of the kernel, which is cached."""
        if len(self.cache) >= _CACHED:
            self.cache.clear()
        suggestion = self.cache[entry] = Suggestion(self._shown(entry >> TIER_BITS), entry & _TIER)
        return suggestion

    def _shown(self, number: int) -> SuggestedShop:
        begin, end = self._parts["shown_ends"][number : number + 2]
        return SuggestedShop(*orjson.loads(self._parts["shown"][begin:end].tobytes()))


class DamagedSegmentError(ValueError):
    """A segment, whose file has this name, is damaged."""

    def __init__(self, name: str, reason: ValueError) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name


class SegmentPool:
    """Open segments by name, each mapped once, and the newest table of categories, shared by several typeaheads."""

    def __init__(self) -> None:
        self._open: WeakValueDictionary[str, MappedSegment] = WeakValueDictionary()
        self._table = CategoryTable(())
        self._lock = Lock()

    def open(self, directory: Path, names: Sequence[str]) -> list[MappedSegment]:
        """The segments of these names, those that are not open yet read at the same time. Thread-safe.

        Raises as `MappedSegment`; DamagedSegmentError is a ValueError.
        """
        with self._lock:
            known = {name: segment for name in names if (segment := self._open.get(name)) and not segment.is_cut()}
            unread = [name for name in dict.fromkeys(names) if name not in known]
            with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as threads:
                known |= zip(unread, threads.map(partial(_mapped, directory), unread), strict=True)
            self._open.update(known)
        return [known[name] for name in names]

    def categories(self, entries: tuple[CategoryEntry, ...]) -> CategoryTable:
        """The table of a manifest's categories, shared by stamps that differ in shops only. Thread-safe."""
        with self._lock:
            if self._table.entries != entries:
                self._table = CategoryTable(entries)
            return self._table


def _mapped(directory: Path, name: str) -> MappedSegment:
    path = segment_path(directory, name)
    try:
        return MappedSegment(path)
    except ValueError as error:
        raise DamagedSegmentError(path.name, error) from error


def _bitmap(numbers: Array, words: int) -> Array:
    bits = np.zeros(32 * words, np.bool_)
    bits[numbers] = True
    return np.packbits(bits, bitorder="little").view(np.int32)


def _read(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < _MAPPED_BYTES:
            return memoryview(file.read())
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def addresses(listed: Iterable[np.ndarray[Any, Any]]) -> list[int]:
    """Address and size of each array, as a table of segments has them."""
    return [number for array in listed for number in (array.ctypes.data, array.size)]


def check_bounds(header: Header, parts: SegmentArrays) -> None:
    """Check all arrays of a segment; ValueError, naming it, if the header or an array is damaged."""
    shops, texts = header.shops, len(parts["firsts"])
    categories, countries = len(header.categories), len(header.countries)
    postings, letters = len(parts["postings"]), len(parts["letters"])
    if header.shops < 0 or not countries or header.countries[0] or len(set(header.countries)) < countries:
        raise ValueError("the header of a segment is damaged")
    for name, lists, items in (
        ("offsets", texts, letters),
        ("heads", texts, postings),
        ("own_heads", shops, postings),
        ("category_heads", categories, len(parts["category_shops"])),
        ("own_category_heads", shops, len(parts["own_categories"])),
        ("shown_ends", shops, len(parts["shown"])),
        ("id_ends", shops, len(parts["ids"])),
    ):
        heads = parts[name]
        # They ascend from 0 to the number of items, one for each list and one for the end.
        if len(heads) != lists + 1 or heads[0] != 0 or heads[-1] != items or bool((heads[1:] < heads[:-1]).any()):
            raise _damaged(name)
    marks = 1 << POSTING_BITS
    for name, least, end in (
        ("letters", 1, _LAST_LETTER + 1),
        ("postings", 0, shops * marks),
        ("own", 0, texts),
        ("category_shops", 0, shops),
        ("own_categories", 0, categories),
        ("by_id", 0, shops),
        *((f"rests_{lacking}", 0, texts) for lacking in LACKING),
    ):
        values = parts[name]
        if len(values) and (int(values.min()) < least or int(values.max()) >= end):
            raise _damaged(name)
    bitmap = -(-shops // _WORD) * countries
    for name, size in (
        ("own", postings),
        ("own_marks", postings),
        ("best_leading", 2 * (texts // BLOCK)),
        ("best_key", 2 * (texts // BLOCK)),
        *((f"firsts_{lacking}", len(parts[f"rests_{lacking}"])) for lacking in LACKING),
        *((f"best_{lacking}", 2 * (len(parts[f"rests_{lacking}"]) // BLOCK)) for lacking in LACKING),
        ("markets", bitmap),
        ("known", bitmap),
        ("popularities", shops),
        ("by_id", shops),
    ):
        if len(parts[name]) != size:
            raise _damaged(name)


def _damaged(name: str) -> ValueError:
    return ValueError(f"the array {name} of a segment is damaged")
