"""The segments of a request, which are passed as a table of addresses, and the order of shops of several segments.

numba takes a tenth of a microsecond and more for each array that Python passes, so one table names all arrays.
"""

from typing import Final, NamedTuple

from shop_directory.typeahead.kernel.arrays import (
    MAX_INT,
    Array,
    Bytes,
    Carried,
    Doubles,
    Longs,
    Lookup,
    Meanings,
    Ranges,
    Texts,
    bytes_at,
    doubles_at,
    inner,
    ints_at,
    longs_at,
)

# The number of bits of the tier in an entry of an answer; above it is the shop's number.
TIER_BITS: Final = 4


class SearchedSegment(NamedTuple):
    """One segment, and which of its shops a request may find: `passing` and `removed` are as `Ranking` describes them.

    `known` is a bitmap of the shops that are known to sell in the country; empty without a country.
    """

    texts: Texts
    carried: Carried
    passing: Array
    known: Array
    removed: Array


class Ranks(NamedTuple):
    """The order of a segment's shops (M1): popularities descend, and ids ascend where these tie."""

    popularities: Doubles
    id_ends: Array
    ids: Bytes


# The arrays of a segment in a table of segments; those of `samples` are computed when the segment is opened.
ARRAYS: Final = (
    *Lookup._fields,
    *Texts._fields[1:-1],
    *Carried._fields[:-1],
    *Meanings._fields[:-1],
    *Ranks._fields,
)
# The number of items of a segment in the table: address and size of each array, and of the bitmap of removed shops.
ROW: Final = 2 * len(ARRAYS) + 2
# The number of items of a segment in the filters of a request: address and size of `passing` and of `known`.
FILTERS: Final = 4
_RANKS: Final = ROW - 2 - 2 * len(Ranks._fields)


@inner
def segment_at(table: Longs, filters: Longs, meant: Array, number: int, barred: int) -> SearchedSegment:
    """A segment by its number; `barred` as of `Texts`."""
    row, filtered = ROW * number, FILTERS * number
    texts = texts_at(table, row, barred)
    own_meant = meant[meant[number] : meant[number + 1]] if len(meant) else meant
    carried = Carried(
        ints_at(table, row + 34),
        ints_at(table, row + 36),
        Meanings(ints_at(table, row + 38), ints_at(table, row + 40), own_meant),
    )
    passing, known = ints_at(filters, filtered), ints_at(filters, filtered + 2)
    return SearchedSegment(texts, carried, passing, known, ints_at(table, row + ROW - 2))


@inner
def texts_at(table: Longs, row: int, barred: int) -> Texts:
    """The texts of the segment whose row of the table begins at a position."""
    # In the order of ARRAYS.
    return Texts(
        Lookup(
            ints_at(table, row),
            ints_at(table, row + 2),
            longs_at(table, row + 4),
            ints_at(table, row + 6),
            longs_at(table, row + 8),
            ints_at(table, row + 10),
            longs_at(table, row + 12),
            longs_at(table, row + 14),
        ),
        ints_at(table, row + 16),
        ints_at(table, row + 18),
        ints_at(table, row + 20),
        ints_at(table, row + 22),
        bytes_at(table, row + 24),
        ints_at(table, row + 26),
        ints_at(table, row + 28),
        ints_at(table, row + 30),
        ints_at(table, row + 32),
        barred,
    )


@inner
def keep_best_first(table: Longs, found: Ranges, counts: Array) -> int:
    """Leave of all found shops only the best one, which is first in its segment. Returns the number of shops."""
    best = -1
    for number in range(len(counts)):
        if counts[number] and (best < 0 or _is_better(table, number, found[number, 0], best, found[best, 0])):
            best = number
    for number in range(len(counts)):
        counts[number] = number == best
    return 1 if best >= 0 else 0


@inner
def merge_found(table: Longs, found: Ranges, tiers: Ranges, counts: Array, positions: Array, merged: Ranges) -> int:
    """Write the best shops of all segments into `merged`, as entries and numbers of segments. Returns their number.

    In each segment the found shops are in order. `positions` is memory for one number for each segment.
    """
    positions[:] = 0
    for count in range(len(merged)):
        best, tier, shop = -1, -1, MAX_INT
        for number in range(len(counts)):
            at = positions[number]
            if at == counts[number] or tiers[number, at] < tier:
                continue
            if tiers[number, at] > tier or _is_better(table, number, found[number, at], best, shop):
                best, tier, shop = number, tiers[number, at], found[number, at]
        if best < 0:
            return count
        positions[best] += 1
        merged[count, 0], merged[count, 1] = shop << TIER_BITS | tier, best
    return len(merged)


@inner
def _is_better(table: Longs, number: int, shop: int, other_number: int, other: int) -> bool:
    """Whether a shop of one segment ranks above a shop of another segment."""
    own, others = ROW * number + _RANKS, ROW * other_number + _RANKS
    popularity, other_popularity = doubles_at(table, own)[shop], doubles_at(table, others)[other]
    if popularity != other_popularity:
        return bool(popularity > other_popularity)
    ends, other_ends = ints_at(table, own + 2), ints_at(table, others + 2)
    ids, other_ids = bytes_at(table, own + 4), bytes_at(table, others + 4)
    at, other_at = ends[shop], other_ends[other]
    size, other_size = ends[shop + 1] - at, other_ends[other + 1] - other_at
    for position in range(min(size, other_size)):
        if ids[at + position] != other_ids[other_at + position]:
            return bool(ids[at + position] < other_ids[other_at + position])
    return bool(size < other_size)
