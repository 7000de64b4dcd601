"""The search backend over any engine, and the flow of find_shop (M3 to M6).

A snapshot is one generation as of one stamp, with the typeahead and the categories of that stamp (C1, C2, M5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from index_mappings.documents import Category, shop_from_stored
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import fold
from index_mappings.tiers import FindTier
from service.runtime.request_context import current
from service.runtime.telemetry import NO_METRICS, Metrics
from service.search.engine import Engine, Page, SearchRequest
from service.search.failures import TypeaheadNotOpen
from service.search.live_generation import MAX_AGE_SECONDS, OPENING, READY, LiveStamp, TypeaheadOpener, seconds
from service.search.plan import Clause, Plan, filter_clauses, find_plan, whole_query_match, word_evidence
from service.search.protocol import (
    FindQuery,
    Found,
    Generations,
    SuggestedShop,
    SuggestQuery,
    SuggestResult,
    TypeaheadState,
    WordCount,
)
from service.search.shop_details import ShopDetails

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

# The default of the maximum number of categories that a word means (M5).
CATEGORY_CAP: Final = 50
# How long requests wait for the first typeahead of the process.
_FIRST_WAIT_SECONDS: Final = 1.5


class PlannedBackend:
    """A SearchBackend over an engine."""

    def __init__(
        self,
        engine: Engine,
        category_cap: int = CATEGORY_CAP,
        metrics: Metrics = NO_METRICS,
        clock: Callable[[], float] = seconds,
    ) -> None:
        """Read nothing yet.

        Args:
            engine: runs the searches; the backend closes it.
            category_cap: the maximum number of categories that a word means (M5).
            metrics: count the hits and misses of the cached stamp.
            clock: seconds, monotonic.
        """
        self._engine = engine
        self._cap = category_cap
        self._live = LiveStamp(engine.live, clock, metrics)
        self._opener = TypeaheadOpener(engine, clock)
        self._ready: PlannedSnapshot | None = None

    async def snapshot(self) -> "PlannedSnapshot":
        """The live generation (C1).

        While its typeahead is being opened this is the former generation, until that reaches its maximum age; after
        that it is the live one without suggestions and searches.
        """
        return await self._snapshot_of(await self._live.current())

    def current(self) -> "PlannedSnapshot | None":
        """The live generation if it is available without I/O; else None (C1)."""
        stamp = self._live.cached()
        return None if stamp is None else self._usable(stamp)

    def typeahead_state(self) -> TypeaheadState:
        """Whether the stamp that was read last can be used for suggest requests.

        Its age does not matter, or a stamp that becomes a second old after it was read would mean a missing typeahead.
        """
        stamp = self._live.latest
        if stamp is not None and self._usable(stamp) is not None:
            return READY
        state = self._opener.state
        # The open typeahead may be that of another stamp.
        return OPENING if state is READY else state

    async def refresh(self) -> "PlannedSnapshot":
        """The live generation, read again (C2)."""
        stamp = await self._live.reload()
        if self._ready is not None and self._ready.stamp.generation != stamp.generation:
            # The former generation is gone: an answer from it would only lead back here.
            self._ready = None
            self._opener.discard()
        return await self._snapshot_of(stamp)

    async def generations(self) -> Generations:
        """The generations, read now."""
        return await self._engine.generations()

    async def close(self) -> None:
        """Release the typeahead and the engine."""
        await self._opener.close()
        await self._engine.close()

    async def _snapshot_of(self, stamp: Stamp) -> "PlannedSnapshot":
        if (snapshot := self._usable(stamp)) is not None:
            return snapshot
        await self._opener.wait(self._opening_wait())
        return self._usable(stamp) or PlannedSnapshot(self._engine, stamp, None, self._cap)

    def _opening_wait(self) -> float | None:
        """How long requests wait for the typeahead, in seconds since the attempt to open it; None is unlimited."""
        if self._ready is not None:
            return MAX_AGE_SECONDS  # this may be the first request after a publish
        # Fetching the first typeahead can take minutes, and a snapshot without it still answers for single shops.
        return None if current() is None else _FIRST_WAIT_SECONDS

    def _usable(self, stamp: Stamp) -> "PlannedSnapshot | None":
        """The snapshot of a live stamp, or the former one until its maximum age; starts to open a missing typeahead."""
        if (opened := self._opener.opened) is not None and (
            self._ready is None or self._ready.stamp.key != opened[0].key
        ):
            self._ready = PlannedSnapshot(self._engine, *opened, self._cap)
        if self._ready is None or self._ready.stamp.key != stamp.key:
            self._opener.request(stamp)
            if self._ready is not None and self._live.age_of(self._ready.stamp) >= MAX_AGE_SECONDS:
                return None
        return self._ready


class PlannedSnapshot(ShopDetails):
    """One generation of an engine, as of one stamp."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead | None", category_cap: int) -> None:
        """Combine the parts of a snapshot.

        Args:
            engine: runs the searches.
            stamp: of the generation.
            typeahead: of the stamp; None makes searches and suggestions unavailable.
            category_cap: the maximum number of categories that a word means (M5).
        """
        super().__init__(engine, stamp)
        self._typeahead = typeahead
        self._shop_search = None if typeahead is None else ShopSearch(engine, stamp, typeahead, category_cap)

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M8)."""
        if self._shop_search is None:
            raise _not_open()
        return await self._shop_search.find(query)

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        """Suggest shops and categories (M9, M10)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.suggest(query)

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.categories.categories


