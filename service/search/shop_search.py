"""The flow of find_shop over any engine (M3 to M6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from index_mappings.documents import shop_from_stored
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import fold
from index_mappings.tiers import FindTier
from service.search.clauses import Clause
from service.search.engine import Engine, Page, SearchRequest
from service.search.plan import Plan, filter_clauses, find_plan, whole_query_match, word_evidence
from service.search.protocol import FindQuery, Found, SuggestedShop, WordCount

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead


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
