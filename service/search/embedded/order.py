"""Hits of the embedded engine in the order of their rank, exactly (M1).

Ordering by a whole number is cheap, ordering by a text is not. So hits come by their band, and only those of one band,
which are few, are ordered by the rank that is stored with them. Where very many have come into one band, as after
thousands of changes, the engine orders by the rank itself: slower, and no less right.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol, cast

import orjson
import tantivy
from tantivy import Order, Query

from index_mappings.embedded import BAND_COLUMN, STORED_COLUMN
from service.search.embedded.queries import OpenIndex

# A document's segment and its place in it, as one number.
Address = int
# A hit: its address and its stored part.
Found = tuple[Address, dict[str, Any]]
# How many documents of an index are cached, some 5 MB: a full garbage collection, which stops every request, looks at
# each part of each of them.
_CACHED: Final = 2_048
# How many hits are fetched beyond those that are wanted, so that the bands at both ends are seen whole: in turn.
_MARGINS: Final = (16, 512)


class _Counted(Protocol):
    """What the library's own type hints leave out of a search result."""

    count: int | None
    hits: list[tuple[int, tantivy.DocAddress]]


class Documents:
    """The stored parts of an index's documents; those that were read lately are cached."""

    def __init__(self, index: OpenIndex, most: int = _CACHED) -> None:
        """Nothing is read yet.

        Args:
            index: the documents' index.
            most: how many are cached.
        """
        self._searcher = index.searcher
        self._rank = index.rank
        self._most = most
        # An address means the same document for as long as the searcher is the same. Searches in several threads read
        # here: rank and stored part are cached as one value, as another thread may clear the cache between two looks.
        self._cached: dict[Address, tuple[str, dict[str, Any]]] = {}

    def read(self, key: Address, address: tantivy.DocAddress) -> tuple[str, dict[str, Any]]:
        """The rank of a document and its stored part, which nobody may change: others read it too."""
        cached = self._cached.get(key)
        if cached is None:
            document = self._searcher.doc(address)
            if len(self._cached) >= self._most:
                self._cached.clear()
            cached = document[self._rank][0], orjson.loads(document[STORED_COLUMN][0])
            self._cached[key] = cached
        return cached


class Ordered:
    """Finds the best hits of queries on one index.

    Attributes:
        index: it.
    """

    def __init__(self, index: OpenIndex) -> None:
        self.index = index
        self._searcher = index.searcher
        self._documents = Documents(index)

    def best(self, query: Query, wanted: int, offset: int = 0, known: Collection[Address] = ()) -> list[Found]:
        """The hits of a query in order.

        Args:
            query: what is looked for.
            wanted: how many hits at most.
            offset: how many to pass over; 0 where some are known.
            known: hits that are passed over, wherever they come.
        """
        for margin in _MARGINS:
            start = max(0, offset - margin)
            limit = offset - start + wanted + len(known) + margin
            hits = self._by_band(query, limit, start)
            complete = len(hits) < limit
            found = (
                _exactly(self._documents, hits, complete, start, offset, wanted, known)
                if offset
                else _first(self._documents, hits, complete, wanted, known)
            )
            if found is not None:
                return found
        return self._by_rank(query, wanted, offset, known)

    def count(self, query: Query) -> int:
        """How many hits a query has."""
        # Ordered by a column, as that spares the engine its scores.
        found = self._searcher.search(query, limit=1, count=True, order_by_field=BAND_COLUMN, order=Order.Asc)
        return cast("_Counted", found).count or 0

    def _by_band(self, query: Query, limit: int, start: int) -> Sequence[tuple[int, tantivy.DocAddress]]:
        found = self._searcher.search(
            query, limit=limit, offset=start, count=False, order_by_field=BAND_COLUMN, order=Order.Asc
        )
        return cast("_Counted", found).hits

    def _by_rank(self, query: Query, wanted: int, offset: int, known: Collection[Address]) -> list[Found]:
        found = self._searcher.search(
            query,
            limit=wanted + len(known),
            offset=offset,
            count=False,
            order_by_field=self.index.rank,
            order=Order.Asc,
        )
        hits = ((_key(address), address) for _, address in cast("_Counted", found).hits)
        return [(key, self._documents.read(key, address)[1]) for key, address in hits if key not in known][:wanted]


def _first(
    documents: Documents,
    hits: Sequence[tuple[int, tantivy.DocAddress]],
    complete: bool,  # noqa: FBT001 - as below
    wanted: int,
    known: Collection[Address],
) -> list[Found] | None:
    """As `_exactly`, from the first hit on: most bands hold one hit each."""
    found: list[Found] = []
    at, count = 0, len(hits)
    while at < count and len(found) < wanted:
        band, address = hits[at]
        end = at + 1
        while end < count and hits[end][0] == band:
            end += 1
        if end == count and not complete:
            return None
        if end > at + 1:
            found += _of_one_band(documents, hits[at:end], known)
        elif (key := address.segment_ord << 32 | address.doc) not in known:
            found.append((key, documents.read(key, address)[1]))
        at = end
    return found[:wanted]


def _exactly(  # noqa: PLR0917 - a window and what is wanted of it
    documents: Documents,
    hits: Sequence[tuple[int, tantivy.DocAddress]],
    complete: bool,  # noqa: FBT001 - as above
    start: int,
    offset: int,
    wanted: int,
    known: Collection[Address],
) -> list[Found] | None:
    """What is wanted of hits that are ordered by band; None where a band at an end may not be there whole.

    Args:
        documents: as in `best`.
        hits: by band, from some place of all on.
        complete: whether no hit follows them.
        start: that place.
        offset: as in `best`.
        wanted: as in `best`.
        known: as in `best`.
    """
    found: list[Found] = []
    place, count = start, len(hits)
    at = 0
    while at < count and len(found) < wanted:
        band, end = hits[at][0], at + 1
        while end < count and hits[end][0] == band:
            end += 1
        if end == count and not complete:
            return None
        if place + end - at > offset:
            if at == 0 and start:
                return None
            group = _of_one_band(documents, hits[at:end], known)
            found += group[max(0, offset - place) :] if offset > place else group
        place += end - at
        at = end
    return found[:wanted]


def _of_one_band(
    documents: Documents, hits: Sequence[tuple[int, tantivy.DocAddress]], known: Collection[Address]
) -> list[Found]:
    keyed = ((_key(address), address) for _, address in hits)
    group = [(documents.read(key, address), key) for key, address in keyed if key not in known]
    # By rank, of which no two are the same.
    group.sort(key=lambda found: found[0][0])
    return [(key, stored) for (_, stored), key in group]


def _key(address: tantivy.DocAddress) -> Address:
    key: Address = address.segment_ord << 32 | address.doc
    return key
