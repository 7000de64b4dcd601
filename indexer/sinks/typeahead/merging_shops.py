"""What a merge of segments makes of their shops: new numbers, and all arrays that have a place for each shop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from index_mappings.typeahead.segment import POSTING_BITS
from indexer.sinks.typeahead.arrays import Bools, Ints, Items, heads_of, inverted, pack_bits, spans, unpack_bits
from indexer.sinks.typeahead.segment_file import Contents, Spill

# The new number of what no current shop has.
GONE: Final = -1
# Shops whose lists are in memory at a time.
_BLOCK: Final = 8_000
_MARKS: Final = (1 << POSTING_BITS) - 1

# Of an input the items of its lists as the result has them.
_Renumber = Callable[[int, Items], Items]


class MergedShops:
    """The shops of a merge.

    Attributes:
        count: how many there are.
        numbers: of each input the new number of each shop; GONE where it is left out.
        countries, categories: as in `Contents`.
    """

    def __init__(self, inputs: Sequence[Contents], live: Sequence[Bools]) -> None:
        """Number the shops.

        Args:
            inputs: the segments.
            live: of each input whether each shop is taken.
        """
        self._inputs = inputs
        former = [np.flatnonzero(flags).astype(np.int32) for flags in live]
        ids = np.concatenate([_ids(found.arrays, kept) for found, kept in zip(inputs, former, strict=True)])
        popularities = np.concatenate(
            [found.arrays["popularities"][kept] for found, kept in zip(inputs, former, strict=True)]
        )
        sources = np.repeat(np.arange(len(inputs), dtype=np.int32), list(map(len, former)))
        order = np.lexsort((ids, -popularities))
        self.count = len(order)
        self._source_of, self._former_of = sources[order], np.concatenate(former)[order]
        self._popularities, self._by_id = popularities[order], np.argsort(ids[order]).astype(np.int32)
        self._places = [np.flatnonzero(self._source_of == source) for source in range(len(inputs))]
        self.numbers = [np.full(len(flags), GONE, np.int32) for flags in live]
        for numbers, places in zip(self.numbers, self._places, strict=True):
            numbers[self._former_of[places]] = places
        self.countries = (
            "",
            *sorted({code for found, flags in zip(inputs, live, strict=True) for code in _named(found, flags)}),
        )
        self.categories = tuple(
            sorted({slug for found, flags in zip(inputs, live, strict=True) for slug in _carried(found, flags)})
        )

    def arrays(self, texts: Sequence[Ints], spill: Callable[[str], Spill]) -> dict[str, Items | Spill]:
        """All arrays of shops.

        Args:
            texts: of each input the new number of each text.
            spill: begins an array in a file.
        """
        slugs = {slug: number for number, slug in enumerate(self.categories)}
        tables = [np.array([slugs.get(slug, GONE) for slug in found.categories], np.int32) for found in self._inputs]

        def own(source: int, items: Items) -> Items:
            renumbered: Items = texts[source][items >> POSTING_BITS] << POSTING_BITS | items & _MARKS
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
        """Of each shop whether it is in the bitmap of a country."""
        bits = np.zeros(self.count, np.bool_)
        for found, places in zip(self._inputs, self._places, strict=True):
            row = found.countries.index(country) if country in found.countries else 0
            bitmaps = found.arrays[name].reshape(len(found.countries), -1)
            bits[places] = unpack_bits(bitmaps[row], found.shops)[self._former_of[places]]
        return bits

    def _lists(self, heads_name: str, name: str, renumber: _Renumber, append: Callable[[Items], None]) -> Items:
        """Put the lists of the inputs' shops in the new order. Returns where each begins, and the last one's end."""
        counts: list[Items] = [np.zeros(0, np.int64)]
        for low in range(0, self.count, _BLOCK):
            sources, former = self._source_of[low : low + _BLOCK], self._former_of[low : low + _BLOCK]
            starts, lengths = np.empty(len(sources), np.int64), np.empty(len(sources), np.int64)
            chosen = {source: np.flatnonzero(sources == source) for source in np.unique(sources).tolist()}
            for source, places in chosen.items():
                heads = self._inputs[source].arrays[heads_name]
                starts[places] = heads[former[places]]
                lengths[places] = heads[former[places] + 1] - starts[places]
            heads = heads_of(lengths, np.int64)
            items = np.empty(int(heads[-1]), self._inputs[0].arrays[name].dtype)
            for source, places in chosen.items():
                found = self._inputs[source].arrays[name][spans(starts[places], lengths[places])]
                items[spans(heads[:-1][places], lengths[places])] = renumber(source, found)
            append(items)
            counts.append(lengths)
        return heads_of(np.concatenate(counts), self._inputs[0].arrays[heads_name].dtype.type)


def _ids(arrays: Mapping[str, Items], numbers: Ints) -> Items:
    """The ids of some shops as an array."""
    starts, ends = arrays["id_ends"][numbers].tolist(), arrays["id_ends"][numbers + 1].tolist()
    ids = arrays["ids"].tobytes()
    return np.array([ids[start:end] for start, end in zip(starts, ends, strict=True)], np.bytes_)


def _named(found: Contents, live: Bools) -> Iterator[str]:
    """The countries that a current shop names."""
    known = found.arrays["known"].reshape(len(found.countries), -1)
    current = pack_bits(live) & ~known[0]
    return (code for code, row in zip(found.countries[1:], known[1:], strict=True) if (row & current).any())


def _carried(found: Contents, live: Bools) -> Iterator[str]:
    """The categories that a current shop carries."""
    current = np.repeat(live, np.diff(found.arrays["own_category_heads"]))
    numbers = np.unique(found.arrays["own_categories"][current]).tolist()
    return (found.categories[number] for number in numbers)
