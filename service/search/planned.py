"""The search backend over any engine that can run a plan: rules once, engines as small as possible.

One snapshot is one generation; the categories of a stamp are read once and kept for it (C1, C2, M5).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from index_mappings.documents import Category, Shop, category_from_stored, shop_from_stored
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import fold
from index_mappings.tiers import SUGGEST_CUT
from service.search.categories import CategoryTable
from service.search.freshness import LiveStamp
from service.search.plan import (
    EVERYTHING,
    Clause,
    Exact,
    Plan,
    filter_clauses,
    find_plan,
    loose_plan,
    suggest_plan,
    typo_plan,
    whole_query_match,
    word_evidence,
)
from service.search.protocol import FindQuery, Found, Suggested, Suggestion, SuggestQuery

_CATEGORY_PAGE: Final = 5_000
_DID_YOU_MEAN: Final = 3
# Two stamps are in use while one generation follows another; older ones belong to nobody.
_KEPT_TABLES: Final = 3


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that a plan found: its tier and its stored fields."""

    tier: int
    stored: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of hits, and how many there are in all; None when that was not asked."""

    hits: tuple[Hit, ...]
    total: int | None


class Engine(Protocol):
    """What a search engine must be able to do. Errors as in `Snapshot`."""

    async def live(self) -> Stamp:
        """The stamp of the live generation, asked now."""

    async def search(self, stamp: Stamp, plan: Plan, *, offset: int, limit: int, total: bool) -> Page:
        """Run a plan in the stamp's generation."""

    async def present(self, stamp: Stamp, kind: str, clauses: Sequence[Clause]) -> tuple[bool, ...]:
        """For each clause whether any document meets it."""

    async def close(self) -> None:
        """Release connections and files."""


class PlannedBackend:
    """A SearchBackend over an engine."""

    def __init__(self, engine: Engine, category_cap: int = 50) -> None:
        self._engine = engine
        self._cap = category_cap
        self._live = LiveStamp(engine.live)
        self._tables: dict[tuple[str, int], asyncio.Task[CategoryTable]] = {}

    async def snapshot(self) -> "PlannedSnapshot":
        """The live generation (C1)."""
        return await self._snapshot_of(await self._live.current())

    async def refresh(self) -> "PlannedSnapshot":
        """The live generation, asked anew (C2)."""
        return await self._snapshot_of(await self._live.reload())

    async def close(self) -> None:
        """Release the engine."""
        await self._engine.close()

    async def _snapshot_of(self, stamp: Stamp) -> "PlannedSnapshot":
        task = self._tables.get(stamp.key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = asyncio.create_task(self._read_categories(stamp))
            self._tables[stamp.key] = task
            while len(self._tables) > _KEPT_TABLES:
                del self._tables[next(iter(self._tables))]
        return PlannedSnapshot(self._engine, stamp, await asyncio.shield(task), self._cap)

    async def _read_categories(self, stamp: Stamp) -> CategoryTable:
        plan = Plan("categories", ((0, EVERYTHING),))
        found: list[Category] = []
        while True:
            page = await self._engine.search(stamp, plan, offset=len(found), limit=_CATEGORY_PAGE, total=False)
            found += [category_from_stored(hit.stored) for hit in page.hits]
            if len(page.hits) < _CATEGORY_PAGE:
                return CategoryTable(found)


class PlannedSnapshot:
    """One generation of an engine, as of one stamp."""

    def __init__(self, engine: Engine, stamp: Stamp, table: CategoryTable, category_cap: int) -> None:
        self.stamp = stamp
        self._engine = engine
        self._table = table
        self._cap = category_cap

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        return self._table.categories

    async def shop(self, reference: str) -> Shop | None:
        """The shop of an id or a reduced domain."""
        plan = Plan("shops", ((0, Exact("refs", (reference,))),))
        page = await self._engine.search(self.stamp, plan, offset=0, limit=1, total=False)
        return shop_from_stored(page.hits[0].stored) if page.hits else None

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M6)."""
        whole = query_forms(query.text)
        page = await self._page(query, whole)
        if page.total or not whole.texts:
            return self._found(page, whole)
        # Only an empty answer needs to know which words the corpus has at all (M6): the second round trip.
        missing = await self._missing_words(whole)
        kept = whole
        if missing is not None and (missing or not whole.words):
            kept = forms_of_words(tuple(word for word in whole.words if word not in missing))
            if kept.texts or query.category is not None:
                page = await self._page(query, kept)
        near = await self._did_you_mean(query, page)
        return self._found(page, kept, as_typed(query.text, missing or ()), near)

    async def suggest(self, query: SuggestQuery) -> Suggested:
        """Suggest shops and categories (M9, M10)."""
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        filters = filter_clauses(query.country, None)
        slugs = {word: self._table.slugs_of(word) for word in forms.words}
        plan = suggest_plan(forms, slugs, filters)
        hits = (await self._engine.search(self.stamp, plan, offset=0, limit=query.limit, total=False)).hits
        if len(hits) < query.limit and forms.words:
            # Typing errors cost most and can only add to the end, so they are looked for last (M9).
            rest = loose_plan(forms, filters, tuple(clause for _, clause in plan.tiers))
            more = await self._engine.search(self.stamp, rest, offset=0, limit=query.limit - len(hits), total=False)
            hits += more.hits
        return Suggested(
            categories=self._table.suggested(forms, query.limit),
            shops=tuple(Suggestion(shop_from_stored(hit.stored), hit.tier) for hit in hits),
        )

    async def _page(self, query: FindQuery, forms: QueryForms) -> Page:
        slugs = self._table.resolve(forms.words, self._cap).slugs
        plan = find_plan(forms, slugs, filter_clauses(query.country, query.category))
        return await self._engine.search(self.stamp, plan, offset=query.offset, limit=query.limit, total=True)

    async def _missing_words(self, forms: QueryForms) -> tuple[str, ...] | None:
        """The words that no public shop has evidence of; None when the whole query matches some shop."""
        slugs = self._table.resolve(forms.words, self._cap).slugs
        words = tuple(slugs)
        clauses = (whole_query_match(forms, slugs), *(word_evidence(word, slugs[word]) for word in words))
        whole, *known = await self._engine.present(self.stamp, "shops", clauses)
        return None if whole else tuple(word for word, found in zip(words, known, strict=True) if not found)

    async def _did_you_mean(self, query: FindQuery, page: Page) -> tuple[Shop, ...]:
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        shown = tuple(hit.stored["id"] for hit in page.hits)
        excluded = (Exact("id", shown),) if shown else ()
        plan = typo_plan(forms, filter_clauses(query.country, query.category), excluded)
        if not plan.tiers:
            return ()  # too short to be misspelt
        near = await self._engine.search(self.stamp, plan, offset=0, limit=_DID_YOU_MEAN, total=False)
        return tuple(shop_from_stored(hit.stored) for hit in near.hits)

    def _found(
        self,
        page: Page,
        kept: QueryForms,
        ignored: tuple[str, ...] = (),
        near: tuple[Shop, ...] = (),
    ) -> Found:
        return Found(
            shops=tuple(shop_from_stored(hit.stored) for hit in page.hits),
            total=page.total or 0,
            ignored=ignored,
            category_truncated=self._table.resolve(kept.words, self._cap).truncated,
            did_you_mean=near,
        )


def as_typed(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """Folded words as they were typed: the token that folds to that one word, else the folded word (M6)."""
    tokens = text.split()
    return tuple(next((token for token in tokens if fold(token) == word), word) for word in words)