async def snapshot_of(engine: Engine, stamp: Stamp, category_cap: int = CATEGORY_CAP) -> PlannedSnapshot:
    """The snapshot of any stamp, live or not. Errors as in `Snapshot`."""
    return PlannedSnapshot(engine, stamp, await engine.typeahead(stamp), category_cap)


def _not_open() -> TypeaheadNotOpen:
    return TypeaheadNotOpen("the typeahead of the live generation is not open")


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The evidence in the generation of a query that has no match under its filters.

    Attributes:
        missing: the words without evidence on any shop; empty if some shop matches the whole query.
        whole: whether some shop matches the whole query.
        counts: by distinct word, the number of shops with evidence of it that pass the filters.
    """

    missing: tuple[str, ...]
    whole: bool
    counts: dict[str, int]


class ShopSearch:
    """Searches the shops of one generation."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead", category_cap: int) -> None:
        """Search a generation.

        Args:
            engine: runs the searches.
            stamp: of the generation.
            typeahead: of the stamp; it has the categories and finds misspelt names.
            category_cap: the maximum number of categories that a word means (M5).
        """
        self._engine = engine
        self._stamp = stamp
        self._typeahead = typeahead
        self._table = typeahead.categories
        self._cap = category_cap

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M6)."""
        whole = query_forms(query.text)
        page = await self._page(query, whole)
        if page.total or not whole.texts:
            return self._result(query, page, whole)
        # Only an empty result needs the evidence of each word (M6), which is a second round trip.
        evidence = await self._evidence(query, whole)
        effective = whole
        if not evidence.whole and (evidence.missing or not whole.words):
            effective = forms_of_words(tuple(word for word in whole.words if word not in evidence.missing))
            if effective.texts or query.category is not None:
                page = await self._page(query, effective)
        counts = None
        if not page.total and len(whole.words) > 1:
            counts = tuple(map(WordCount, as_typed(query.text, tuple(evidence.counts)), evidence.counts.values()))
        near = self._did_you_mean(query, page, effective)
        return self._result(query, page, effective, as_typed(query.text, evidence.missing), near, counts)

    async def _page(self, query: FindQuery, forms: QueryForms) -> Page:
        plan = find_plan(forms, self._slugs(query, forms), filter_clauses(query.country, query.category))
        request = SearchRequest(plan, query.limit, offset=query.offset, total=True)
        (page,) = await self._engine.search(self._stamp, (request,))
        return page

    async def _evidence(self, query: FindQuery, forms: QueryForms) -> _Evidence:
        """Count the shops of the whole query, and those of each word, with and without filters, in one round trip."""
        slugs = self._slugs(query, forms)
        several = len(forms.words) > 1
        words = [word_evidence(word, slugs[word], label=several) for word in slugs]
        filters = filter_clauses(query.country, query.category) if several else ()
        requests = [_count(whole_query_match(forms, slugs)), *map(_count, words)]
        if filters:
            requests += [_count(clause, filters) for clause in words]
        whole, *counts = [page.total or 0 for page in await self._engine.search(self._stamp, requests)]
        anywhere = dict(zip(slugs, counts, strict=False))
        passing = dict(zip(slugs, counts[len(words) :], strict=True)) if filters else anywhere
        missing = () if whole else tuple(word for word, shops in anywhere.items() if not shops)
        return _Evidence(missing, bool(whole), passing)

    def _slugs(self, query: FindQuery, forms: QueryForms) -> dict[str, tuple[str, ...]]:
        return self._table.resolve(forms.words, self._cap, query.category).slugs

    def _did_you_mean(self, query: FindQuery, page: Page, effective: QueryForms) -> tuple[SuggestedShop, ...]:
        if not page.total:
            return self._typeahead.did_you_mean(query)
        # Without effective words the query browses a category, and all shops that pass its filters are found already.
        return self._typeahead.did_you_mean(query, effective, self._slugs(query, effective)) if effective.texts else ()

    def _result(  # noqa: PLR0917 - the last three are the parts of a result without a match
        self,
        query: FindQuery,
        page: Page,
        effective: QueryForms,
        ignored: tuple[str, ...] = (),
        near: tuple[SuggestedShop, ...] = (),
        counts: tuple[WordCount, ...] | None = None,
    ) -> Found:
        return Found(
            shops=tuple(shop_from_stored(hit.stored) for hit in page.hits),
            total=page.total or 0,
            ignored=ignored,
            category_truncated=self._table.resolve(effective.words, self._cap, query.category).truncated,
            did_you_mean=near,
            word_counts=counts,
        )


def _count(clause: Clause, filters: tuple[Clause, ...] = ()) -> SearchRequest:
    """A request for the number of shops that meet a clause."""
    return SearchRequest(Plan("shops", ((FindTier.CATEGORY, clause),), filters), 0, total=True)


def as_typed(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """Folded words as typed: the token that folds to exactly that word, else the folded word (M6)."""
    tokens = text.split()
    return tuple(next((token for token in tokens if fold(token) == word), word) for word in words)
