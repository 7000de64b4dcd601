"""A request as the kernel takes it, and the memory in which it is answered."""

from typing import Final, NamedTuple

from index_mappings.tiers import SUGGEST_CUT
from service.search.typeahead.kernel.arrays import Array, Carried, Firsts, Lookup, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.two_typos import CELLS, MAX_ERRORS

# Flags of a request: its best tier has one shop only; the query has a dot; it has no word; search only the tiers from
# two errors down; search only for what a misspelt query may mean (M6).
SHORT: Final = 1
WITH_DOT: Final = 2
PUNCTUATION: Final = 4
TWO_ERRORS: Final = 8
NEAR: Final = 16

# Capacity of `Scratch.ranges`.
_RANGES: Final = 192
# Rows of the edit distance to the longest query.
_DEPTH: Final = SUGGEST_CUT + MAX_ERRORS + 1
SCRATCH: Final = 5 * _RANGES + (CELLS + 3) * _DEPTH


class Request(NamedTuple):
    """A request, as the kernel takes it.

    Attributes:
        query: the query's forms, and its words if there are several, as code points, each followed by a zero.
        bounds: where in `query` each of these begins and ends.
        forms: the number of forms.
        meant: empty unless one of several words means a category; then, for each word, the numbers of the categories
            that it means, as a list of lists: where each begins, the last one's end, then the numbers, ascending.
        carried: the categories of shops.
        passing: bitmap of the shops that pass the filter; empty without a filter.
        known: bitmap of the shops that are known to sell in the country; empty without a country.
        flags: SHORT, WITH_DOT, PUNCTUATION, TWO_ERRORS, NEAR.
    """

    query: Array
    bounds: Ranges
    forms: int
    meant: Array
    carried: Carried
    passing: Array
    known: Array
    flags: int


@inner
def texts_of(items: Array, longs: Firsts, extents: Firsts, samples: Firsts, removed: Array, barred: int) -> Texts:
    """The texts of a segment. Arguments as of `suggest`."""
    # In the order of ARRAYS. Passing one view of the whole file takes a third of the time of passing all arrays.
    return Texts(
        Lookup(
            items[extents[0] : extents[1]],
            items[extents[2] : extents[3]],
            longs[extents[4] : extents[5]],
            items[extents[6] : extents[7]],
            longs[extents[8] : extents[9]],
            items[extents[10] : extents[11]],
            longs[extents[12] : extents[13]],
            samples,
        ),
        items[extents[14] : extents[15]],
        items[extents[16] : extents[17]],
        items[extents[18] : extents[19]],
        items[extents[20] : extents[21]],
        items[extents[22] : extents[23]],
        items[extents[24] : extents[25]],
        items[extents[26] : extents[27]],
        items[extents[28] : extents[29]],
        removed,
        barred,
    )


@inner
def scratch_of(memory: Array) -> Scratch:
    """Divide SCRATCH items of memory."""
    rows, path, walk = 5 * _RANGES, 5 * _RANGES + CELLS * _DEPTH, 5 * _RANGES + (CELLS + 1) * _DEPTH
    return Scratch(
        memory[:rows].reshape((_RANGES, 5)),
        memory[rows:path].reshape((_DEPTH, CELLS)),
        memory[path:walk],
        memory[walk:SCRATCH].reshape((_DEPTH, 2)),
    )


@inner
def bounds_of(query: Array, memory: Array) -> Ranges:
    """Where each of the query's texts begins and ends, written into `memory`, which has twice the query's size."""
    bounds = memory.reshape((len(query), 2))
    count = start = 0
    for position in range(len(query)):
        if query[position] == 0:
            bounds[count, 0], bounds[count, 1] = start, position
            count += 1
            start = position + 1
    return bounds[:count]
