"""The rules of matching and order written as plainly as possible over a list: the oracle of the other backends.

It scans every shop for every query. It takes no part in production; the conformance suite and the property test hold
the real engines against it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from index_mappings.documents import (
    Category,
    Shop,
    ShopDocument,
    category_from_stored,
    sells_in,
    shop_from_stored,
    stored_part,
)
from index_mappings.forms import QueryForms, forms_of_words, query_forms
from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.text import fold
from index_mappings.tiers import SUGGEST_CUT, SuggestTier
from service.search.protocol import (
    CouponQuery,
    Coupons,
    Facts,
    FindQuery,
    Found,
    Generations,
    MergeEffects,
    Offer,
    Suggested,
    SuggestedShop,
    Suggestion,
    SuggestQuery,
    TypeaheadState,
    WordCount,
)
from service.search.reference.categories import PlainCategories
from service.search.reference.shop_details import ReferenceShopDetails
from service.search.reference.tiers import find_tier, overlap_tier, suggested_shops, typo_tier, word_tier


class ReferenceBackend:
    """A search backend and its only snapshot in one: the generation never changes."""

    def __init__(
        self,
        stamp: Stamp,
        documents: Mapping[str, Sequence[Any]],
        category_cap: int = 50,
        operations: Operations | None = None,
    ) -> None:
        """Take a generation.

        Args:
            stamp: its stamp.
            documents: its documents by kind; a kind may be left out.
            category_cap: how many categories a word may mean (M5).
            operations: what the indexer told beside it.
        """
        self.stamp = stamp
        self._operations = operations
        self._shops: list[ShopDocument] = sorted(documents.get("shops", ()), key=lambda shop: shop.rank)
        categories = documents.get("categories", ())
        self._table = PlainCategories(category_from_stored(stored_part(category)) for category in categories)
        self._cap = category_cap
        self._related_records = ReferenceShopDetails(
            self._shops, *(documents.get(kind, ()) for kind in ("coupons", "offers", "facts"))
        )

    async def snapshot(self) -> "ReferenceBackend":
        """The generation."""
        return self

    def current(self) -> "ReferenceBackend | None":
        """The only generation."""
        return self

    def typeahead_state(self) -> TypeaheadState:
        """Every query is answered from the shops themselves."""
        return TypeaheadState("ready")

    async def refresh(self) -> "ReferenceBackend":
        """The same generation."""
        return self

    async def generations(self) -> Generations:
        """The generation; there never was another one."""
        return Generations(self.stamp, None, self._operations)

    async def close(self) -> None:
        """Nothing is held."""

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        return self._table.categories

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        """The shop of an id or a reduced domain."""
        return self._related_records.shop(reference, offers, offers_offset)

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        """The shops of ids or reduced domains."""
        return tuple(self._related_records.shop(reference, 0, 0) for reference in references)

    async def coupons(self, query: CouponQuery) -> Coupons | None:
        """The balance of coupons (A4)."""
        return self._related_records.coupons(query)

    async def facts(self, reference: str) -> Facts | None:
        """Shipping (A7)."""
        return self._related_records.facts(reference)

    async def trust(self, reference: str) -> Facts | None:
        """Trust (A8)."""
        return self._related_records.trust(reference)

    async def offer(self, offer_id: str) -> Offer | None:
        """An offer (A10)."""
        return self._related_records.offer(offer_id)

    async def merge_candidates(self, shop: Shop, most: int) -> tuple[Shop, ...]:
        """Merge candidates (A12)."""
        return self._related_records.merge_candidates(shop, most)

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        """What a merge would touch (A12)."""
        return self._related_records.merge_effects(first, second)

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M6)."""
        whole = query_forms(query.text)
        kept = whole
        ignored: tuple[str, ...] = ()
        counted = list(dict.fromkeys(whole.words))
        several = len(whole.words) > 1
        if whole.texts and not self._matches(whole, None, query.category, filtered=False):
            missing = [word for word in counted if not self._with_evidence(word, self._shops, query, label=several)]
            ignored = as_typed(query.text, missing)
            if missing or not whole.words:
                kept = forms_of_words(tuple(word for word in whole.words if word not in missing))
        if whole.texts and not kept.texts and query.category is None:
            shops: list[ShopDocument] = []
        else:
            shops = self._matches(kept, query.country, query.category)
        passing = _passing(self._shops, query.country, query.category)
        counts = [len(self._with_evidence(word, passing, query, label=several)) for word in counted]
        page = shops[query.offset : query.offset + query.limit]
        return Found(
            shops=tuple(_shop(shop) for shop in page),
            total=len(shops),
            ignored=ignored,
            category_truncated=self._table.resolve(kept.words, self._cap, query.category).truncated,
            did_you_mean=self._did_you_mean(query, kept, shops) if not shops or ignored else (),
            word_counts=tuple(map(WordCount, as_typed(query.text, counted), counts)) if several and not shops else None,
        )

    def suggest(self, query: SuggestQuery) -> Suggested:
        """Suggest shops and categories (M9, M10)."""
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        slugs = {word: frozenset(self._table.slugs_of(word)) for word in forms.words}
        ranked = suggested_shops(self._shops, forms, slugs, query.country)
        return Suggested(
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
        """The shops with evidence of a word: (a) to (d), or also (e), whatever other words there are (M6)."""
        slugs = frozenset(self._table.resolve([word], self._cap, query.category).slugs[word])
        return [shop for shop in shops if word_tier(shop, word, slugs) is not None or (label and word in shop.labels)]

    def _did_you_mean(
        self,
        query: FindQuery,
        kept: QueryForms,  # noqa: ARG002 - what a backend with a typeahead asks by instead of all that matches
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
    """Words of the folded query as typed: the token that folds to that one word, else the folded word (M6)."""
    typed: dict[str, str] = {}
    for token in text.split():
        typed.setdefault(fold(token), token)
    return tuple(typed.get(word, word) for word in words)


def _suggested(shop: ShopDocument) -> SuggestedShop:
    return SuggestedShop(shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity)


def _shop(shop: ShopDocument) -> Shop:
    return shop_from_stored(stored_part(shop))
