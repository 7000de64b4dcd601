"""The embedded engine: Tantivy indices on disk, memory-mapped, a directory a generation.

Order is by a sortable column, tier by tier: Tantivy's own scores and its ties by address take no part (M2).
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol, cast

import orjson
import tantivy
from tantivy import Occur, Order, Query

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import STORED_COLUMN, index_directory
from index_mappings.generations import Stamp
from index_mappings.opensearch import sort_field
from index_mappings.roles import EDGE_MAX, edges_field, long_field, suffixes_field
from service.measures import NOTHING_MEASURED, Measures
from service.search.embedded_stamps import read_generations, read_live
from service.search.engine import Ask, Hit, Page
from service.search.failures import BackendUnavailable, GenerationGone
from service.search.guarded import GuardedEngine
from service.search.narrowing import union
from service.search.plan import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Plan, Prefix, exclusive
from service.search.planned import PlannedBackend
from service.search.protocol import Generations
from service.under_way import current

_BASIC: Final = "basic"
_KEPT_READERS: Final = 3

Readers = dict[str, tuple[tantivy.Schema, tantivy.Searcher]]


class _Counted(Protocol):
    """What the library's own type hints leave out of a search result."""

    count: int | None


class EmbeddedBackend(PlannedBackend):
    """Search in an index directory that `shop-directory index build` wrote."""

    def __init__(self, root: Path, category_cap: int = 50, measures: Measures = NOTHING_MEASURED) -> None:
        super().__init__(GuardedEngine(TantivyEngine(root), "tantivy", measures), category_cap, measures)


class TantivyEngine:
    """Runs plans on the generations of an index directory.

    Searches run in threads: the engine releases the interpreter lock, and a long one must not hold up the others.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # Readers stay open for the snapshots in use, so that a generation answers whole while it is being replaced.
        self._readers: dict[tuple[str, int], Readers] = {}

    async def live(self) -> Stamp:
        """The stamp of the generation that the pointer file names."""
        return await asyncio.to_thread(read_live, self._root)

    async def generations(self) -> Generations:
        """What the pointer file names, and the file beside the live one's stamp."""
        return await asyncio.to_thread(read_generations, self._root)

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches in one thread."""
        return await asyncio.to_thread(lambda: tuple(self._search(stamp, ask) for ask in asks))

    async def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits at once: the reader does not change under us."""
        yield await asyncio.to_thread(self._every, stamp, plan)

    async def present(self, stamp: Stamp, kind: str, clauses: Sequence[Clause]) -> tuple[bool, ...]:
        """For each clause whether any document meets it."""
        return await asyncio.to_thread(self._present, stamp, kind, clauses)

    async def close(self) -> None:
        """Let go of the readers."""
        self._readers.clear()

    def _search(self, stamp: Stamp, ask: Ask) -> Page:
        schema, searcher = self._reader(stamp, ask.plan.kind)
        _still_wanted()
        counts = tuple(_count(searcher, _whole(schema, ask.plan, clause)) for clause in exclusive(ask.sorts))
        plan = replace(ask.plan, excluded=(*ask.plan.excluded, *ask.sorts))
        total: int | None = None
        wanted = ask.limit
        if ask.total:
            # Counting is cheap and ordering is not: with one count of all tiers at once, only those are ordered whose
            # hits are shown.
            total = _count(searcher, _whole(schema, plan, union([clause for _, clause in plan.tiers])))
            wanted = min(ask.limit, max(0, total - ask.offset))
        return Page(_hits(schema, searcher, plan, offset=ask.offset, wanted=wanted), total, counts)

    def _every(self, stamp: Stamp, plan: Plan) -> tuple[Hit, ...]:
        schema, searcher = self._reader(stamp, plan.kind)
        ((tier, clause),) = plan.tiers
        whole = _whole(schema, plan, clause)
        found = searcher.search(
            whole,
            limit=max(1, _count(searcher, whole)),
            count=False,
            order_by_field=sort_field(plan.kind),
            order=Order.Asc,
        )
        return tuple(Hit(tier, _stored(searcher, address)) for _, address in found.hits)

    def _present(self, stamp: Stamp, kind: str, clauses: Sequence[Clause]) -> tuple[bool, ...]:
        schema, searcher = self._reader(stamp, kind)
        return tuple(bool(searcher.search(_query(schema, clause), limit=1, count=False).hits) for clause in clauses)

    def _reader(self, stamp: Stamp, kind: str) -> tuple[tantivy.Schema, tantivy.Searcher]:
        readers = self._readers.get(stamp.key)
        if readers is None:
            readers = {kind: self._open(stamp, kind) for kind in DOCUMENTS}
            self._readers[stamp.key] = readers
            for old in list(self._readers)[:-_KEPT_READERS]:
                self._readers.pop(old, None)
        return readers[kind]

    def _open(self, stamp: Stamp, kind: str) -> tuple[tantivy.Schema, tantivy.Searcher]:
        directory = index_directory(self._root, stamp.generation, kind)
        if not directory.is_dir():
            raise GenerationGone(f"generation {stamp.generation} is no longer there")
        try:
            index = tantivy.Index.open(str(directory))
            # Reloading is ours to decide, by the stamp: a searcher never changes under a snapshot.
            index.config_reader("manual")
            return index.schema, index.searcher()
        except (ValueError, OSError) as error:
            raise BackendUnavailable(f"cannot open the {kind} of generation {stamp.generation}") from error


