"""Searching shops over any engine that can run a plan: the flow of find_shop (M3 to M6)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from index_mappings.documents import shop_from_stored
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import fold
from service.search.engine import Ask, Engine, Page
from service.search.narrowing import narrowed
from service.search.plan import filter_clauses, find_plan, whole_query_match, word_evidence
from service.search.protocol import FindQuery, Found, SuggestedShop

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead


class Finding:
    """find_shop on one generation."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead", category_cap: int) -> None:
        """Search a generation.

        Args:
            engine: what is asked.
            stamp: the generation's.
            typeahead: the stamp's: its categories, and what was meant where something is misspelt.
            category_cap: how many categories a word may mean (M5).
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
            return self._found(page, whole)
        # Only an empty answer needs to know which words the corpus has at all (M6): the second round trip.
        missing = await self._missing_words(whole)
        kept = whole
        if missing is not None and (missing or not whole.words):
            kept = forms_of_words(tuple(word for word in whole.words if word not in missing))
            if kept.texts or query.category is not None:
                page = await self._page(query, kept)
        near = self._did_you_mean(query, page)
        return self._found(page, kept, as_typed(query.text, missing or ()), near)

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

    def _did_you_mean(self, query: FindQuery, page: Page) -> tuple[SuggestedShop, ...]:
        shown = frozenset(hit.stored["id"] for hit in page.hits)
        return self._typeahead.did_you_mean(query.text, query.country, query.category, shown)

    async def _ask(self, ask: Ask) -> Page:
        (page,) = await self._engine.search(self._stamp, (ask,))
        return page

    def _found(
        self,
        page: Page,
        kept: QueryForms,
        ignored: tuple[str, ...] = (),
        near: tuple[SuggestedShop, ...] = (),
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
