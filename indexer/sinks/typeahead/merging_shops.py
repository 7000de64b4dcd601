"""Merges the shops of segments: their new numbers, and all arrays with an entry for each shop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from index_mappings.typeahead.segment import POSTING_BITS
from indexer.sinks.typeahead.arrays import MARKS, Bools, Ints, Items, heads_of, inverted, pack_bits, spans, unpack_bits
from indexer.sinks.typeahead.segment_file import Contents, Spill

# The new number of a removed shop, and of a text or category that no current shop has.
GONE: Final = -1
# The number of shops whose lists are in memory together.
_BLOCK: Final = 8_000

# Converts the items of an input's lists to those of the result.
_Renumber = Callable[[int, Items], Items]


class MergedShops:
    """The shops of a merge.

    Attributes:
        count: their number.
        numbers: for each input the new number of each shop; GONE if it is removed.
        countries, categories: as in `Contents`.
    """

    def __init__(self, inputs: Sequence[Contents], live: Sequence[Bools]) -> None:
        """Number the shops; `live` is for each input whether each shop is current."""
        self._inputs = inputs
        former = [np.flatnonzero(flags).astype(np.int32) for flags in live]
        ids = np.concatenate([_ids(found.arrays, numbers) for found, numbers in zip(inputs, former, strict=True)])
        popularities = np.concatenate(
            [found.arrays["popularities"][numbers] for found, numbers in zip(inputs, former, strict=True)]
        )
        sources = np.repeat(np.arange(len(inputs), dtype=np.int32), list(map(len, former)))
        order = np.lexsort((ids, -popularities))
        self.count = len(order)
        self._source_of, self._former_of = sources[order], np.concatenate(former)[order]
        self._popularities, self._by_id = popularities[order], np.argsort(ids[order]).astype(np.int32)
        self._positions = [np.flatnonzero(self._source_of == source) for source in range(len(inputs))]
        self.numbers = [np.full(len(flags), GONE, np.int32) for flags in live]
        for numbers, positions in zip(self.numbers, self._positions, strict=True):
            numbers[self._former_of[positions]] = positions
        self.countries = (
            "",
            *sorted({code for found, flags in zip(inputs, live, strict=True) for code in _named(found, flags)}),
        )
        self.categories = tuple(
            sorted({slug for found, flags in zip(inputs, live, strict=True) for slug in _carried(found, flags)})
        )

    def arrays(self, texts: Sequence[Ints], spill: Callable[[str], Spill]) -> dict[str, Items | Spill]:
        """All arrays of shops.

        `texts` is for each input the new number of each text; `spill` creates an array in a file.
        """
        slugs = {slug: number for number, slug in enumerate(self.categories)}
        tables = [np.array([slugs.get(slug, GONE) for slug in found.categories], np.int32) for found in self._inputs]

        def own(source: int, items: Items) -> Items:
            renumbered: Items = texts[source][items >> POSTING_BITS] << POSTING_BITS | items & MARKS
            return renumbered

        def categories(source: int, items: Items) -> Items:
            return tables[source][items]

        def same(_: int, items: Items) -> Items:
            return items

        arrays: dict[str, Items | Spill] = {"popularities": self._popularities, "by_id": self._by_id}
        carried: list[Items] = [np.zeros(0, np.int32)]
        heads = self._lists("own_category_heads", "own_categories", categories, carried.append)
        items = np.concatenate(carried)
        arrays |= {"own_category_heads": heads, "own_categories": items}
        arrays["category_heads"], arrays["category_shops"] = inverted(heads, items, len(self.categories))
        for heads_name, name, renumber in (
            ("own_heads", "own", own),
            ("shown_ends", "shown", same),
            ("id_ends", "ids", same),
        ):
            spilt = arrays[name] = spill(name)
            arrays[heads_name] = self._lists(heads_name, name, renumber, spilt.append)
        for name in ("markets", "known"):
            spilt = arrays[name] = spill(name)
            for country in self.countries:
                spilt.append(pack_bits(self._passing(name, country)))
        return arrays

    def _passing(self, name: str, country: str) -> Bools:
        """For each shop whether it is in the bitmap of a country."""
        bits = np.zeros(self.count, np.bool_)
        for found, positions in zip(self._inputs, self._positions, strict=True):
            row = found.countries.index(country) if country in found.countries else 0
            bitmaps = found.arrays[name].reshape(len(found.countries), -1)
            bits[positions] = unpack_bits(bitmaps[row], found.shops)[self._former_of[positions]]
        return bits

    def _lists(self, heads_name: str, name: str, renumber: _Renumber, append: Callable[[Items], None]) -> Items:
        """Append the lists of all shops in the new order. Returns their heads."""
        counts: list[Items] = [np.zeros(0, np.int64)]
        for low in range(0, self.count, _BLOCK):
            sources, former = self._source_of[low : low + _BLOCK], self._former_of[low : low + _BLOCK]
            starts, lengths = np.empty(len(sources), np.int64), np.empty(len(sources), np.int64)
            chosen = {source: np.flatnonzero(sources == source) for source in np.unique(sources).tolist()}
            for source, positions in chosen.items():
                heads = self._inputs[source].arrays[heads_name]
                starts[positions] = heads[former[positions]]
                lengths[positions] = heads[former[positions] + 1] - starts[positions]
            heads = heads_of(lengths, np.int64)
            items = np.empty(int(heads[-1]), self._inputs[0].arrays[name].dtype)
            for source, positions in chosen.items():
                found = self._inputs[source].arrays[name][spans(starts[positions], lengths[positions])]
                items[spans(heads[:-1][positions], lengths[positions])] = renumber(source, found)
            append(items)
            counts.append(lengths)
        return heads_of(np.concatenate(counts), self._inputs[0].arrays[heads_name].dtype.type)


def _ids(arrays: Mapping[str, Items], numbers: Ints) -> Items:
    """The ids of some shops."""
    starts, ends = arrays["id_ends"][numbers].tolist(), arrays["id_ends"][numbers + 1].tolist()
    ids = arrays["ids"].tobytes()
    return np.array([ids[start:end] for start, end in zip(starts, ends, strict=True)], np.bytes_)


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