def _still_wanted() -> None:
    """Stop where nobody waits any more: a thread can't be interrupted, and goes on after its request has ended."""
    if (request := current()) is not None and request.pointless:
        raise BackendUnavailable("nobody waits for this search any more")


def _whole(schema: tantivy.Schema, plan: Plan, clause: Clause) -> Query:
    """One clause under the plan's filters and without what it excludes."""
    needed = [(Occur.Must, _query(schema, part)) for part in (clause, *plan.filters)]
    return Query.boolean_query([*needed, *((Occur.MustNot, _query(schema, part)) for part in plan.excluded)])


def _hits(
    schema: tantivy.Schema, searcher: tantivy.Searcher, plan: Plan, *, offset: int, wanted: int
) -> tuple[Hit, ...]:
    """Hits tier by tier, until there are as many as are wanted or no tier is left."""
    hits: list[Hit] = []
    passed = 0
    for position, (tier, clause) in enumerate(plan.tiers):
        if len(hits) >= wanted:
            break
        _still_wanted()
        better = union([other for _, other in plan.tiers[:position]]).clauses
        counted = offset > passed
        found = searcher.search(
            _whole(schema, replace(plan, excluded=(*plan.excluded, *better)), clause),
            limit=wanted - len(hits),
            offset=max(0, offset - passed),
            count=counted,
            order_by_field=sort_field(plan.kind),
            order=Order.Asc,
        )
        hits += [Hit(tier, _stored(searcher, address)) for _, address in found.hits]
        passed += (cast("_Counted", found).count or 0) if counted else len(found.hits)
    return tuple(hits)


def _count(searcher: tantivy.Searcher, query: Query) -> int:
    return cast("_Counted", searcher.search(query, limit=1, count=True)).count or 0


def _stored(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> dict[str, object]:
    stored: dict[str, object] = orjson.loads(searcher.doc(address)[STORED_COLUMN][0])
    return stored


def _query(schema: tantivy.Schema, clause: Clause) -> Query:
    match clause:
        case Exact(field, (text,)):
            return Query.term_query(schema, field, text, _BASIC)
        case Exact(field, texts):
            return Query.term_set_query(schema, field, list(texts))
        case Prefix(field, text) if len(text) <= EDGE_MAX:
            return Query.term_query(schema, edges_field(field), text, _BASIC)
        case Prefix(field, text):
            return Query.fuzzy_term_query(schema, long_field(field), text, distance=0, prefix=True)
        case Infix(field, text):
            return Query.fuzzy_term_query(schema, suffixes_field(field), text, distance=0, prefix=True)
        case Below(field, bound):
            return Query.range_query(schema, field, tantivy.FieldType.Integer, upper_bound=bound, include_upper=False)
        case NoneOf(clauses):
            refused = [(Occur.MustNot, _query(schema, part)) for part in clauses]
            return Query.boolean_query([(Occur.Must, Query.all_query()), *refused])
        case AllOf(clauses):
            return _boolean(schema, Occur.Must, clauses) if clauses else Query.all_query()
        case AnyOf(clauses):
            return _boolean(schema, Occur.Should, clauses) if clauses else Query.empty_query()
        case _:
            return Query.fuzzy_term_query(schema, edges_field(clause.field), clause.text, distance=clause.distance)


def _boolean(schema: tantivy.Schema, occur: Occur, clauses: Sequence[Clause]) -> Query:
    if len(clauses) == 1:
        return _query(schema, clauses[0])
    return Query.boolean_query([(occur, _query(schema, clause)) for clause in clauses])
