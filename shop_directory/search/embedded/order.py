"""Returns the hits of the embedded engine exactly in the order of their rank (M1).

Ordering by an integer column is cheap, ordering by a text column is not. So the engine orders hits by their band, an
integer, and only the few hits of one band are ordered here by their stored rank. If a band has very many hits, as after
thousands of changes, the engine orders by the rank itself, which is slower.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import tantivy
from tantivy import Occur, Order, Query

from index_mappings.embedded import BAND_COLUMN, STORED_COLUMN, read_anchors
from shop_directory.search.embedded.checks import SizedFile
from shop_directory.search.embedded.queries import OpenIndex
from shop_directory.search.failures import BackendUnavailable, GenerationDamaged, GenerationGone
from shop_directory.search.protocol import FacetCounts

if TYPE_CHECKING:
    from shop_directory.search.plan import Clause

# A document's segment and its position in the segment, as one number.
Address = int
RankedHit = tuple[Address, dict[str, Any]]
# Pairs of band and address, ordered by band.
BandedHits = Sequence[tuple[int, tantivy.DocAddress]]
# The number of the hits of a query, and the first of them by band.
Counted = tuple[int, BandedHits]
# The maximum number of cached documents of an index, 5 MB: full garbage collections, which block requests, visit them.
_CACHED: Final = 2_048
# The numbers of additional hits to fetch, so that the bands at both ends are complete: the second if the first fails.
_MARGINS: Final = (16, 512)
# More than the distinct values of a counted field, so that all of them are returned and none is estimated.
_MAX_VALUES: Final = 50_000
# No value is empty.
_MISSING: Final = ""


class Bands:
    """The bands of an index; their anchors, one for some 16 documents, are read when the first rank is looked up."""

    def __init__(self, path: Path, generation: str) -> None:
        self._path = path
        self._generation = generation
        self._anchors: list[str] | None = None

    def of(self, rank: str) -> int:
        """The band of a rank, which no document need have; GenerationGone or GenerationDamaged without the anchors."""
        if self._anchors is None:
            try:
                self._anchors = read_anchors(self._path)
            except FileNotFoundError as error:
                raise GenerationGone(f"the anchors of generation {self._generation} were removed meanwhile") from error
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise GenerationDamaged(f"the anchors of generation {self._generation} cannot be read") from error
        return bisect_right(self._anchors, rank)


class RankedReader:
    """Finds hits of an index by rank, in mapped `files`; `counts` are numbers of hits by clause and filters."""

    def __init__(self, index: OpenIndex, files: Sequence[SizedFile], bands: Bands, cached: int = _CACHED) -> None:
        """At most `cached` documents are cached."""
        self.index = index
        self.files = files
        self._bands = bands
        self._searcher = index.searcher
        self.counts: dict[tuple[Clause, tuple[Clause, ...]], int] = {}
        # An address stands for one document while the searcher stays the same. Searches in several threads use this
        # dictionary: rank and stored part are one value, as another thread may clear it between two accesses.
        self._cached: dict[Address, tuple[str, dict[str, Any]]] = {}
        self._most_cached = cached

    def read(self, key: Address, address: tantivy.DocAddress) -> tuple[str, dict[str, Any]]:
        """The rank of a document and its stored part, which is shared and must not be changed."""
        cached = self._cached.get(key)
        if cached is None:
            document = self._searcher.doc(address)
            if len(self._cached) >= self._most_cached:
                self._cached.clear()
            cached = document[self.index.rank][0], orjson.loads(document[STORED_COLUMN][0])
            self._cached[key] = cached
        return cached

    def top(self, query: Query, limit: int, offset: int = 0, seen: Collection[Address] = ()) -> list[RankedHit]:
        """At most `limit` hits of a query in order, without those seen; with `offset`, `seen` is empty."""
        for margin in _MARGINS:
            start = max(0, offset - margin)
            fetched = offset - start + limit + len(seen) + margin
            result = self._searcher.search(
                query, limit=fetched, offset=start, count=False, order_by_field=BAND_COLUMN, order=Order.Asc
            )
            complete = len(result.hits) < fetched
            found = self._window(result.hits, complete, start, offset, limit, seen)
            if found is not None:
                return found
        return self._by_rank(query, limit, offset, seen)

    def top_after(self, query: Query, limit: int, rank: str) -> list[RankedHit]:
        """At most `limit` hits of a query in order, of those behind a rank, which no document need have."""
        band = self._bands.of(rank)
        same_band = Query.boolean_query([(Occur.Must, query), (Occur.Must, self._from_band(band, band))])
        found = self._searcher.search(
            same_band,
            limit=max(1, self.count(same_band)[0]),
            count=False,
            order_by_field=self.index.rank,
            order=Order.Asc,
        )
        passed = {_key(address) for known, address in found.hits if known <= rank}
        rest = Query.boolean_query([(Occur.Must, query), (Occur.Must, self._from_band(band))])
        return self.top(rest, limit, seen=passed)

    def values(self, query: Query, fields: Sequence[str]) -> list[FacetCounts]:
        """The number of the hits of a query with each value of some fields, and of those without a value."""
        every = {"size": _MAX_VALUES, "segment_size": _MAX_VALUES}
        asked = {field: {"terms": {"field": field, "missing": _MISSING, **every}} for field in fields}
        found = self._searcher.aggregate(query, asked)
        counted = []
        for field in fields:
            if found[field]["sum_other_doc_count"] or found[field]["doc_count_error_upper_bound"]:
                raise BackendUnavailable("the numbers of hits by value are not exact")
            values = {bucket["key"]: int(bucket["doc_count"]) for bucket in found[field]["buckets"]}
            missing = values.pop(_MISSING, 0)
            counted.append(FacetCounts(values, missing))
        return counted

    def _from_band(self, first: int, last: int | None = None) -> Query:
        """The query of the documents in the bands from the first one on, to the last one if there is one."""
        integer = tantivy.FieldType.Integer
        return Query.range_query(self.index.schema, BAND_COLUMN, integer, lower_bound=first, upper_bound=last)

    def count(self, query: Query, limit: int = 0) -> Counted:
        """The number of hits of a query, and enough of them for `first` to find so many in order."""
        # Ordering by a column keeps the engine from computing scores. The library's type hints lack the count.
        fetched = limit + _MARGINS[0] if limit else 1
        found: Any = self._searcher.search(
            query, limit=fetched, count=True, order_by_field=BAND_COLUMN, order=Order.Asc
        )
        return found.count or 0, found.hits

    def first(self, counted: Counted, limit: int, seen: Collection[Address]) -> list[RankedHit] | None:
        """The first hits of a counted query, without those seen; None if too few hits were fetched."""
        total, hits = counted
        return self._window(hits, len(hits) == total, 0, 0, limit, seen) if hits else None

    def ranks(self, hits: BandedHits) -> list[str]:
        """The ranks of hits."""
        return [self.read(_key(address), address)[0] for _, address in hits]

    def _by_rank(self, query: Query, limit: int, offset: int, seen: Collection[Address]) -> list[RankedHit]:
        found = self._searcher.search(
            query, limit=limit + len(seen), offset=offset, count=False, order_by_field=self.index.rank, order=Order.Asc
        )
        hits = ((_key(address), address) for _, address in found.hits)
        return [(key, self.read(key, address)[1]) for key, address in hits if key not in seen][:limit]

    def _window(  # noqa: PLR0917 - a window of hits, and what to return of it
        self,
        hits: BandedHits,
        complete: bool,  # noqa: FBT001 - private
        start: int,
        offset: int,
        limit: int,
        seen: Collection[Address],
    ) -> list[RankedHit] | None:
        """The requested part of hits that are ordered by band; None if the band at an end may be incomplete.

        `hits` are all from the position `start` on, to the last one if `complete`; the others are arguments of `top`.
        """
        found: list[RankedHit] = []
        index, count = 0, len(hits)
        while index < count and len(found) < limit:
            band, address = hits[index]
            end = index + 1
            while end < count and hits[end][0] == band:
                end += 1
            if end == count and not complete:
                return None
            skipped = offset - start - index
            if skipped < end - index:
                if index == 0 and start:
                    return None
                if end > index + 1:
                    found += self._sorted_band(hits[index:end], seen)[max(0, skipped) :]
                # Most bands have one hit, which needs no sorting. The key is computed as in `_key`, without its call.
                elif (key := address.segment_ord << 32 | address.doc) not in seen:
                    found.append((key, self.read(key, address)[1]))
            index = end
        return found[:limit]

    def _sorted_band(self, hits: BandedHits, seen: Collection[Address]) -> list[RankedHit]:
        keyed = ((_key(address), address) for _, address in hits)
        band = [(self.read(key, address), key) for key, address in keyed if key not in seen]
        # Ranks are distinct.
        band.sort(key=lambda found: found[0][0])
        return [(key, stored) for (_, stored), key in band]


def _key(address: tantivy.DocAddress) -> Address:
    key: Address = address.segment_ord << 32 | address.doc
    return key
