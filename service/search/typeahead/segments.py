"""Segments as the service reads them: mapped into memory, checked as a whole, shared by the stamps that name them."""

import mmap
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import orjson

from index_mappings.typeahead.segment import ARRAYS, Header, read_header, segment_path
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
_TIER: Final = (1 << TIER_BITS) - 1
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


class Segment:
    """One segment, mapped into memory.

    Attributes:
        bytes: its size.
        shops: how many it holds.
        cache: suggestions by the kernel's entries.
    """

    def __init__(self, path: Path) -> None:
        """Map a segment and check all of it: that it is what its name says, and that no array points outside.

        Raises:
            OSError: it cannot be read.
            ValueError: it is damaged, or no segment.
        """
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
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
        self, removed: Array, asked: Array, forms: int, passing: Array, wanted: int, flags: int
    ) -> list[Suggestion]:
        """The best shops one or two typing errors away.

        Args:
            removed: as of `best`, like those that are not described here.
            asked: see above.
            forms: see above.
            passing: as `passing` returns it.
            wanted: see above.
            flags: see above.
        """
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
            wanted,
            ANY_COUNTRY,
            flags | NEAR,
        ).tolist()
        return [self.cache.get(entry) or self._suggestion(entry) for entry in entries]

    def passing(self, country: str | None, category: str | None) -> Array:
        """Bitmap of the shops that pass both filters, in int32 words; empty where there is none."""
        words = -(-self.shops // 32)
        if country is None and category is None:
            return NOTHING
        bits = np.full(words, -1, np.int32)
        if country is not None:
            start = self._countries.get(country, 0) * words
            bits &= self._parts["markets"][start : start + words]
        if category is not None:
            carried = np.zeros(32 * words, np.bool_)
            if (number := self._categories.get(category)) is not None:
                heads = self._parts["category_heads"]
                carried[self._parts["category_shops"][heads[number] : heads[number + 1]]] = True
            bits &= np.packbits(carried, bitorder="little").view(np.int32)
        return read_only(bits)

    def category(self, slug: str) -> int | None:
        """The number of a category; None where no shop of this segment carries it."""
        return self._categories.get(slug)

    def _suggestion(self, entry: int) -> Suggestion:
        if len(self.cache) >= _CACHED:
            self.cache.clear()
        number = entry >> TIER_BITS
        ends = self._parts["shown_ends"]
        shown = self._parts["shown"][ends[number] : ends[number + 1]].tobytes()
        suggestion = self.cache[entry] = Suggestion(SuggestedShop(*orjson.loads(shown)), entry & _TIER)
        return suggestion


class SegmentPool:
    """Open segments by name: a segment is mapped once however many stamps name it, and closed with the last one."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: WeakValueDictionary[str, Segment] = WeakValueDictionary()
        self._lock = Lock()

    def open(self, directory: Path, name: str) -> Segment:
        """The segment of a name; may be called from threads.

        Raises:
            OSError, ValueError: as `Segment`.
        """
        with self._lock:
            segment = self._open.get(name)
            if segment is None:
                segment = self._open[name] = Segment(segment_path(directory, name))
            return segment


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


def _array(data: memoryview, header: Header, name: str) -> np.ndarray[Any, Any]:
    part = header.parts[name]
    return np.frombuffer(data, np.dtype(ARRAYS[name]), part.size, part.start)


def _places(header: Header, name: str) -> tuple[int, int]:
    """Where an array begins and ends, in items of its own size."""
    part, size = header.parts[name], np.dtype(ARRAYS[name]).itemsize
    return part.start // size, part.start // size + part.size
