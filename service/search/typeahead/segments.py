"""Segments as the service reads them: mapped into memory, checked as a whole, shared by the stamps that name them."""

import mmap
import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import orjson

from index_mappings.documents import CategoryEntry
from index_mappings.forms import infixes_of, labels_of
from index_mappings.typeahead.segment import (
    ARRAYS,
    KEY,
    NAME,
    POSTING_BITS,
    WORD,
    Header,
    read_header,
    segment_path,
)
from service.search.categories import CategoryTable
from service.search.clauses import Clause, meets
from service.search.protocol import SuggestedShop, Suggestion
from service.search.typeahead.checks import check_bounds
from service.search.typeahead.kernel import arrays
from service.search.typeahead.kernel.arrays import Array
from service.search.typeahead.kernel.lookup import SAMPLED
from service.search.typeahead.kernel.ranked import TIER_BITS
from service.search.typeahead.kernel.request import NEAR
from service.search.typeahead.kernel.suggest import ANY_COUNTRY, suggest

# How many suggestions of a segment are cached: some 30 MB.
_CACHED: Final = 49_152
# A smaller file is read: one that is cut short while it is mapped ends the process when it is looked into.
_MAPPED_BYTES: Final = 16 * 1024**2
_TIER: Final = (1 << TIER_BITS) - 1
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


