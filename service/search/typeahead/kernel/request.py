"""A request as the machine code sees it, and the memory in which it is answered."""

from typing import Final, NamedTuple

from index_mappings.tiers import SUGGEST_CUT
from service.search.typeahead.kernel.arrays import Array, Carried, Firsts, Lookup, Ranges, Scratch, Texts, inner
from service.search.typeahead.kernel.two_typos import CELLS, MOST_ERRORS

# What a request is, as bits: its first tier has one shop; it has a dot; it has no word; only the tiers from two errors
# on are asked for; what a misspelt text may have meant is asked for, and nothing else.
SHORT: Final = 1
WITH_DOT: Final = 2
PUNCTUATION: Final = 4
TWO_ERRORS: Final = 8
NEAR: Final = 16

# So many ranges are collected at a time.
_RANGES: Final = 192
# Rows of the distance to the longest text that is asked for.
_DEPTH: Final = SUGGEST_CUT + MOST_ERRORS + 1
SCRATCH: Final = 5 * _RANGES + (CELLS + 3) * _DEPTH


class Request(NamedTuple):
    """A request, as the machine code sees it.

    Attributes:
        asked: the query's forms, and its words if there are several, each followed by a zero.
        bounds: where in `asked` each of these begins and ends.
        forms: how many of them are forms.
        meant: if one of several words says a category, of each word the numbers of those that it says, as a list of
            lists: where each begins, the last one's end, then the numbers, ascending.
        carried: the categories of shops.
        passing: bitmap of the shops that pass the filter; empty without one.
        known: bitmap of those that are known to sell there; empty without a country.
        flags: SHORT, WITH_DOT, PUNCTUATION, TWO_ERRORS, NEAR.
    """

    asked: Array
    bounds: Ranges
    forms: int
    meant: Array
    carried: Carried
    passing: Array
    known: Array
    flags: int


@inner
def texts_of(items: Array, longs: Firsts, places: Firsts, samples: Firsts, removed: Array, barred: int) -> Texts:
    """The texts of a segment. Arguments as of `suggest`."""
    # By the order of ARRAYS. Passing one view of the whole file takes a third of passing all arrays.
    return Texts(
        Lookup(
            items[places[0] : places[1]],
            items[places[2] : places[3]],
            longs[places[4] : places[5]],
            items[places[6] : places[7]],
            longs[places[8] : places[9]],
            items[places[10] : places[11]],
            longs[places[12] : places[13]],
            samples,
        ),
        items[places[14] : places[15]],
        items[places[16] : places[17]],
        items[places[18] : places[19]],
        items[places[20] : places[21]],
        items[places[22] : places[23]],
        items[places[24] : places[25]],
        items[places[26] : places[27]],
        items[places[28] : places[29]],
        removed,
        barred,
    )


@inner
def scratch_of(memory: Array) -> Scratch:
    """The parts of SCRATCH items of memory."""
    rows, path, walk = 5 * _RANGES, 5 * _RANGES + CELLS * _DEPTH, 5 * _RANGES + (CELLS + 1) * _DEPTH
    return Scratch(
        memory[:rows].reshape((_RANGES, 5)),
        memory[rows:path].reshape((_DEPTH, CELLS)),
        memory[path:walk],
        memory[walk:SCRATCH].reshape((_DEPTH, 2)),
    )


@inner
def bounds_of(asked: Array, memory: Array) -> Ranges:
    """Where each of the texts begins and ends, written into memory of twice the size."""
    bounds = memory.reshape((len(asked), 2))
    count = start = 0
    for place in range(len(asked)):
        if asked[place] == 0:
            bounds[count, 0], bounds[count, 1] = start, place
            count += 1
            start = place + 1
    return bounds[:count]
