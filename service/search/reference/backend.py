"""The rules of matching and order in their simplest form, over lists: the oracle for the tests of the engines.

It scans every shop for every query, and is not used in production. The backend tests compare the engines with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rapidfuzz.distance import OSA

from index_mappings.documents import (
    Category,
    ShopDocument,
    category_from_stored,
    sells_in,
    shop_from_stored,
    stored_part,
)
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import fold
from index_mappings.tiers import CATEGORY_PREFIX_MIN, CATEGORY_TYPO_MIN, SUGGEST_CUT, SuggestTier
from service.search.categories import CategoryTable
from service.search.protocol import (
    FindQuery,
    Found,
    Generations,
    SuggestedShop,
    Suggestion,
    SuggestQuery,
    SuggestResult,
    TypeaheadState,
    WordCount,
)
from service.search.reference.shop_details import ReferenceShopDetails
from service.search.reference.tiers import find_tier, overlap_tier, suggested_shops, typo_tier, word_tier


class ReferenceCategories(CategoryTable):
    """A category table that scans every word of every category for every query."""

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of categories with a word that equals this one or, from 3 characters up, begins with it (M5)."""
        return tuple(entry.slug for entry in self.entries if any(_has_prefix(word, known) for known in entry.words))

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        """The categories of a suggest request (M10)."""
        if not query.texts:
            return self.categories[:limit]
        if not query.words:
            return ()
        word = query.words[-1]
        found = [entry for entry in self.entries if any(known.startswith(word) for known in entry.words)]
        if not found and len(word) >= CATEGORY_TYPO_MIN:
            found = [entry for entry in self.entries if any(_begins_nearly(known, word) for known in entry.words)]
        return tuple(entry.shown() for entry in found[:limit])


