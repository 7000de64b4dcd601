"""Hits of the embedded engine in the order of their rank, exactly (M1).

Ordering by a whole number is cheap, ordering by a text is not. So hits come by their band, and only those of one band,
which are few, are ordered by the rank that is stored with them. Where very many have come into one band, as after
thousands of changes, the engine orders by the rank itself: slower, and no less right.
"""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, cast

import orjson
import tantivy
from tantivy import Order, Query

from index_mappings.embedded import BAND_COLUMN, STORED_COLUMN
from service.search.embedded_queries import OpenIndex
from service.search.engine import Kept

Address = tuple[int, int]
# The stored part of a document; nobody changes it, as others read it too.
Stored = dict[str, Any]
# How many documents of an index are kept as they were read, some 30 MB: short prefixes mean the same few shops.
_LATELY_READ: Final = 16_384
# How many hits are fetched beyond those that are wanted, so that the bands at both ends are seen whole: in turn.
_MARGINS: Final = (16, 512)


class _Counted(Protocol):
    """What the library's own type hints leave out of a search result."""

    count: int | None
    hits: list[tuple[int, tantivy.DocAddress]]


class Ordered:
    """Finds the best hits of queries on one index."""

    def __init__(self, index: OpenIndex) -> None:
        self.index = index
        self._searcher = index.searcher
        # An address means the same document for as long as the searcher is the same.
        self._lately_read: dict[Address, tuple[str, Stored]] = {}

    def best(
        self, query: Query, wanted: int, offset: int = 0, known: Collection[Address] = ()
    ) -> list[tuple[Address, Stored]]:
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
            documents = (
                self._exactly(hits, complete, start, offset, wanted, known)
                if offset
                else self._first(hits, complete, wanted, known)
            )
            if documents is not None:
                return documents
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

    def _first(
        self,
        hits: Sequence[tuple[int, tantivy.DocAddress]],
        complete: bool,  # noqa: FBT001 - as below
        wanted: int,
        known: Collection[Address],
    ) -> list[tuple[Address, Stored]] | None:
        """As `_exactly`, from the first hit on: most of a key press's bands hold one hit each."""
        found: list[tuple[Address, Stored]] = []
        at, count = 0, len(hits)
        while at < count and len(found) < wanted:
            band, address = hits[at]
            end = at + 1
            while end < count and hits[end][0] == band:
                end += 1
            if end == count and not complete:
                return None
            if end > at + 1:
                found += self._of_one_band([address for _, address in hits[at:end]], known)
            elif (key := (address.segment_ord, address.doc)) not in known:
                found.append((key, self._read(key, address)[1]))
            at = end
        return found[:wanted]

    def _exactly(  # noqa: PLR0917 - a window and what is wanted of it
        self,
        hits: Sequence[tuple[int, tantivy.DocAddress]],
        complete: bool,  # noqa: FBT001 - as above
        start: int,
        offset: int,
        wanted: int,
        known: Collection[Address],
    ) -> list[tuple[Address, Stored]] | None:
        """What is wanted of hits that are ordered by band; None where a band at an end may not be there whole.

        Args:
            hits: by band, from some place of all on.
            complete: whether no hit follows them.
            start: that place.
            offset: as in `best`.
            wanted: as in `best`.
            known: as in `best`.
        """
        found: list[tuple[Address, Stored]] = []
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
                group = self._of_one_band([address for _, address in hits[at:end]], known)
                found += group[max(0, offset - place) :] if offset > place else group
            place += end - at
            at = end
        return found[:wanted]

    def _of_one_band(
        self, addresses: Sequence[tantivy.DocAddress], known: Collection[Address]
    ) -> list[tuple[Address, Stored]]:
        group = [
            (*self._read(key, address), key)
            for address in addresses
            if (key := (address.segment_ord, address.doc)) not in known
        ]
        group.sort(key=itemgetter(0))
        return [(key, stored) for _, stored, key in group]

    def _read(self, key: Address, address: tantivy.DocAddress) -> tuple[str, Stored]:
        """The rank and the stored part of a hit."""
        read = self._lately_read.get(key)
        if read is None:
            document = self._searcher.doc(address)
            if len(self._lately_read) >= _LATELY_READ:
                self._lately_read.clear()
            stored = Kept(orjson.loads(document[STORED_COLUMN][0]))
            read = self._lately_read[key] = (document[self.index.rank][0], stored)
        return read

    def _by_rank(
        self, query: Query, wanted: int, offset: int, known: Collection[Address]
    ) -> list[tuple[Address, Stored]]:
        found = self._searcher.search(
            query,
            limit=wanted + len(known),
            offset=offset,
            count=False,
            order_by_field=self.index.rank,
            order=Order.Asc,
        )
        keyed = (((address.segment_ord, address.doc), address) for _, address in cast("_Counted", found).hits)
        return [(key, self._read(key, address)[1]) for key, address in keyed if key not in known][:wanted]
