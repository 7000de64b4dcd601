"""Sorted texts of shops, mapped into memory, and what they say to a key press (`index_mappings.typeahead`, M9)."""

import mmap
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from index_mappings.forms import QueryForms
from index_mappings.typeahead import Part, read_table
from service.search.protocol import SuggestedShop, Suggestion
from service.search.typeahead_kernel.arrays import ARRAYS, Array
from service.search.typeahead_kernel.key_press import ANY_COUNTRY, TIER_BITS, suggest
from service.search.typeahead_kernel.places import SAMPLED

# How many suggestions of a file are kept, some 30 MB.
_SHOWN: Final = 49_152
_TIER: Final = (1 << TIER_BITS) - 1
# The end of a text. Folding leaves none in a text itself.
_END: Final = "\0"


class TextsFile:
    """One file of texts, mapped into memory."""

    def __init__(self, path: Path) -> None:
        """Open a file and look through all of it.

        Raises:
            OSError, ValueError: it is not there, or not as it was written.
        """
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        told, parts = read_table(data)
        self.items = np.frombuffer(data, np.int32, len(data) // 4)
        self.longs = np.frombuffer(data, np.int64, len(data) // 8)
        self.places = np.array([place for name in ARRAYS for place in _places(parts[name])], np.int64)
        firsts = (self.longs[slice(*_places(parts[name]))][::SAMPLED] for name in ("firsts", "firsts_0", "firsts_1"))
        self.samples = np.concatenate(tuple(firsts))
        self.gone = self.items[slice(*_places(parts["gone"]))]
        self._shown = data[parts["shown"].start :]
        self._ends = data[slice(*_bytes(parts["shown_ends"]))].cast("q")
        self._countries = {country: number for number, country in enumerate(told["countries"])}
        # By the entries of `suggest`.
        self.kept: dict[int, Suggestion] = {}

    def number(self, country: str) -> int:
        """The number of a country, which may be one that no shop names."""
        return self._countries.get(country, 0)

    def suggestion(self, entry: int) -> Suggestion:
        """What an entry of `suggest` says."""
        kept = self.kept.get(entry)
        if kept is None:
            if len(self.kept) >= _SHOWN:
                self.kept.clear()
            number = entry >> TIER_BITS
            shop = SuggestedShop(*orjson.loads(self._shown[self._ends[number] : self._ends[number + 1]]))
            kept = self.kept[entry] = Suggestion(shop, entry & _TIER)
        return kept


class Typeahead:
    """The shops of one generation as of one sequence."""

    def __init__(self, base: TextsFile, changes: TextsFile | None) -> None:
        """Put together.

        Args:
            base: most shops, without those that the changes replace.
            changes: those written since.
        """
        self._base = base
        # The base's file may be another stamp's as well, with other changes.
        self._gone = base.gone if changes is None else changes.gone
        self._changes = changes

    def best(self, forms: QueryForms, country: str | None, limit: int) -> list[Suggestion]:
        """The best shops of all tiers, without what needs categories or is two typing errors away.

        Args:
            forms: the query, of at least one word.
            country: an upper-case ISO code, or None.
            limit: how many at most.
        """
        texts = forms.texts if len(forms.words) == 1 else (*forms.texts, *forms.words)
        asked = np.frombuffer(f"{_END.join(texts)}{_END}".encode("utf-32-le"), np.int32)
        count = len(forms.texts)
        found = _suggested(self._base, self._gone, asked, count, country, limit)
        if self._changes is None:
            return found
        found += _suggested(self._changes, self._changes.gone[:0], asked, count, country, limit)
        # Each is in order; so are both, as no two shops have one id (M1).
        found.sort(key=Suggestion.order)
        return found[:limit]


def _suggested(  # noqa: PLR0917 - a file and what is asked of it
    file: TextsFile, gone: Array, asked: Array, forms: int, country: str | None, limit: int
) -> list[Suggestion]:
    number = ANY_COUNTRY if country is None else file.number(country)
    entries = suggest(file.items, file.longs, file.places, file.samples, gone, asked, forms, limit, number).tolist()
    kept, read = file.kept, file.suggestion
    return [kept.get(entry) or read(entry) for entry in entries]


def _places(part: Part) -> tuple[int, int]:
    """Where an array begins and ends, counted in items as large as its own."""
    size = np.dtype(part.dtype).itemsize
    return part.start // size, part.start // size + part.size


def _bytes(part: Part) -> tuple[int, int]:
    return part.start, part.start + part.size * np.dtype(part.dtype).itemsize


def ready() -> None:
    """Have the machine code made, or read from where it is kept: takes seconds, or a fifth of one."""
    nothing = bytes(8)
    items, longs = np.frombuffer(nothing, np.int32), np.frombuffer(nothing, np.int64)
    suggest(
        items,
        longs,
        np.zeros(2 * len(ARRAYS), np.int64),
        np.zeros(0, np.int64),
        items[:0],
        items[:1],
        1,
        1,
        ANY_COUNTRY,
    )


if __name__ == "__main__":
    ready()
