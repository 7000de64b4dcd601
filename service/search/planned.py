"""The search backend over any engine that can run a plan: rules once, engines as small as possible.

One snapshot is one generation; the categories of a stamp are read once and kept for it (C1, C2, M5).
"""

import asyncio
from typing import Final

from index_mappings.documents import Category, category_from_stored
from index_mappings.generations import Stamp
from service.measures import NOTHING_MEASURED, Measures
from service.search.belongings import Belongings
from service.search.categories import CategoryTable
from service.search.clauses import EVERYTHING
from service.search.engine import Ask, Engine
from service.search.finding import Finding
from service.search.freshness import LiveStamp
from service.search.lookahead import Lookahead
from service.search.plan import Plan
from service.search.protocol import Generations
from service.under_way import for_nobody_in_particular

# How many categories a word may mean where nobody says otherwise (M5).
CATEGORY_CAP: Final = 50

_CATEGORY_PAGE: Final = 5_000
# Two stamps are in use while one generation follows another; older ones belong to nobody.
_KEPT_TABLES: Final = 3


class PlannedBackend:
    """A SearchBackend over an engine."""

    def __init__(self, engine: Engine, category_cap: int = CATEGORY_CAP, measures: Measures = NOTHING_MEASURED) -> None:
        self._engine = engine
        self._measures = measures
        self._cap = category_cap
        self._live = LiveStamp(engine.live, measures=measures)
        self._tables: dict[tuple[str, int], asyncio.Task[CategoryTable]] = {}
        self._last: PlannedSnapshot | None = None
        self._ahead = Lookahead() if engine.key_presses is None else None

    async def snapshot(self) -> "PlannedSnapshot":
        """The live generation (C1)."""
        return await self._snapshot_of(await self._live.current())

    def at_hand(self) -> "PlannedSnapshot | None":
        """The live generation where nothing has to be asked for it (C1)."""
        stamp = self._live.at_hand()
        if stamp is None or self._last is None or self._last.stamp.key != stamp.key:
            return None
        return self._last

    async def refresh(self) -> "PlannedSnapshot":
        """The live generation, asked anew (C2)."""
        return await self._snapshot_of(await self._live.reload())

    async def generations(self) -> Generations:
        """The generations, asked now."""
        return await self._engine.generations()

    async def close(self) -> None:
        """Release the engine."""
        await self._engine.close()

    async def _snapshot_of(self, stamp: Stamp) -> "PlannedSnapshot":
        if self._last is not None and self._last.stamp is stamp:
            self._measures.cache("categories", hit=True)
            return self._last
        task = self._tables.get(stamp.key)
        known = task is not None and not (task.done() and (task.cancelled() or task.exception() is not None))
        self._measures.cache("categories", hit=known)
        if task is None or not known:
            with for_nobody_in_particular():
                task = asyncio.create_task(_read_categories(self._engine, stamp))
            self._tables[stamp.key] = task
            while len(self._tables) > _KEPT_TABLES:
                del self._tables[next(iter(self._tables))]
        snapshot = PlannedSnapshot(self._engine, stamp, await asyncio.shield(task), self._cap, self._ahead)
        self._last = snapshot
        return snapshot


class PlannedSnapshot:
    """One generation of an engine, as of one stamp."""

    def __init__(
        self, engine: Engine, stamp: Stamp, table: CategoryTable, category_cap: int, ahead: Lookahead | None = None
    ) -> None:
        self.stamp = stamp
        self._table = table
        finding = Finding(engine, stamp, table, category_cap, ahead)
        belongings = Belongings(engine, stamp)
        self.suggests_at_once = engine.key_presses is not None
        self.find = finding.find
        self.suggest = finding.suggest
        self.suggest_at_once = finding.suggest_at_once
        self.shop = belongings.shop
        self.coupons = belongings.coupons
        self.facts = belongings.facts
        self.trust = belongings.trust
        self.offer = belongings.offer
        self.merge_candidates = belongings.merge_candidates
        self.merge_effects = belongings.merge_effects

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        return self._table.categories


async def snapshot_of(engine: Engine, stamp: Stamp, category_cap: int = CATEGORY_CAP) -> PlannedSnapshot:
    """One generation by its stamp, whether it is live or not. Errors as in `Snapshot`."""
    return PlannedSnapshot(engine, stamp, await _read_categories(engine, stamp), category_cap)


async def _read_categories(engine: Engine, stamp: Stamp) -> CategoryTable:
    plan = Plan("categories", ((0, EVERYTHING),))
    found: list[Category] = []
    while True:
        (page,) = await engine.search(stamp, (Ask(plan, _CATEGORY_PAGE, offset=len(found)),))
        found += [category_from_stored(hit.stored) for hit in page.hits]
        if len(page.hits) < _CATEGORY_PAGE:
            return CategoryTable(found)
