"""The rules of matching and order in their simplest form, over lists: the oracle for the tests of the engines.

It scans every shop for every query, and is not used in production. The backend tests compare the engines with it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from index_mappings.category_forms import Level
from index_mappings.countries import WORLDWIDE, ships_to
from index_mappings.documents import (
    Category,
    CategoryEntry,
    CouponDocument,
    FactsDocument,
    OfferDocument,
    Shop,
    ShopDocument,
    category_from_stored,
    shop_from_stored,
    stored_part,
)
from index_mappings.forms import QueryForms, query_forms, stated_names, whole_names
from index_mappings.generations import Stamp
from index_mappings.hosts import domain_parts
from index_mappings.table_words import SHOP_WORDS, unfolded
from index_mappings.tiers import ASKED_ALONE_MIN, CATEGORY_PREFIX_MIN, SUGGEST_CUT, SuggestTier
from shop_directory.search.protocol import (
    OFFER_WINDOW,
    Broader,
    CouponQuery,
    Coupons,
    FacetCounts,
    Facts,
    FindQuery,
    Found,
    Generations,
    MergeEffects,
    Offer,
    Position,
    TypeaheadState,
    WordCount,
)
from shop_directory.typeahead.suggestions import SuggestedShop, Suggestion, SuggestQuery, SuggestResult
from shop_directory.words.categories import CategoryTable, ResolvedWords, WordMeaning
from shop_directory.words.query_words import FindForms, QueryWord, find_forms
from tests.support.reference.category_levels import level_of
from tests.support.reference.tiers import (
    Reading,
    countries_of,
    find_tier,
    is_known_to_sell_in,
    near_tier,
    overlap_tier,
    sells_in,
    suggested_shops,
    word_evidence,
)
from tests.support.reference.typed_categories import typed_categories

# A shop with the level of its hit.
_Ranked = tuple[int, ShopDocument]


class ReferenceShopDetails:
    """Scans the lists for every call."""

    def __init__(self, documents: Mapping[str, Sequence[Any]]) -> None:
        """Store the documents of a generation by kind; a missing kind has none."""
        self._shops: list[ShopDocument] = sorted(documents.get("shops", ()), key=lambda shop: shop.rank)
        self._coupons: list[CouponDocument] = sorted(documents.get("coupons", ()), key=lambda coupon: coupon.rank)
        self._offers: list[OfferDocument] = sorted(documents.get("offers", ()), key=lambda offer: offer.rank)
        self._facts: Sequence[FactsDocument] = documents.get("facts", ())

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        for shop in self._shops:
            if reference in shop.refs:
                found = shop_from_stored(stored_part(shop))
                views = [offer.view for offer in self._offers if reference in offer.shop_refs]
                page = views[:OFFER_WINDOW][offers_offset:][:offers]
                return replace(found, offers=tuple(page)) if offers else found
        return None

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        return tuple([await self.shop(reference) for reference in references])

    async def coupons(self, query: CouponQuery) -> tuple[Coupons | None, ...]:
        return tuple(self._coupons_of(shop, query) for shop in query.shops or (None,)) if query.shops != () else ()

    def _coupons_of(self, reference: str | None, query: CouponQuery) -> Coupons | None:
        if reference is not None and not any(reference in shop.refs for shop in self._shops):
            return None
        counts = dict.fromkeys(("usable", "expired", "rejected", "reserved", "policy"), 0)
        views: list[Any] = []
        for coupon in self._coupons:
            if coupon.valid_from_us > query.now_us or (reference is not None and reference not in coupon.shop_refs):
                continue
            bucket = _bucket(coupon, query)
            counts[bucket] += 1
            if bucket == "usable":
                views.append(coupon.view)
        too_many = query.list_limit is not None and len(views) > query.list_limit
        return Coupons(**counts, views=None if too_many else tuple(views))

    async def facts(self, references: Sequence[str]) -> tuple[Facts | None, ...]:
        return tuple(
            next((_facts(facts) for facts in self._facts if reference in facts.refs), None) for reference in references
        )

    async def trust(self, reference: str) -> Facts | None:
        return next((_facts(facts) for facts in self._facts if reference in facts.refs and facts.signals), None)

    async def offer(self, offer_id: str) -> Offer | None:
        for offer in self._offers:
            if offer.id == offer_id:
                return Offer(offer.id, offer.shop, offer.checkout_url, offer.affiliate)
        return None

    async def merge_candidates(self, shop: Shop, limit: int) -> tuple[Shop, ...]:
        found = [other for other in self._shops if other.id != shop.id and _may_be_same(shop, other)]
        found.sort(key=lambda other: _likelihood(shop, other), reverse=True)
        kept = sorted(found[:limit], key=lambda other: other.rank)
        return tuple(shop_from_stored(stored_part(other)) for other in kept)

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        codes = {coupon.folded_code for coupon in self._coupons if first.id in coupon.shop_refs}
        others = {coupon.folded_code for coupon in self._coupons if second.id in coupon.shop_refs}
        both = {first.id, second.id}
        return MergeEffects(
            coupons=sum(bool(both & set(coupon.shop_refs)) for coupon in self._coupons),
            offers=sum(bool(both & set(offer.shop_refs)) for offer in self._offers),
            duplicate_codes=len(codes & others),
            domain_has_others=self._domain_has_others(first, second),
        )

    def _domain_has_others(self, first: Shop, second: Shop) -> bool:
        registrable = domain_parts(first.domain).registrable
        names = stated_names(first.name, first.aliases) & stated_names(second.name, second.aliases)
        if registrable != domain_parts(second.domain).registrable or not names:
            return False
        return any(
            domain_parts(other.domain).registrable == registrable
            and not names & stated_names(other.name, other.aliases)
            for other in self._shops
            if other.id not in (first.id, second.id)
        )


def _bucket(coupon: CouponDocument, query: CouponQuery) -> str:
    if coupon.valid_until_us < query.now_us:
        return "expired"
    if coupon.status == "verified_rejected":
        return "rejected"
    if coupon.reserved == "yes":
        return "reserved"
    if query.channel in coupon.blocked_channels or query.country in coupon.blocked_countries:
        return "policy"
    return "usable"


def _is_good_in(coupon: CouponDocument, places: Sequence[str]) -> bool:
    """Whether a coupon is good in any of the places, if there are some (F3)."""
    stated = coupon.view["countries"]
    return not places or stated is None or WORLDWIDE in stated or any(place in stated for place in places)


def _facts(facts: FactsDocument) -> Facts:
    return Facts(facts.shop, facts.shipping, facts.policies, facts.signals, facts.pipeline_gaps)


def _may_be_same(shop: Shop, other: ShopDocument) -> bool:
    parts, others = domain_parts(shop.domain), domain_parts(other.domain)
    ends = {end for redirect in shop.redirects for end in (redirect["from_domain"], redirect["to_domain"])}
    return (
        parts.registrable == others.registrable
        or parts.joined_label == others.joined_label
        or bool(set(whole_names(shop.name, shop.aliases)) & set(other.full))
        or other.domain in ends
    )


def _likelihood(shop: Shop, other: ShopDocument) -> int:
    """2 if a redirect is between both, 1 if they have a domain and a name in common, else 0."""
    if any(other.domain in (redirect["from_domain"], redirect["to_domain"]) for redirect in shop.redirects):
        return 2
    named = set(whole_names(shop.name, shop.aliases)) & set(other.full)
    return int(bool(named) and domain_parts(shop.domain).registrable == other.registrable)


class ReferenceCategories(CategoryTable):
    """A category table that scans every word of every category for every query."""

    def slugs_of(self, word: str) -> tuple[str, ...]:
        return tuple(entry.slug for entry in self.entries if any(_has_prefix(word, known) for known in entry.words))

    def resolve(self, words: Sequence[QueryWord], cap: int, filtered: Collection[str] = ()) -> ResolvedWords:
        places: dict[int, tuple[Level, list[str]]] = {}
        for size in range(6, 1, -1):
            for start in range(len(words) - size + 1):
                run = words[start : start + size]
                if all(word.is_table for word in run) and not all(word.is_table for word in words):
                    continue
                if not any(word.is_suffix for word in run) and not places.keys() & set(range(start, start + size)):
                    level, slugs = self._best(run)
                    has_shop = any(word.is_table and unfolded(word.typed) in SHOP_WORDS for word in run)
                    worst = Level.OTHER_LANGUAGE if has_shop and not all(word.is_table for word in run) else Level.STEM
                    if slugs and level <= worst:
                        places.update(dict.fromkeys(range(start, start + size), (level, slugs)))
        for place, word in enumerate(words):
            if place not in places and not word.is_table and not word.is_suffix:
                places[place] = self._best([word])
        kept, truncated = {}, False
        for text in dict.fromkeys(word.text for word in words):
            found = [places[place] for place, word in enumerate(words) if word.text == text and place in places]
            level = min((level for level, slugs in found if slugs), default=Level.ENDING)
            slugs = [
                entry.slug for entry in self.entries if any(entry.slug in some for one, some in found if one == level)
            ]
            # Those that the search filters by come first.
            ordered = sorted(slugs, key=lambda slug: slug not in filtered)
            least = sum(slug in filtered for slug in slugs)
            kept[text] = WordMeaning(tuple(ordered[: max(cap, least)]), level)
            # A shop that carries a category of the filter has evidence of a word that means all of the filter.
            is_enough = filtered and all(slug in slugs for slug in filtered)
            truncated = truncated or (len(slugs) > cap and not is_enough)
        return ResolvedWords(kept, truncated)

    def __init__(self, entries: Iterable[CategoryEntry]) -> None:
        super().__init__(entries)
        # By folded and typed words; a search asks for the same ones several times.
        self._known: dict[tuple[tuple[str, str], ...], tuple[Level, list[str]]] = {}

    def _best(self, run: Sequence[QueryWord]) -> tuple[Level, list[str]]:
        """The best level of a word or a run, and the slugs of the categories that have it."""
        key = tuple((word.text, unfolded(word.typed)) for word in run)
        if key not in self._known:
            self._known[key] = self._scanned(run)
        return self._known[key]

    def _scanned(self, run: Sequence[QueryWord]) -> tuple[Level, list[str]]:
        levels = {entry.slug: level_of(entry.names, run) for entry in self.entries}
        best = min((level for level, _ in levels.values()), default=None)
        if best is None or best > Level.ENDING:
            return Level.ENDING, []
        # Of compounds, those with the longest ending.
        longest = max(length for level, length in levels.values() if level == best)
        return Level(best), [slug for slug, found in levels.items() if found == (best, longest)]

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        if not query.texts:
            return self.categories[:limit]
        if not query.words or query.dotted:
            return ()
        found = typed_categories(self.entries, query, self._best)
        return tuple(entry.shown() for entry in found[:limit])


class ReferenceBackend(ReferenceShopDetails):
    """A search backend that is also its only snapshot, as its generation never changes."""

    def __init__(self, stamp: Stamp, documents: Mapping[str, Sequence[Any]], category_cap: int = 50) -> None:
        super().__init__(documents)
        self.stamp = stamp
        categories = documents.get("categories", ())
        self._table = ReferenceCategories(category_from_stored(stored_part(category)) for category in categories)
        self._cap = category_cap

    async def snapshot(self) -> "ReferenceBackend":
        return self

    def current(self) -> "ReferenceBackend | None":
        return self

    def typeahead_state(self) -> TypeaheadState:
        return TypeaheadState("ready")

    async def refresh(self) -> "ReferenceBackend":
        return self

    async def generations(self) -> Generations:
        return Generations(self.stamp, None, None)

    async def close(self) -> None:
        """Do nothing, as there is nothing to release."""

    def domains(self, start: int, stop: int) -> list[str]:
        return [shop.domain for shop in self._shops][start:stop]

    async def categories(self) -> tuple[Category, ...]:
        return self._table.categories

    async def closest_categories(self, text: str, limit: int) -> tuple[str, ...]:
        return self._table.closest(text, limit)

    async def find(self, query: FindQuery) -> Found:
        whole = kept = find_forms(query.text)
        missing: list[str] = []
        unsettled: list[_Ranked] = []
        if whole.forms.texts and not self._match_anywhere(whole, self._readings(whole, query), query):
            missing = self._missing(whole, query)
            kept = whole.without(missing) if missing or not whole.words else whole
            if missing and all(word.is_table for word in kept.words):
                kept = whole.without(whole.texts)
        readings = self._readings(kept, query)
        ranked: list[_Ranked] = []
        facets = {kind: FacetCounts({}, 0) for kind in query.facets}
        if kept.forms.texts or query.categories or not whole.forms.texts:
            ranked = self._found(kept, readings, query)
            unsettled = self._matches(kept, readings, query, verdict="unknown")
            for kind in query.facets:
                others = replace(query, countries=()) if kind == "country" else replace(query, categories=())
                facets[kind] = _counted(kind, self._found(kept, readings, others, query.categories))
        shops = [shop for _, shop in ranked]
        spelt = whole.spelt(missing)
        ignored = tuple(word.typed for word in spelt if word.is_dropped)
        goods = [word.text for word in spelt if word.text is None or not whole.is_table(word.text)]
        several = sum(not word.is_table for word in whole.words) > 1 and goods != [None]
        if query.after is not None:
            passed = query.after
            rest = [one for one in ranked if (-one[0], one[1].rank) > (-passed.level, passed.rank)]
        else:
            rest = ranked[query.offset :]
        page = rest[: query.limit]
        return Found(
            shops=tuple(shop_from_stored(stored_part(shop)) for _, shop in page),
            total=len(shops),
            ignored=ignored,
            category_truncated=any(
                self._table.resolve(reading.words, self._cap, query.categories).truncated for reading in readings
            ),
            did_you_mean=self._did_you_mean(query, whole, missing, kept, shops) if not shops or ignored else (),
            word_counts=self._word_counts(query, whole, missing) if several and not shops else None,
            broader=self._broader(query, whole, missing) if several and not shops else None,
            unsettled_count=None if query.ships_to is None else len(unsettled),
            unsettled=sum(query.include_unsettled and one in unsettled for one in page),
            last=Position(page[-1][0], page[-1][1].rank) if len(rest) > len(page) else None,
            facets=facets,
        )

    def _reading(self, words: tuple[QueryWord, ...], query: FindQuery) -> Reading:
        return Reading(words, self._table.resolve(words, self._cap, query.categories).words)

    def _readings(self, forms: FindForms, query: FindQuery) -> list[Reading]:
        """The readings of a query that count (M3)."""
        typed, *wishes = self._possible_readings(forms, query)
        if not wishes:
            return [typed]
        (wish,) = wishes
        are_goods = all(
            (wish.meanings[text].slugs and wish.meanings[text].level != Level.BEGINNING) or countries_of(forms, text)
            for text in wish.texts
        )
        if (are_goods and not forms.ends_with_place) or not self._match_anywhere(forms, [typed], query):
            return [typed, wish]
        return [typed]

    def _possible_readings(self, forms: FindForms, query: FindQuery) -> list[Reading]:
        """The reading as typed, and the other one if it differs: without table words, but for those of a name."""
        typed = self._reading(forms.words, query)
        kept = [
            word
            for word in forms.words
            if not word.is_table or (unfolded(word.typed) not in SHOP_WORDS and typed.meanings[word.text].slugs)
        ]
        if len(kept) == len(forms.words) or all(word.is_table for word in kept):
            return [typed]
        return [typed, self._reading(tuple(kept), query)]

    def _match_anywhere(self, forms: FindForms, readings: Sequence[Reading], query: FindQuery) -> bool:
        """Whether any public shop matches, whatever the filters; the filter's categories are never capped."""
        return any(find_tier(shop, forms, readings, query.categories) is not None for shop in self._shops)

    def _missing(self, whole: FindForms, query: FindQuery) -> list[str]:
        """The words without evidence on any public shop; table words only where there are no others (M6)."""
        others = [text for text in whole.texts if not whole.is_table(text)]
        return [text for text in others or whole.texts if not self._with_evidence(text, whole, query, self._shops)]

    def _word_counts(self, query: FindQuery, whole: FindForms, missing: Sequence[str]) -> tuple[WordCount, ...]:
        passing = self._passing(query)
        return tuple(
            WordCount(
                word.typed, 0 if word.text is None else len(self._with_evidence(word.text, whole, query, passing))
            )
            for word in whole.spelt(missing)
            if word.text is None or not whole.is_table(word.text)
        )

    def _broader(self, query: FindQuery, whole: FindForms, missing: Sequence[str]) -> tuple[Broader, ...]:
        """The queries of fewer words that find something (M6), by at most five searches."""
        passing = self._passing(query)
        texts = [text for text in whole.texts if text not in missing and not whole.is_table(text)]
        if len(texts) < 2:
            return ()
        counts = {text: len(self._with_evidence(text, whole, query, passing)) for text in texts}
        readings = self._possible_readings(whole, query)
        goods = {
            text
            for text in texts
            if any(text in one.meanings and one.meanings[text].named for one in readings) or countries_of(whole, text)
        }
        fewest = sorted(texts, key=counts.__getitem__)
        without_any = [text for text in texts if not counts[text]]
        least = [[text] for text in texts] if not without_any else [without_any]
        if len(texts) > 3 and len(least) > 1:
            chosen = sorted(fewest, key=lambda text: text in goods)[:3]
            least = [[text] for text in texts if text in chosen]
        asked = [self._broader_one(query, whole, missing, left_out) for left_out in least if len(left_out) < len(texts)]
        found = [one for one in asked if one is not None]
        if found:
            kept = {one.query: sum(text in goods for text in find_forms(one.query).texts) for one in found}
            places = {one.query: place for place, one in enumerate(found)}
            found.sort(key=lambda one: (-kept[one.query], -one.total, places[one.query]))
            return tuple(found[:3])
        first = len(least[0]) + 1
        left = 5 - len(least)
        for number in range(max(first, len(texts) - left), len(texts)):
            one = self._broader_one(query, whole, missing, fewest[:number])
            if one is not None:
                return (one,)
        return ()

    def _broader_one(
        self, query: FindQuery, whole: FindForms, missing: Sequence[str], left_out: Sequence[str]
    ) -> Broader | None:
        dropped = [text for text in whole.texts if text in missing or text in left_out or whole.is_table(text)]
        text = " ".join(whole.without(dropped).tokens)
        forms = find_forms(text)
        if not forms.words:
            return None
        ranked = self._found(forms, self._readings(forms, query), replace(query, text=text))
        typed = [word.typed for word in whole.spelt(()) if word.text in left_out]
        shops = tuple(_suggested(shop) for _, shop in ranked[:5])
        return Broader(text, tuple(typed), len(ranked), shops) if ranked else None

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        forms = query.forms
        slugs = {word: frozenset(self._table.slugs_of(word)) for word in forms.words}
        ranked = suggested_shops(self._shops, forms, slugs, query.country)
        return SuggestResult(
            categories=self._table.suggested(forms, query.limit),
            shops=tuple(Suggestion(_suggested(shop), tier) for tier, shop in ranked[: query.limit]),
        )

    def _matches(
        self,
        forms: FindForms,
        readings: Sequence[Reading],
        query: FindQuery,
        categories: Sequence[str] | None = None,
        *,
        verdict: str = "yes",
    ) -> list[_Ranked]:
        """The shops that match and pass the filters of the query, in order."""
        first = query.categories if categories is None else categories
        ranked = [
            (2 * tier + any(is_known_to_sell_in(shop, country) for country in query.countries), shop)
            for shop in _passing(self._shops, query)
            if self._has_facts(shop, query, (verdict,))
            and (tier := find_tier(shop, forms, readings, first)) is not None
        ]
        return sorted(ranked, key=lambda found: (-found[0], found[1].rank))

    def _found(
        self, forms: FindForms, readings: Sequence[Reading], query: FindQuery, categories: Sequence[str] | None = None
    ) -> list[_Ranked]:
        """The matches, those that ship to a destination before those that may, if these are wanted."""
        ranked = self._matches(forms, readings, query, categories)
        if not query.include_unsettled:
            return ranked
        leading = [(level + 200, shop) for level, shop in ranked]
        return [*leading, *self._matches(forms, readings, query, categories, verdict="unknown")]

    def _passing(self, query: FindQuery) -> list[ShopDocument]:
        """The shops that pass all filters of the query."""
        verdicts = ("yes", "unknown") if query.include_unsettled else ("yes",)
        passing = _passing(self._shops, query)
        return [shop for shop in passing if self._has_facts(shop, query, verdicts)]

    def _has_facts(self, shop: ShopDocument, query: FindQuery, verdicts: Collection[str]) -> bool:
        """Whether a shop has a verdict on the destination, if there is one, and a usable code, if one is wanted."""
        if query.ships_to is not None:
            stated = next(facts.shipping for facts in self._facts if facts.id == shop.id)
            if ships_to(stated, query.ships_to) not in verdicts:
                return False
        wanted = query.coupons
        return wanted is None or any(
            coupon.valid_from_us <= wanted.now_us
            and _bucket(coupon, wanted) == "usable"
            and (wanted.country is not None or not coupon.blocked_countries)
            and (not query.verified_code or coupon.status == "verified_applied")
            and _is_good_in(coupon, [query.ships_to] if query.ships_to else query.countries)
            for coupon in self._coupons
            if shop.id in coupon.shop_refs
        )

    def _with_evidence(
        self, text: str, forms: FindForms, query: FindQuery, shops: Iterable[ShopDocument]
    ) -> list[ShopDocument]:
        """The shops with evidence of a word in either reading; (e) next to others, whatever these are (M6)."""
        readings = self._possible_readings(forms, query)
        return [
            shop
            for shop in shops
            if any(text in reading.texts and word_evidence(shop, forms, reading, text) for reading in readings)
        ]

    def _did_you_mean(
        self,
        query: FindQuery,
        whole: FindForms,
        missing: Sequence[str],
        kept: FindForms,  # noqa: ARG002 - a subclass with a typeahead uses it
        matching: Sequence[ShopDocument],
    ) -> tuple[SuggestedShop, ...]:
        forms = query_forms(query.text, cut=SUGGEST_CUT)
        if not forms.words:
            return ()
        alone = [text for text in whole.texts if text in missing and len(text) >= ASKED_ALONE_MIN]
        last = max((place for place, word in enumerate(whole.words) if not word.is_table), default=-1)
        trimmed = " ".join(dict.fromkeys(whole.tokens[word.token] for word in whole.words[: last + 1]))
        meanings = self._possible_readings(whole, query)[-1].meanings.values()
        if all(meaning.slugs and meaning.level is Level.ENDING for meaning in meanings):
            return ()
        named: dict[str, ShopDocument] = {}
        for asked in (forms, *(query_forms(text, cut=SUGGEST_CUT) for text in (trimmed, *alone) if text)):
            passing = _passing(self._shops, query)
            typos = {shop.id: near_tier(shop, asked) for shop in passing}
            once = [shop for shop in passing if typos[shop.id] == SuggestTier.ONE_TYPO]
            near = [shop for shop in passing if overlap_tier(shop, asked.words) == SuggestTier.PART_IS_NAME]
            if not matching and not once:
                near += [shop for shop in passing if typos[shop.id] == SuggestTier.TWO_TYPOS]
            near.sort(key=lambda shop: shop.rank)
            for shop in (*once, *near):
                if shop not in matching:
                    named.setdefault(shop.id, shop)
        passing = self._passing(query)
        return tuple([_suggested(shop) for shop in named.values() if shop in passing][:3])


def _passing(shops: Iterable[ShopDocument], query: FindQuery) -> list[ShopDocument]:
    """The shops that pass the filters."""
    return [
        shop
        for shop in shops
        if (not query.countries or any(sells_in(shop, country) for country in query.countries))
        and (not query.categories or any(slug in shop.categories for slug in query.categories))
    ]


def _counted(kind: str, ranked: Iterable[_Ranked]) -> FacetCounts:
    """The numbers of shops that state each value, one by one."""
    values = [shop.categories if kind == "category" else shop.countries for _, shop in ranked]
    return FacetCounts(Counter(value for stated in values for value in stated), sum(not stated for stated in values))


def _suggested(shop: ShopDocument) -> SuggestedShop:
    return SuggestedShop(shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity)


def _has_prefix(word: str, known: str) -> bool:
    return word == known or (len(word) >= CATEGORY_PREFIX_MIN and known.startswith(word))
