"""The embedded engine: Tantivy indices on disk, memory-mapped, a directory a generation.

Order is by rank, tier by tier: Tantivy's own scores and its ties by address take no part (M2).
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import tantivy
from tantivy import Order

from index_mappings.embedded import STORED_COLUMN
from index_mappings.generations import Stamp
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import current
from service.search.clauses import EVERYTHING, Clause
from service.search.embedded.checks import FileChecks
from service.search.embedded.failures import translated
from service.search.embedded.indices import OpenIndices, Readers
from service.search.embedded.order import Address, Ordered
from service.search.embedded.queries import Bounds, bounds_of, query_of
from service.search.embedded.stamps import read_generations, read_live
from service.search.embedded.typeahead import LocalTypeaheads, typeahead_scope
from service.search.engine import Ask, Hit, Page
from service.search.failures import BackendUnavailable
from service.search.guarded_engine import GuardedEngine
from service.search.plan import Plan, exclusive
from service.search.planned_backend import PlannedBackend
from service.search.protocol import Generations

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

# A search for at most so many hits, without counting, takes less than handing it to a thread and back.
_FEW_HITS: Final = 100


class EmbeddedBackend(PlannedBackend):
    """Search in an index directory that `shop-directory index build` wrote."""

    def __init__(self, root: Path, category_cap: int = 50, metrics: Metrics = NOTHING_MEASURED) -> None:
        engine = TantivyEngine(root, FileChecks(metrics))
        super().__init__(GuardedEngine(engine, "tantivy", metrics), category_cap, metrics)


class TantivyEngine:
    """Runs plans on the generations of an index directory.

    A search for a few hits runs where it is asked for: it is done sooner than a thread would begin it. What counts, or
    lists much, runs in a thread: the engine releases the interpreter lock, and a long one must not hold up the others.
    """

    def __init__(self, root: Path, checks: FileChecks | None = None) -> None:
        """Open nothing yet.

        Args:
            root: the index directory.
            checks: prove its files; they are closed with this.
        """
        self._root = root
        self._checks = FileChecks() if checks is None else checks
        self._indices = OpenIndices(root, self._checks)
        self._typeaheads = LocalTypeaheads(root, self._checks)

    async def live(self) -> Stamp:
        """The stamp of the generation that the pointer file names.

        Two small files, read where they are asked for: by way of a thread it takes more than twice as long.
        """
        stamp = read_live(self._root)
        self._checks.refuse_damaged(stamp.generation)
        self._checks.refuse_damaged(typeahead_scope(stamp))
        return stamp

    async def generations(self) -> Generations:
        """What the pointer file names, and the file beside the live one's stamp."""
        return await asyncio.to_thread(read_generations, self._root)

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches, all at once or all in one thread."""
        readers = self._indices.opened(stamp) or await self._indices.open(stamp)
        if all(_is_short(ask) for ask in asks):
            return _search_all(readers, asks)
        return await asyncio.to_thread(_search_all, readers, asks)

    async def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits at once: the reader does not change under us."""
        readers = await self._indices.open(stamp)
        yield await asyncio.to_thread(_every, readers[plan.kind], plan)

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's indices, so that no search waits for it, and its typeahead."""
        # Together: both read all of their files, in threads, while the former generation may be used for two seconds.
        _, typeahead = await asyncio.gather(self._indices.open(stamp), self._typeaheads.open(stamp))
        return typeahead

    async def close(self) -> None:
        """Release the readers, and end the checks."""
        await self._indices.close()
        await asyncio.to_thread(self._checks.close)


@translated
def _search_all(readers: Readers, asks: Sequence[Ask]) -> tuple[Page, ...]:
    return tuple([_page(readers[ask.plan.kind], ask) for ask in asks])


