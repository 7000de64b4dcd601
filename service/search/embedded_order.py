"""Hits of the embedded engine in the order of their rank, exactly (M1).

Ordering by a whole number is cheap, ordering by a text is not. So hits come by their band, and only those of one band,
which are few, are ordered by the rank that is stored with them. Where very many have come into one band, as after
thousands of changes, the engine orders by the rank itself: slower, and no less right.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import orjson
import tantivy
from tantivy import Order, Query

from index_mappings.embedded import BAND_COLUMN, STORED_COLUMN
from service.search.embedded_queries import OpenIndex
from service.search.engine import shown_of

T = TypeVar("T")

# A document's segment and its place in it, as one number.
Address = int
# How many documents of an index are kept whole, some 5 MB, and how many as suggestions show them, some 20: short
# prefixes mean the same few thousand shops. Whole ones are dear to keep for another reason as well: a full garbage
# collection, for which everybody waits, looks at each part of each of them.
_WHOLE: Final = 2_048
_SHOWN: Final = 32_768
# How many hits are fetched beyond those that are wanted, so that the bands at both ends are seen whole: in turn.
_MARGINS: Final = (16, 512)


class _Counted(Protocol):
    """What the library's own type hints leave out of a search result."""

    count: int | None
    hits: list[tuple[int, tantivy.DocAddress]]


class Documents(Generic[T]):
    """The documents of an index, each made into what its readers need; those that were read lately are kept."""

    def __init__(self, index: OpenIndex, made: Callable[[dict[str, Any]], T], most: int) -> None:
        """Nothing is read yet.

        Args:
            index: whose they are.
            made: what is kept of the stored part; nobody changes it, as others read it too.
            most: how many are kept.
        """
        self._searcher = index.searcher
        self._rank = index.rank
        self._made = made
        self._most = most
        # An address means the same document for as long as the searcher is the same. Searches in several threads read
        # here: what belongs together is kept as one, as another thread may forget everything between two looks.
        self._kept: dict[Address, tuple[str, T]] = {}

    def read(self, key: Address, address: tantivy.DocAddress) -> tuple[str, T]:
        """The rank of a document, and what is made of it."""
        kept = self._kept.get(key)
        if kept is None:
            document = self._searcher.doc(address)
            if len(self._kept) >= self._most:
                self._kept.clear()
            kept = document[self._rank][0], self._made(orjson.loads(document[STORED_COLUMN][0]))
            self._kept[key] = kept
        return kept


class Ordered:
    """Finds the best hits of queries on one index.

    Attributes:
        index: it.
        whole: its documents with all that is stored of them.
        shown: its shops as suggestions show them.
    """

    def __init__(self, index: OpenIndex) -> None:
        self.index = index
        self._searcher = index.searcher
        self.whole: Documents[dict[str, Any]] = Documents(index, _as_it_is, _WHOLE)
        self.shown = Documents(index, shown_of, _SHOWN)

    def best(
        self, documents: Documents[T], query: Query, wanted: int, offset: int = 0, known: Collection[Address] = ()
    ) -> list[tuple[Address, T]]:
        """The hits of a query in order.

        Args:
            documents: reads them.
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
                _exactly(documents, hits, complete, start, offset, wanted, known)
                if offset
                else _first(documents, hits, complete, wanted, known)
            )
            if found is not None:
                return found
        return self._by_rank(documents, query, wanted, offset, known)

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

    def _by_rank(
        self, documents: Documents[T], query: Query, wanted: int, offset: int, known: Collection[Address]
    ) -> list[tuple[Address, T]]:
        found = self._searcher.search(
            query,
            limit=wanted + len(known),
            offset=offset,
            count=False,
            order_by_field=self.index.rank,
            order=Order.Asc,
        )
        hits = ((_key(address), address) for _, address in cast("_Counted", found).hits)
        return [(key, documents.read(key, address)[1]) for key, address in hits if key not in known][:wanted]


def _first(
    documents: Documents[T],
    hits: Sequence[tuple[int, tantivy.DocAddress]],
    complete: bool,  # noqa: FBT001 - as below
    wanted: int,
    known: Collection[Address],
) -> list[tuple[Address, T]] | None:
    """As `_exactly`, from the first hit on: most of a key press's bands hold one hit each."""
    found: list[tuple[Address, T]] = []
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
    documents: Documents[T],
    hits: Sequence[tuple[int, tantivy.DocAddress]],
    complete: bool,  # noqa: FBT001 - as above
    start: int,
    offset: int,
    wanted: int,
    known: Collection[Address],
) -> list[tuple[Address, T]] | None:
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
    found: list[tuple[Address, T]] = []
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
    documents: Documents[T], hits: Sequence[tuple[int, tantivy.DocAddress]], known: Collection[Address]
) -> list[tuple[Address, T]]:
    keyed = ((_key(address), address) for _, address in hits)
    group = [(documents.read(key, address), key) for key, address in keyed if key not in known]
    # By rank, of which no two are the same.
    group.sort(key=lambda found: found[0][0])
    return [(key, made) for (_, made), key in group]


def _key(address: tantivy.DocAddress) -> Address:
    key: Address = address.segment_ord << 32 | address.doc
    return key


def _as_it_is(stored: dict[str, Any]) -> dict[str, Any]:
    return stored