class ReferenceBackend(ReferenceShopDetails):
    """A search backend that is also its only snapshot, as its generation never changes."""

    def __init__(self, stamp: Stamp, documents: Mapping[str, Sequence[Any]], category_cap: int = 50) -> None:
        """Store a generation.

        Args:
            stamp: of the generation.
            documents: its documents by kind; a missing kind has none.
            category_cap: the maximum number of categories that a word means (M5).
        """
        super().__init__(documents)
        self.stamp = stamp
        categories = documents.get("categories", ())
        self._table = ReferenceCategories(category_from_stored(stored_part(category)) for category in categories)
        self._cap = category_cap

    async def snapshot(self) -> "ReferenceBackend":
        """The generation."""
        return self

    def current(self) -> "ReferenceBackend | None":
        """The only generation."""
        return self

    def typeahead_state(self) -> TypeaheadState:
        """Always ready, as suggestions come from the list of shops."""
        return TypeaheadState("ready")

    async def refresh(self) -> "ReferenceBackend":
        """The same generation."""
        return self

    async def generations(self) -> Generations:
        """The only generation."""
        return Generations(self.stamp, None, None)

    async def close(self) -> None:
        """Do nothing, as there is nothing to release."""

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        return self._table.categories

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M6)."""
        whole = query_forms(query.text)
        effective = whole
        ignored: tuple[str, ...] = ()
        counted = list(dict.fromkeys(whole.words))
        several = len(whole.words) > 1
        if whole.texts and not self._matches(whole, None, query.category, filtered=False):
            missing = [word for word in counted if not self._with_evidence(word, self._shops, query, label=several)]
            ignored = as_typed(query.text, missing)
            if missing or not whole.words:
                effective = forms_of_words(tuple(word for word in whole.words if word not in missing))
        if whole.texts and not effective.texts and query.category is None:
            shops: list[ShopDocument] = []
        else:
            shops = self._matches(effective, query.country, query.category)
        passing = _passing(self._shops, query.country, query.category)
        counts = [len(self._with_evidence(word, passing, query, label=several)) for word in counted]
        page = shops[query.offset : query.offset + query.limit]
        return Found(
            shops=tuple(shop_from_stored(stored_part(shop)) for shop in page),
            total=len(shops),
            ignored=ignored,
            category_truncated=self._table.resolve(effective.words, self._cap, query.category).truncated,
            did_you_mean=self._did_you_mean(query, effective, shops) if not shops or ignored else (),
            word_counts=tuple(map(WordCount, as_typed(query.text, counted), counts)) if several and not shops else None,
        )

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        """Suggest shops and categories (M9, M10)."""
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        slugs = {word: frozenset(self._table.slugs_of(word)) for word in forms.words}
        ranked = suggested_shops(self._shops, forms, slugs, query.country)
        return SuggestResult(
            categories=self._table.suggested(forms, query.limit),
            shops=tuple(Suggestion(_suggested(shop), tier) for tier, shop in ranked[: query.limit]),
        )

    def _matches(
        self, query: QueryForms, country: str | None, category: str | None, *, filtered: bool = True
    ) -> list[ShopDocument]:
        found = self._table.resolve(query.words, self._cap, category).slugs
        slugs = {word: frozenset(found[word]) for word in query.words}
        ranked = [
            (tier, shop)
            for shop in (_passing(self._shops, country, category) if filtered else self._shops)
            if (tier := find_tier(shop, query, slugs)) is not None
        ]
        ranked.sort(key=lambda found: (-found[0], found[1].rank))
        return [shop for _, shop in ranked]

    def _with_evidence(
        self, word: str, shops: Iterable[ShopDocument], query: FindQuery, *, label: bool
    ) -> list[ShopDocument]:
        """The shops with evidence (a) to (d) of a word, or also (e), whatever the other words (M6)."""
        slugs = frozenset(self._table.resolve([word], self._cap, query.category).slugs[word])
        return [shop for shop in shops if word_tier(shop, word, slugs) is not None or (label and word in shop.labels)]

    def _did_you_mean(
        self,
        query: FindQuery,
        effective: QueryForms,  # noqa: ARG002 - a subclass with a typeahead uses it instead of `matching`
        matching: Sequence[ShopDocument],
    ) -> tuple[SuggestedShop, ...]:
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        if not forms.words:
            return ()
        passing = _passing(self._shops, query.country, query.category)
        typos = {shop.id: typo_tier(shop, forms) for shop in passing}
        once = [shop for shop in passing if typos[shop.id] == SuggestTier.ONE_TYPO]
        near = [shop for shop in passing if overlap_tier(shop, forms.words) == SuggestTier.PART_IS_NAME]
        if not matching and not once:
            near += [shop for shop in passing if typos[shop.id] == SuggestTier.TWO_TYPOS]
        near.sort(key=lambda shop: shop.rank)
        named = {shop.id: shop for shop in (*once, *near) if shop not in matching}
        return tuple(map(_suggested, list(named.values())[:3]))


def _passing(shops: Iterable[ShopDocument], country: str | None, category: str | None) -> list[ShopDocument]:
    """The shops that pass both filters."""
    return [shop for shop in shops if sells_in(shop, country) and (category is None or category in shop.categories)]


def as_typed(text: str, words: Iterable[str]) -> tuple[str, ...]:
    """Folded words as typed: the token that folds to exactly that word, else the folded word (M6)."""
    typed: dict[str, str] = {}
    for token in text.split():
        typed.setdefault(fold(token), token)
    return tuple(typed.get(word, word) for word in words)


def _suggested(shop: ShopDocument) -> SuggestedShop:
    return SuggestedShop(shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity)


def _has_prefix(word: str, known: str) -> bool:
    return word == known or (len(word) >= CATEGORY_PREFIX_MIN and known.startswith(word))


def _begins_nearly(known: str, text: str) -> bool:
    """Whether some prefix of a known word is at most one typing error away from the text."""
    return any(OSA.distance(text, known[:end], score_cutoff=1) <= 1 for end in range(len(known) + 1))