@translated
def _every(reader: Ordered, plan: Plan) -> tuple[Hit, ...]:
    ((tier, clause),) = plan.tiers
    bounds = bounds_of(reader.index, plan.filters, plan.excluded)
    query = query_of(reader.index, clause)
    if query is None or bounds.none:
        return ()
    whole = bounds.around(query)
    searcher = reader.index.searcher
    found = searcher.search(
        whole,
        limit=max(1, reader.count(whole)),
        count=False,
        order_by_field=reader.index.rank,
        order=Order.Asc,
    )
    return tuple(Hit(tier, _stored(searcher.doc(address))) for _, address in found.hits)


def _is_short(ask: Ask) -> bool:
    return not ask.total and not ask.offset and not ask.sorts and ask.limit <= _FEW_HITS


def _still_wanted() -> None:
    """Stop where nobody waits any more: a search can't be interrupted, and one in a thread outlives its request."""
    if (request := current()) is not None and request.pointless:
        raise BackendUnavailable("nobody waits for this search any more")


def _page(reader: Ordered, ask: Ask) -> Page:
    _still_wanted()
    index, plan = reader.index, ask.plan
    counts: tuple[int, ...] = ()
    if ask.sorts:
        apart = bounds_of(index, plan.filters, plan.excluded)
        counts = tuple(_count(reader, apart, clause) for clause in exclusive(ask.sorts))
    bounds = bounds_of(index, plan.filters, (*plan.excluded, *ask.sorts))
    total: int | None = None
    wanted = ask.limit
    if ask.total:
        # Counting is cheap and ordering is not: with one count of all tiers at once, only those are ordered whose hits
        # are shown.
        total = _count(reader, bounds, plan.matching)
        wanted = min(ask.limit, max(0, total - ask.offset))
    if bounds.none or not wanted:
        return Page((), total, counts)
    if ask.offset:
        return Page(_later_hits(reader, plan, bounds, ask.offset, wanted), total, counts)
    return Page(tuple(_first_hits(reader, plan, bounds, wanted)), total, counts)


def _first_hits(reader: Ordered, plan: Plan, bounds: Bounds, wanted: int) -> list[Hit]:
    """Hits tier by tier, until there are as many as are wanted or no tier is left."""
    hits: list[Hit] = []
    known: set[Address] = set()
    for tier, clause in plan.tiers:
        if hits:
            _still_wanted()
        query = query_of(reader.index, clause)
        if query is None:
            continue
        found = reader.best(bounds.around(query), wanted - len(hits), known=known)
        hits += [Hit(tier, stored) for _, stored in found]
        if len(hits) >= wanted:
            break
        # All of this tier's hits are known by now: a worse tier holds none that it does not.
        known.update(address for address, _ in found)
    return hits


def _later_hits(reader: Ordered, plan: Plan, bounds: Bounds, offset: int, wanted: int) -> tuple[Hit, ...]:
    """Hits tier by tier after so many others, of which nothing but their number is known."""
    hits: list[Hit] = []
    better: list[Clause] = []
    passed = 0
    for tier, clause in plan.tiers:
        if len(hits) >= wanted:
            break
        _still_wanted()
        query = query_of(reader.index, clause)
        if query is None:
            continue
        whole = bounds.without(reader.index, better).around(query)
        better.append(clause)
        left = max(0, offset - passed)
        if left and (count := reader.count(whole)) <= left:
            passed += count
            continue
        found = reader.best(whole, wanted - len(hits), left)
        passed += left
        hits += [Hit(tier, stored) for _, stored in found]
    return tuple(hits)


def _count(reader: Ordered, bounds: Bounds, clause: Clause) -> int:
    if bounds.none:
        return 0
    if clause == EVERYTHING and not bounds.needed and not bounds.refused:
        return int(reader.index.searcher.num_docs)
    query = query_of(reader.index, clause)
    return 0 if query is None else reader.count(bounds.around(query))


def _stored(document: tantivy.Document) -> dict[str, Any]:
    stored: dict[str, Any] = orjson.loads(document[STORED_COLUMN][0])
    return stored
