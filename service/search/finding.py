"""Searching shops over any engine that can run a plan: the flow of find_shop and /suggest (M3 to M10)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from index_mappings.documents import Shop, shop_from_stored
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import fold
from index_mappings.tiers import SUGGEST_CUT
from service.search.categories import CategoryTable
from service.search.clauses import Exact
from service.search.engine import Ask, Engine, Hit, Page, Press, shown_of
from service.search.lookahead import Lookahead
from service.search.narrowing import narrowed
from service.search.plan import (
    Plan,
    filter_clauses,
    find_plan,
    last_plan,
    loose_plan,
    loose_tiers,
    suggest_plan,
    typo_plan,
    whole_query_match,
    word_evidence,
)
from service.search.pressed import two_errors_may_count
from service.search.protocol import FindQuery, Found, Suggested, Suggestion, SuggestQuery

_DID_YOU_MEAN: Final = 3


class Finding:
    """find_shop and /suggest on one generation."""

    def __init__(
        self, engine: Engine, stamp: Stamp, table: CategoryTable, category_cap: int, ahead: Lookahead | None = None
    ) -> None:
        """Search a generation.

        Args:
            engine: what is asked.
            stamp: the generation's.
            table: its categories.
            category_cap: how many categories a word may mean (M5).
            ahead: guesses what a round trip should ask for; None where searches are no round trips.
        """
        self._engine = engine
        self._key_presses = engine.key_presses
        self._ahead = ahead
        self._stamp = stamp
        self._table = table
        self._cap = category_cap

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
        if self._key_presses is not None:
            return self.suggest_at_once(query)
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        plan = suggest_plan(forms, self._slugs(forms), query.country)
        hits = await self._suggested(forms, plan, query.limit)
        if two_errors_may_count(hits) and (last := last_plan(forms, plan.filters)) is not None:
            hits = (await self._ask(Ask(last, query.limit))).hits
        shops = tuple([Suggestion(shown_of(hit.stored), hit.tier) for hit in hits])
        return Suggested(self._table.suggested(forms, query.limit), shops)

    def suggest_at_once(self, query: SuggestQuery) -> Suggested:
        """The same without giving way to others; only for an engine that answers key presses at once."""
        if self._key_presses is None:
            raise RuntimeError("this engine has to be waited for")
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        press = Press(forms, query.country, query.limit, partial(self._slugs, forms))
        shops = self._key_presses.suggest(self._stamp, press)
        return Suggested(self._table.suggested(forms, query.limit), shops)

    async def _suggested(self, forms: QueryForms, plan: Plan, limit: int) -> tuple[Hit, ...]:
        """Typing errors in the same round trip where they will probably be needed, else where too few are found."""
        ahead, letters = self._ahead, len(forms.spaced)
        if ahead is not None and ahead.expects_few(letters) and (rest := loose_tiers(forms)):
            hits = (await self._ask(Ask(replace(plan, tiers=(*plan.tiers, *rest)), limit))).hits
            strict = plan.tiers[-1][0]
            ahead.learn(letters, few=len(hits) < limit or hits[-1].tier < strict)
            return hits
        hits = (await self._ask(Ask(plan, limit))).hits
        if ahead is not None:
            ahead.learn(letters, few=len(hits) < limit)
        if len(hits) < limit and forms.words:
            loose = loose_plan(forms, plan.filters, tuple(clause for _, clause in plan.tiers))
            if loose.tiers:
                hits += (await self._ask(Ask(loose, limit - len(hits)))).hits
        return hits

    def _slugs(self, forms: QueryForms) -> dict[str, tuple[str, ...]]:
        return {word: self._table.slugs_of(word) for word in forms.words}

    async def _page(self, query: FindQuery, forms: QueryForms) -> Page:
        slugs = self._table.resolve(forms.words, self._cap).slugs
        plan = find_plan(forms, slugs, filter_clauses(query.country, query.category))
        return await self._ask(Ask(narrowed(plan), query.limit, offset=query.offset, total=True))

    async def _missing_words(self, forms: QueryForms) -> tuple[str, ...] | None:
        """The words that no public shop has evidence of; None when the whole query matches some shop."""
        slugs = self._table.resolve(forms.words, self._cap).slugs
        words = tuple(slugs)
        clauses = (whole_query_match(forms, slugs), *(word_evidence(word, slugs[word]) for word in words))
        whole, *known = await self._engine.present(self._stamp, "shops", clauses)
        return None if whole else tuple(word for word, found in zip(words, known, strict=True) if not found)

    async def _did_you_mean(self, query: FindQuery, page: Page) -> tuple[Shop, ...]:
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        shown = tuple(hit.stored["id"] for hit in page.hits)
        excluded = (Exact("id", shown),) if shown else ()
        plan = typo_plan(forms, filter_clauses(query.country, query.category), excluded)
        if not plan.tiers:
            return ()  # too short to be misspelt
        near = await self._ask(Ask(plan, _DID_YOU_MEAN))
        return tuple(shop_from_stored(hit.stored) for hit in near.hits)

    async def _ask(self, ask: Ask) -> Page:
        (page,) = await self._engine.search(self._stamp, (ask,))
        return page

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