class Segment:
    """One segment, in memory or mapped into it.

    Attributes:
        bytes: its size.
        shops: how many it holds.
        cache: suggestions by the kernel's entries.
    """

    def __init__(self, path: Path) -> None:
        """Read or map a segment, and check all of it: that it is what its name says, and that no array points outside.

        Raises:
            OSError: it cannot be read.
            ValueError: it is damaged, or no segment.
        """
        data = _read(path)
        if sha256(data).hexdigest() != path.stem:
            raise ValueError("a segment of the typeahead is damaged")
        header = read_header(data)
        parts = {name: _array(data, header, name) for name in ARRAYS}
        check_bounds(header, parts)
        self.bytes = len(data)
        self.shops = header.shops
        self.cache: dict[int, Suggestion] = {}
        self._items = np.frombuffer(data, np.int32, len(data) // 4)
        self._longs = np.frombuffer(data, np.int64, len(data) // 8)
        places = [place for name in arrays.ARRAYS for place in _places(header, name)]
        self._places = read_only(np.array(places, np.int64))
        sampled = (parts[name][::SAMPLED] for name in ("firsts", "firsts_0", "firsts_1"))
        self._samples = read_only(np.concatenate(tuple(sampled)))
        self._parts = parts
        self._countries = {country: number for number, country in enumerate(header.countries)}
        self._slugs = header.categories
        self._categories = {slug: number for number, slug in enumerate(header.categories)}

    def best(  # noqa: PLR0917 - what the machine code is given, in its order
        self, removed: Array, asked: Array, forms: int, meant: Array, wanted: int, country: str | None, flags: int
    ) -> list[Suggestion]:
        """The best shops for a suggest request.

        Args:
            removed: bitmap of the shops that are gone, as int32 words.
            asked: as of the kernel's `suggest`, like all that follow but the country.
            forms: see above.
            meant: see above.
            wanted: see above.
            country: an upper-case ISO code, or None.
            flags: see above.
        """
        number = ANY_COUNTRY if country is None else self._countries.get(country, 0)
        entries = suggest(
            self._items,
            self._longs,
            self._places,
            self._samples,
            removed,
            asked,
            forms,
            meant,
            NOTHING,
            wanted,
            number,
            flags,
        ).tolist()
        cache, read = self.cache, self._suggestion
        return [cache.get(entry) or read(entry) for entry in entries]

    def near(  # noqa: PLR0917 - what the machine code is given, in its order
        self,
        removed: Array,
        asked: Array,
        forms: int,
        passing: Array,
        wanted: int,
        flags: int,
        matched: Clause | None,
    ) -> list[Suggestion]:
        """The best shops of the tiers 3 and 2 (M6).

        Args:
            removed: as of the kernel's `suggest`, like all that follow but the last one.
            asked: see above.
            forms: see above.
            passing: see above.
            wanted: see above.
            flags: see above.
            matched: what no shop may meet; None where any may.
        """
        most = wanted
        while True:
            entries = suggest(
                self._items,
                self._longs,
                self._places,
                self._samples,
                removed,
                asked,
                forms,
                NOTHING,
                passing,
                most,
                ANY_COUNTRY,
                flags | NEAR,
            ).tolist()
            found = entries
            if matched is not None:
                found = [entry for entry in entries if not meets(self._evidence(entry >> TIER_BITS), matched)]
            if len(found) >= wanted or len(entries) < most:
                return [self.cache.get(entry) or self._suggestion(entry) for entry in found[:wanted]]
            most *= 4

    def passing(self, country: str | None, category: str | None, begun: Sequence[str] = ()) -> Array:
        """Bitmap of shops, in int32 words; empty where it holds all.

        Args:
            country: whose filter they pass; None for any.
            category: a slug that they carry; None for any.
            begun: texts with which none of their keys begins.
        """
        words = -(-self.shops // 32)
        if country is None and category is None and not begun:
            return NOTHING
        bits = np.full(words, -1, np.int32)
        if country is not None:
            start = self._countries.get(country, 0) * words
            bits &= self._parts["markets"][start : start + words]
        if category is not None:
            number = self._categories.get(category)
            heads, carrying = self._parts["category_heads"], self._parts["category_shops"]
            bits &= _bitmap(NOTHING if number is None else carrying[heads[number] : heads[number + 1]], words)
        for text in begun:
            bits &= ~_bitmap(self._begun(text), words)
        return read_only(bits)

    def _begun(self, text: str) -> Array:
        """The numbers of the shops with a key that begins with a text, in any order, some repeated."""
        heads, postings = self._parts["heads"], self._parts["postings"]
        texts = range(len(heads) - 1)
        first = bisect_left(texts, text, key=self._text)
        last = bisect_right(texts, text, lo=first, key=lambda number: self._text(number)[: len(text)])
        found = postings[heads[first] : heads[last]]
        numbers: Array = found[found & KEY != 0] >> POSTING_BITS
        return numbers

    def _evidence(self, number: int) -> dict[str, tuple[str, ...]]:
        """What tells whether a shop matches a query of find_shop, by the fields of its document."""
        heads = self._parts["own_heads"]
        marked = [
            (self._text(own >> POSTING_BITS), own)
            for own in self._parts["own"][heads[number] : heads[number + 1]].tolist()
        ]
        keys, words, names = (tuple(text for text, marks in marked if marks & mark) for mark in (KEY, WORD, NAME))
        begin, end = self._parts["own_category_heads"][number : number + 2]
        domain = self._shown(number).domain
        return {
            "keys": keys,
            "words": words,
            "infixes": infixes_of(names, domain),
            "labels": labels_of(domain),
            "categories": tuple(self._slugs[carried] for carried in self._parts["own_categories"][begin:end]),
        }

    def _text(self, number: int) -> str:
        """A text by its number."""
        begin, end = self._parts["offsets"][number : number + 2]
        return self._parts["letters"][begin:end].tobytes().decode("utf-32-le")

    def category(self, slug: str) -> int | None:
        """The number of a category; None where no shop of this segment carries it."""
        return self._categories.get(slug)

    def _suggestion(self, entry: int) -> Suggestion:
        if len(self.cache) >= _CACHED:
            self.cache.clear()
        suggestion = self.cache[entry] = Suggestion(self._shown(entry >> TIER_BITS), entry & _TIER)
        return suggestion

    def _shown(self, number: int) -> SuggestedShop:
        begin, end = self._parts["shown_ends"][number : number + 2]
        return SuggestedShop(*orjson.loads(self._parts["shown"][begin:end].tobytes()))


class DamagedSegmentError(ValueError):
    """A segment is damaged.

    Attributes:
        name: of its file.
    """

    def __init__(self, name: str, reason: ValueError) -> None:
        """Say which one, and why."""
        super().__init__(f"{name}: {reason}")
        self.name = name


class SegmentPool:
    """What the typeaheads of several stamps share: open segments by name, and the newest table of categories.

    A segment is mapped once however many stamps name it, and closed with the last one.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._open: WeakValueDictionary[str, Segment] = WeakValueDictionary()
        self._table = CategoryTable(())
        self._lock = Lock()

    def open(self, directory: Path, name: str) -> Segment:
        """The segment of a name; may be called from threads.

        Raises:
            OSError: as `Segment`.
            DamagedSegmentError: it is damaged, or no segment.
        """
        with self._lock:
            segment = self._open.get(name)
            if segment is None:
                path = segment_path(directory, name)
                try:
                    segment = self._open[name] = Segment(path)
                except ValueError as error:
                    raise DamagedSegmentError(path.name, error) from error
            return segment

    def categories(self, entries: tuple[CategoryEntry, ...]) -> CategoryTable:
        """The table of a manifest's categories, made once for stamps that differ in shops only."""
        with self._lock:
            if self._table.entries != entries:
                self._table = CategoryTable(entries)
            return self._table


def compile_kernel() -> None:
    """Compile the machine code, or load it from numba's cache: some seconds, or a fifth of one."""
    items, longs = read_only(np.zeros(2, np.int32)), read_only(np.zeros(1, np.int64))
    places = np.zeros(2 * len(arrays.ARRAYS), np.int64)
    # Texts of no characters, so that nothing is looked up; the types are what counts.
    own_heads = 2 * arrays.ARRAYS.index("own_heads")
    places[own_heads + 1] = 1
    suggest(items, longs, read_only(places), longs[:0], NOTHING, NOTHING, 0, NOTHING, NOTHING, 1, ANY_COUNTRY, 0)


def read_only(array: _A) -> _A:
    """The same array, not writable.

    All arrays that the machine code is given are so, as mapped ones must be: it would be compiled once more for others,
    while a request waits.
    """
    array.flags.writeable = False
    return array


NOTHING: Final = read_only(np.zeros(0, np.int32))


def _bitmap(numbers: Array, words: int) -> Array:
    """A bitmap of so many int32 words with these shops in it."""
    bits = np.zeros(32 * words, np.bool_)
    bits[numbers] = True
    return np.packbits(bits, bitorder="little").view(np.int32)


def _read(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < _MAPPED_BYTES:
            return memoryview(file.read())
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _array(data: memoryview, header: Header, name: str) -> np.ndarray[Any, Any]:
    part = header.parts[name]
    return np.frombuffer(data, np.dtype(ARRAYS[name]), part.size, part.start)


def _places(header: Header, name: str) -> tuple[int, int]:
    """Where an array begins and ends, in items of its own size."""
    part, size = header.parts[name], np.dtype(ARRAYS[name]).itemsize
    return part.start // size, part.start // size + part.size
