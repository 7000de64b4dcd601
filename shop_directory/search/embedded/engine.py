"""The embedded engine: memory-mapped Tantivy indices, whose scores and order of ties are not used (M2)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tantivy import Occur, Query

from index_mappings.generations import Stamp
from index_mappings.tiers import FindTier
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import current
from shop_directory.search.embedded.checks import FileChecks
from shop_directory.search.embedded.indices import (
    LocalTypeaheads,
    OpenIndices,
    Readers,
    read_generations,
    read_live,
    translate_errors,
    typeahead_scope,
)
from shop_directory.search.embedded.order import Address, Counted, RankedReader
from shop_directory.search.embedded.queries import PlanFilters, compile_filters, documents_of, query_of
from shop_directory.search.embedded.threads import SearchThreads, threads_of_worker
from shop_directory.search.engine import GuardedEngine, Hit, Page, SearchRequest
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.plan import LEADING, MATCH_ALL, Clause, Plan, exclusive
from shop_directory.search.planned_backend import PlannedBackend
from shop_directory.search.protocol import FacetCounts, Generations

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead

# A search for at most this number of hits, without counting, takes less time than the switch to a thread and back.
_INLINE_HITS: Final = 100
# So many hits are all read, tier by tier, whatever the page.
_FEW: Final = 80
# Of so many hits the number is kept, and the first ones are found by tier alone.
_MANY: Final = 5_000
# A key has all clauses of a plan, which every full garbage collection visits.
_KEPT_COUNTS: Final = 512


class EmbeddedBackend(PlannedBackend):
    """Search in an index directory that `shop-directory index build` wrote."""

    def __init__(self, root: Path, category_cap: int = 50, metrics: Metrics = NO_METRICS, *, workers: int = 1) -> None:
        """Open nothing yet; `workers` processes of this machine share its processors."""
        engine = TantivyEngine(root, FileChecks(metrics), workers)
        super().__init__(GuardedEngine(engine, "tantivy", metrics), category_cap, metrics)


class TantivyEngine:
    """Runs plans on the generations of a directory: short ones in the event loop, others in a thread."""

    def __init__(self, root: Path, checks: FileChecks | None = None, workers: int = 1) -> None:
        self._root = root
        self._checks = FileChecks() if checks is None else checks
        self._indices = OpenIndices(root, self._checks)
        self._typeaheads = LocalTypeaheads(root, self._checks)
        self._threads = SearchThreads(threads_of_worker(workers))

    async def live(self) -> Stamp:
        """The live stamp; its two small files take less than half the time in the event loop that a thread takes."""
        stamp = read_live(self._root)
        self._indices.refuse_damaged(stamp.generation)
        self._checks.refuse_damaged(typeahead_scope(stamp))
        return stamp

    async def generations(self) -> Generations:
        """The stamps that the pointer file names, and the operations document of the live generation."""
        return await asyncio.to_thread(read_generations, self._root)

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        """Run searches, all in the event loop or all in one thread; EngineBusy if none is free for them soon."""
        readers = self._indices.opened(stamp) or await self._indices.open(stamp)
        if all(map(_is_short, requests)):
            return self._search_all(stamp, readers, requests)
        return await self._threads.run(self._search_all, stamp, readers, requests)

    async def scan(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits in one batch: a reader stays as of one point in time."""
        readers = await self._indices.open(stamp)
        yield await self._threads.run(self._scan, stamp, readers[plan.kind], plan)

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead, and its indices too, so that no search has to wait for them."""
        # Concurrently: both read all of their files, in threads, and the former generation may be used for two seconds.
        _, typeahead = await asyncio.gather(self._indices.open(stamp), self._typeaheads.open(stamp))
        return typeahead

    async def close(self) -> None:
        """Release the readers, and stop the checks."""
        await asyncio.to_thread(self._threads.close)
        await self._indices.close()
        await asyncio.to_thread(self._checks.close)

    @translate_errors
    def _search_all(self, stamp: Stamp, readers: Readers, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        pages = tuple([_page(readers[request.plan.kind], request) for request in requests])
        files = [file for kind in {request.plan.kind for request in requests} for file in readers[kind].files]
        self._checks.refuse_cut(stamp.generation, files)
        return pages

    @translate_errors
    def _scan(self, stamp: Stamp, reader: RankedReader, plan: Plan) -> tuple[Hit, ...]:
        hits = _all_hits(reader, plan)
        self._checks.refuse_cut(stamp.generation, reader.files)
        return hits


def _all_hits(reader: RankedReader, plan: Plan) -> tuple[Hit, ...]:
    ((tier, clause),) = plan.tiers
    filters = compile_filters(reader.index, plan.filters, plan.excluded)
    query = query_of(reader.index, clause)
    if query is None or filters.empty:
        return ()
    filtered = filters.apply(query)
    found = reader.top(filtered, max(1, reader.count(filtered)[0]))
    return tuple([Hit(2 * tier, stored) for _, stored in found])


def _is_short(request: SearchRequest) -> bool:
    return not request.total and not request.offset and not request.buckets and request.limit <= _INLINE_HITS


def _raise_if_abandoned() -> None:
    """Stop between two searches if the request has ended: a running search cannot be interrupted."""
    if (request := current()) is not None and request.abandoned:
        raise BackendUnavailable("the request of this search has ended")


def _page(reader: RankedReader, request: SearchRequest) -> Page:
    _raise_if_abandoned()
    index, plan = reader.index, request.plan
    counts: tuple[int, ...] = ()
    if request.buckets:
        unbucketed = compile_filters(index, plan.filters, plan.excluded)
        counts = tuple(_count(reader, unbucketed, clause)[0] for clause in exclusive(request.buckets))
    filters = compile_filters(index, plan.filters, (*plan.excluded, *request.buckets))
    facets = _facets(reader, request) if request.facets else ()
    total: int | None = None
    counted: Counted | None = None
    limit = request.limit
    if request.total:
        # Counting is cheap: with the count of all tiers the search ends at the last tier that is on the page.
        counted = _kept_count(reader, filters, request)
        total = counted[0]
        limit = min(request.limit, max(0, total - request.offset))
    if filters.empty or not limit:
        return Page((), total, counts, facets)
    if request.offset or request.after is not None:
        return Page(_later_hits(reader, request, filters, limit), total, counts, facets)
    if counted is not None and counted[0] == len(counted[1]) and (plan.preferred or plan.leading):
        return Page(_few_hits(reader, plan, counted, limit), total, counts, facets)
    return Page(_first_hits(reader, plan, filters, limit, counted), total, counts, facets)


def _facets(reader: RankedReader, request: SearchRequest) -> tuple[FacetCounts, ...]:
    """The counts of the facets; those with the same filters take one pass over the documents."""
    plan = request.plan
    query = query_of(reader.index, plan.matching)
    found: dict[str, FacetCounts] = {}
    for passing in {facet.filters for facet in request.facets}:
        _raise_if_abandoned()
        fields = [facet.field for facet in request.facets if facet.filters == passing]
        filters = compile_filters(reader.index, passing, plan.excluded)
        if query is None or filters.empty:
            found |= {field: FacetCounts({}, 0) for field in fields}
        else:
            found |= zip(fields, reader.values(filters.apply(query), fields), strict=True)
    return tuple([found[facet.field] for facet in request.facets])


def _first_hits(
    reader: RankedReader, plan: Plan, filters: PlanFilters, limit: int, counted: Counted | None
) -> tuple[Hit, ...]:
    """The first hits, tier by tier; `counted` are those of all tiers together."""
    hits: list[Hit] = []
    seen: set[Address] = set()
    *_, last = steps = plan.steps
    for step in steps:
        level, clause = step
        if hits:
            _raise_if_abandoned()
        wanted = limit - len(hits)
        found = None
        if counted is not None and step is last:  # it has whatever no better tier has
            found = reader.first(counted, wanted, seen)
        if found is None:
            query = query_of(reader.index, clause)
            found = [] if query is None else reader.top(filters.apply(query), wanted, seen=seen)
        hits += [Hit(level, stored) for _, stored in found]
        if len(hits) >= limit:
            break
        # These are all hits of this tier, so skipping them leaves the hits of the worse tiers.
        seen.update(address for address, _ in found)
    return tuple(hits)


def _few_hits(reader: RankedReader, plan: Plan, counted: Counted, limit: int) -> tuple[Hit, ...]:
    """The first of few hits, all of which are `counted`: their tiers are searched for among them alone."""
    total, found = counted
    hits = reader.first(counted, total, ()) or []
    known = documents_of(reader.index, reader.ranks(found))

    def meeting(clause: Clause | None) -> set[Address]:
        query = None if clause is None else query_of(reader.index, clause)
        if query is None or known is None:
            return set()
        both = Query.boolean_query([(Occur.Must, known), (Occur.Must, query)])
        return {address for address, _ in reader.top(both, total)}

    preferred, leading = meeting(plan.preferred), meeting(plan.leading)
    tiers: dict[Address, int] = {}
    *_, (worst, _) = plan.tiers
    for tier, clause in plan.tiers:
        _raise_if_abandoned()
        # The last tier has whatever no better one has.
        met = {address for address, _ in hits} if tier == worst else meeting(clause)
        tiers |= dict.fromkeys(met - tiers.keys(), tier)
        if len(tiers) == total or (not leading and len(tiers) >= limit):
            break
    levels = [
        Hit(2 * tiers[address] + (address in preferred) + 2 * LEADING * (address in leading), stored)
        for address, stored in hits
        if address in tiers
    ]
    # Hits of one level stay in order.
    return tuple(sorted(levels, key=lambda hit: -hit.level)[:limit])


def _later_hits(reader: RankedReader, request: SearchRequest, filters: PlanFilters, limit: int) -> tuple[Hit, ...]:
    """The hits from an offset on, or behind a position, tier by tier; the tiers before an offset are only counted."""
    hits: list[Hit] = []
    better: list[Clause] = []
    skipped = 0
    after = request.after
    for level, clause in request.plan.steps:
        if len(hits) >= limit:
            break
        _raise_if_abandoned()
        query = query_of(reader.index, clause)
        if query is None:
            continue
        filtered = filters.excluding(reader.index, better).apply(query)
        better.append(clause)
        if after is not None and level >= after.level:
            if level == after.level:
                hits += [Hit(level, stored) for _, stored in reader.top_after(filtered, limit, after.rank)]
            continue
        remaining = max(0, request.offset - skipped)
        if remaining and (count := reader.count(filtered)[0]) <= remaining:
            skipped += count
            continue
        found = reader.top(filtered, limit - len(hits), remaining)
        skipped += remaining
        hits += [Hit(level, stored) for _, stored in found]
    return tuple(hits)


def _count(reader: RankedReader, filters: PlanFilters, clause: Clause, limit: int = 0) -> Counted:
    """As `RankedReader.count`; no hits are returned of all documents."""
    if filters.empty:
        return 0, ()
    if clause == MATCH_ALL and not filters.required and not filters.excluded:
        return int(reader.index.searcher.num_docs), ()
    query = query_of(reader.index, clause)
    return (0, ()) if query is None else reader.count(filters.apply(query), limit)


def _kept_count(reader: RankedReader, filters: PlanFilters, request: SearchRequest) -> Counted:
    """The number of hits of a plan, with the first of them as `_count` returns them unless the number was kept.

    Numbers are kept that are asked for alone, as of words that many shops have (M6), and large ones of categories: they
    are asked for often, and counting takes most of the time of their searches.
    """
    plan, limit = request.plan, request.limit
    if limit and (plan.preferred or plan.leading):
        limit = max(limit, _FEW)
    by_category = plan.tiers[-1][0] == FindTier.ANY_CATEGORY
    if request.buckets or plan.excluded or (limit and not by_category):
        return _count(reader, filters, plan.matching, limit)
    key = plan.matching, plan.filters
    total = reader.counts.get(key)
    if total is not None and (not limit or total >= _MANY):
        return total, ()
    counted = total, _ = _count(reader, filters, plan.matching, limit)
    if not limit or total >= _MANY:
        if len(reader.counts) >= _KEPT_COUNTS:
            reader.counts.clear()
        reader.counts[key] = total
    return counted
