"""Shops and their related records over plain lists: the oracle for coupons, facts, offers and merge audits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from index_mappings.documents import (
    CouponDocument,
    FactsDocument,
    OfferDocument,
    Shop,
    ShopDocument,
    shop_from_stored,
    stored_part,
)
from index_mappings.forms import stated_names, whole_names
from index_mappings.hosts import domain_parts
from service.search.protocol import OFFER_WINDOW, CouponQuery, Coupons, Facts, MergeEffects, Offer


class ReferenceShopDetails:
    """Scans the lists for every call."""

    def __init__(self, documents: Mapping[str, Sequence[Any]]) -> None:
        """Store the documents of a generation by kind; a missing kind has none."""
        self._shops: list[ShopDocument] = sorted(documents.get("shops", ()), key=lambda shop: shop.rank)
        self._coupons: list[CouponDocument] = sorted(documents.get("coupons", ()), key=lambda coupon: coupon.rank)
        self._offers: list[OfferDocument] = sorted(documents.get("offers", ()), key=lambda offer: offer.rank)
        self._facts: Sequence[FactsDocument] = documents.get("facts", ())

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        """The shop of a reference, with its newest offers from the offset on."""
        for shop in self._shops:
            if reference in shop.refs:
                found = shop_from_stored(stored_part(shop))
                views = [offer.view for offer in self._offers if reference in offer.shop_refs]
                page = views[:OFFER_WINDOW][offers_offset:][:offers]
                return replace(found, offers=tuple(page)) if offers else found
        return None

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        """The shops of references."""
        return tuple([await self.shop(reference) for reference in references])

    async def coupons(self, query: CouponQuery) -> Coupons | None:
        """The balance, coupon by coupon."""
        if query.shop is not None and not any(query.shop in shop.refs for shop in self._shops):
            return None
        counts = dict.fromkeys(("usable", "expired", "rejected", "reserved", "policy"), 0)
        views: list[Any] = []
        for coupon in self._coupons:
            if coupon.valid_from_us > query.now_us or (query.shop is not None and query.shop not in coupon.shop_refs):
                continue
            bucket = _bucket(coupon, query)
            counts[bucket] += 1
            if bucket == "usable":
                views.append(coupon.view)
        too_many = query.list_limit is not None and len(views) > query.list_limit
        return Coupons(**counts, views=None if too_many else tuple(views))

    async def facts(self, reference: str) -> Facts | None:
        """The facts of a reference."""
        return next((_facts(facts) for facts in self._facts if reference in facts.refs), None)

    async def trust(self, reference: str) -> Facts | None:
        """The facts of a reference with a present signal."""
        return next((_facts(facts) for facts in self._facts if reference in facts.refs and facts.signals), None)

    async def offer(self, offer_id: str) -> Offer | None:
        """The offer of an id."""
        for offer in self._offers:
            if offer.id == offer_id:
                return Offer(offer.id, offer.shop, offer.checkout_url, offer.affiliate)
        return None

    async def merge_candidates(self, shop: Shop, limit: int) -> tuple[Shop, ...]:
        """Shops that may be the same, in M1's order."""
        found = [
            shop_from_stored(stored_part(other))
            for other in self._shops
            if other.id != shop.id and _may_be_same(shop, other)
        ]
        return tuple(found[:limit])

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        """What a merge would affect."""
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


def _facts(facts: FactsDocument) -> Facts:
    return Facts(facts.shop, facts.shipping, facts.signals, facts.pipeline_gaps)


def _may_be_same(shop: Shop, other: ShopDocument) -> bool:
    parts, others = domain_parts(shop.domain), domain_parts(other.domain)
    ends = {end for redirect in shop.redirects for end in (redirect["from_domain"], redirect["to_domain"])}
    return (
        parts.registrable == others.registrable
        or parts.joined_label == others.joined_label
        or bool(set(whole_names(shop.name, shop.aliases)) & set(other.full))
        or other.domain in ends
    )
