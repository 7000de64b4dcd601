"""Projection: the documents of a generation from the public records of a state, kind by kind or one by one.

The functions are pure, read no clock, and get public records only. A coupon has the fields that callers see, and those
that queries compare (A2, A4); facts state known and missing data on shipping, policies and trust (A7, A8, F8).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import starmap
from typing import Any, Final

from index_mappings.category_forms import category_forms
from index_mappings.countries import shipping_terms
from index_mappings.documents import (
    TRUST_KINDS,
    CategoryDocument,
    CouponDocument,
    FactsDocument,
    OfferDocument,
    ShopDocument,
    markets_of,
)
from index_mappings.forms import shop_forms, stated_names
from index_mappings.hosts import domain_parts
from index_mappings.tiers import coupon_rank_key, rank_key
from index_mappings.usable_codes import code_terms
from index_mappings.values import FAR_AHEAD, LONG_AGO, folded_code, microseconds, optional_timestamp
from indexer.records.related import (
    POLICY_FIELDS,
    AffiliateProgramRecord,
    CouponRecord,
    MoneyPart,
    OfferRecord,
    PolicyRecord,
    RedirectRecord,
    ShippingRecord,
    TrustRecord,
)
from indexer.records.shop import ShopRecord
from indexer.records.urls import affiliate_url, url_of_shop
from indexer.state.public_records import SHOWN_IN_SHOPS, CarriedCategory, ShopFacts
from indexer.state.state import State

Document = ShopDocument | CategoryDocument | CouponDocument | OfferDocument | FactsDocument

# The number of offers that find_shop shows of each shop (A1); get_shop reads the offers' own index.
HEAD_OFFERS: Final = 3
# The number of shops that a sample has in the mean, unless there are fewer.
_SAMPLE: Final = 5_000
# The hexadecimal digits of a digest that tells two states of one shop apart.
_DIGEST: Final = 16
# RFC 2606 and RFC 6761 reserve these names, so no real shop can have them (A4).
_RESERVED_TOP: Final = frozenset({"test", "example", "invalid", "localhost"})
_RESERVED_DOMAINS: Final = ("example.com", "example.net", "example.org")


def project_facts(facts: ShopFacts) -> FactsDocument:
    """The document of the facts about a public shop."""
    rows = {row.kind: row for row in facts.trust}
    signals = tuple(_signal(rows[kind]) for kind in TRUST_KINDS if kind in rows and rows[kind].is_present)
    refs = (facts.shop_id, facts.domain)
    return FactsDocument(
        id=facts.shop_id,
        refs=refs,
        # Without a present signal the shop has no reference here, and the answer is that for an unknown shop (A8).
        trusted_refs=refs if signals else (),
        shop={"id": facts.shop_id, "domain": facts.domain},
        shipping=_shipping(facts.shipping),
        policies={
            kind: [_policy(row) for row in facts.policies if row.kind == kind]
            for kind in dict.fromkeys(row.kind for row in facts.policies)
        },
        signals=signals,
        pipeline_gaps=tuple(
            kind for kind in TRUST_KINDS if kind in rows and rows[kind].is_measured and not rows[kind].is_present
        ),
    )


def _signal(row: TrustRecord) -> dict[str, Any]:
    value = list(row.value) if isinstance(row.value, tuple) else row.value
    return {"kind": row.kind, "value": value, "source": row.source, "checked_at": optional_timestamp(row.checked_at)}


def _shipping(shipping: ShippingRecord | None) -> dict[str, Any] | None:
    if shipping is None or shipping.fault is not None:
        return None
    time, threshold = shipping.delivery_time, shipping.free_shipping_threshold
    return {
        "destinations": list(shipping.destinations or ()) or None,
        "excluded": list(shipping.excluded or ()),
        "destinations_exhaustive": bool(shipping.destinations_exhaustive),
        "delivery_time": None if time is None else time.model_dump(),
        "free_shipping_threshold": None if threshold is None else threshold.model_dump(),
        "checked_at": optional_timestamp(shipping.checked_at),
        "source": shipping.source,
    }


def _policy(row: PolicyRecord) -> dict[str, Any]:
    stated: dict[str, Any] = {"country": row.country}
    for field in POLICY_FIELDS[row.kind]:
        value = getattr(row, field)
        stated[field] = (list(value) or None) if isinstance(value, tuple) else value
    if row.kind == "returns":
        stated["fees"] = row.fees or "unknown"
    return {**stated, "source": row.source, "checked_at": optional_timestamp(row.checked_at)}


def project_coupon(coupon: CouponRecord, shop: ShopRecord) -> CouponDocument:
    """The document of a public shop's coupon."""
    verified_us = None if coupon.last_verified_at is None else microseconds(coupon.last_verified_at)
    applied = coupon.verification_status == "verified_applied"
    return CouponDocument(
        id=coupon.id,
        rank=coupon_rank_key(applied=applied, last_verified_us=verified_us, coupon_id=coupon.id),
        shop_refs=(shop.id, shop.domain),
        valid_from_us=LONG_AGO if coupon.valid_from is None else microseconds(coupon.valid_from),
        valid_until_us=FAR_AHEAD if coupon.valid_until is None else microseconds(coupon.valid_until),
        status=coupon.verification_status,
        reserved="yes" if is_reserved(shop.domain) else "no",
        blocked_channels=coupon.blocked_channels,
        blocked_countries=coupon.blocked_countries,
        folded_code=folded_code(coupon.code),
        view=_coupon_view(coupon, shop),
    )


def project_offer(offer: OfferRecord, shop: ShopRecord, program: AffiliateProgramRecord | None) -> OfferDocument:
    """The document of a public shop's offer."""
    url = url_of_shop(offer.url, shop.domain, shop.checkout_hosts)
    return OfferDocument(
        id=offer.id,
        rank=offer.rank,
        shop_refs=(shop.id, shop.domain),
        view=offer_view(offer),
        shop={"id": shop.id, "domain": shop.domain},
        checkout_url=url,
        affiliate=None if program is None or url is None else _affiliate(program, url),
    )


def offer_view(offer: OfferRecord) -> dict[str, Any]:
    """The fields of an offer that callers see; only the checkout tools return its URL."""
    return {
        "offer_id": offer.id,
        "title": offer.title,
        "price": _money(offer.price),
        "availability": offer.availability,
        "updated_at": optional_timestamp(offer.updated_at),
    }


def is_reserved(domain: str) -> bool:
    """Whether a domain is a reserved name, or below one."""
    return domain.rpartition(".")[2] in _RESERVED_TOP or any(
        domain == reserved or domain.endswith(f".{reserved}") for reserved in _RESERVED_DOMAINS
    )


def _coupon_view(coupon: CouponRecord, shop: ShopRecord) -> dict[str, Any]:
    discount = coupon.discount
    return {
        "code": coupon.code,
        "title": coupon.title,
        "discount": None if discount is None else discount.model_dump(),
        "minOrder": _money(coupon.min_order),
        "countries": list(coupon.countries) or None,
        "shop": {"id": shop.id, "domain": shop.domain, "name": shop.name},
        "validFrom": optional_timestamp(coupon.valid_from),
        "validUntil": optional_timestamp(coupon.valid_until),
        "verificationStatus": coupon.verification_status,
        "lastVerifiedAt": optional_timestamp(coupon.last_verified_at),
        "source": coupon.source,
    }


def _affiliate(program: AffiliateProgramRecord, url: str) -> dict[str, Any] | None:
    built = affiliate_url(program.url_template, program.network_hosts, url)
    if built is None:
        return None
    return {
        "network": program.network,
        "program_id": program.program_id,
        "commission_stated": program.commission_stated,
        "disclosure": program.disclosure,
        "url": built,
    }


def _money(amount: MoneyPart | None) -> dict[str, str] | None:
    return None if amount is None else {"amount": amount.amount, "currency": amount.currency}


def project_shop(
    shop: ShopRecord,
    newest_offers: tuple[OfferRecord, ...] = (),
    offers_total: int = 0,
    redirects: tuple[RedirectRecord, ...] = (),
    *,
    shipping: ShippingRecord | None = None,
    coupons: tuple[CouponRecord, ...] = (),
    logo_hosts: Collection[str] = (),
) -> ShopDocument:
    """The document of a public shop; offers are the newest first, redirects to or from another public shop.

    `logo_hosts` are hosts besides the shop's own on which its logo may be.
    """
    forms = shop_forms(shop.name, shop.aliases, shop.domain)
    parts = domain_parts(shop.domain)
    ships_to = shipping_terms(_shipping(shipping))
    codes = code_terms(project_coupon(coupon, shop) for coupon in coupons).terms
    return ShopDocument(
        id=shop.id,
        refs=(shop.id, shop.domain),
        rank=rank_key(shop.popularity, shop.id),
        name=shop.name,
        aliases=tuple(dict.fromkeys(alias for alias in shop.aliases if alias != shop.name)),
        domain=shop.domain,
        categories=tuple(category.slug for category in shop.categories),
        primary=shop.categories[0].slug,
        countries=shop.countries,
        markets=markets_of(shop.countries, shop.domain),
        popularity=shop.popularity,
        logo=url_of_shop(shop.logo, shop.domain, logo_hosts),
        offers=tuple(offer_view(offer) for offer in newest_offers),
        offers_total=offers_total,
        redirects=tuple(
            {
                "from_domain": redirect.from_domain,
                "to_domain": redirect.to_domain,
                "observed_at": optional_timestamp(redirect.observed_at),
                "source": redirect.source,
            }
            for redirect in redirects
        ),
        registrable=parts.registrable,
        main_label=parts.joined_label,
        stated=tuple(sorted(stated_names(shop.name, shop.aliases))),
        names=forms.names,
        leading=forms.leading,
        full=forms.full,
        keys=forms.keys,
        other_keys=tuple(sorted({*forms.keys}.difference(forms.full))),
        words=forms.words,
        infixes=forms.infixes,
        labels=forms.labels,
        dotted=forms.dotted,
        rests=forms.rests,
        clipped=forms.clipped,
        ships_to=ships_to,
        codes=codes,
        related_digest=related_digest(ships_to, codes),
    )


def related_digest(ships_to: Sequence[str], codes: Sequence[str]) -> str:
    """The digest of the terms that follow from a shop's related records."""
    return sha256(" ".join((*ships_to, *codes)).encode()).hexdigest()[:_DIGEST]


def project_category(category: CarriedCategory) -> CategoryDocument:
    """The document of a category."""
    # Most shops first, then slug (M11): the same key as M1's, with the count instead of the popularity.
    rank = rank_key(float(category.count), category.slug)
    forms = category_forms(category.slug, category.name, category.other_names, category.synonyms)
    return CategoryDocument(
        id=category.slug,
        rank=rank,
        name=category.name,
        count=category.count,
        words=forms.words,
        names=forms.names,
        translations=dict(category.other_names),
    )


@dataclass(frozen=True, slots=True)
class Projected:
    """The documents of one index, by rank where that is cheap, and the ids of all of them in order.

    A `sample` are some thousand shops, whatever their rank, without their related records; of other kinds it is empty.
    """

    kind: str
    count: int
    documents: Callable[[], Iterator[Document]]
    ids: Callable[[], Iterator[str]]
    sample: Callable[[], Iterator[Document]] = lambda: iter(())


class Projector:
    """Makes documents from the records of one settled state."""

    def __init__(self, state: State) -> None:
        self._rows, self._public, self._logo_hosts = state.rows, state.public, state.logo_hosts

    def all(self) -> tuple[Projected, ...]:
        """All kinds, with the counts of now."""
        public = self._public
        slugs = [category.slug for category in public.categories()]
        shops, coupons, offers = (public.count(kind) for kind in ("shops", "coupons", "offers"))
        return (
            Projected(
                "shops",
                shops,
                lambda: starmap(self._shop, public.shops()),
                public.shop_ids,
                lambda: map(project_shop, public.sampled_shops(_SAMPLE)),
            ),
            Projected(
                "categories", len(slugs), lambda: map(project_category, public.categories()), lambda: iter(slugs)
            ),
            Projected(
                "coupons", coupons, lambda: starmap(project_coupon, public.coupons()), lambda: public.keys("coupons")
            ),
            Projected("offers", offers, lambda: starmap(project_offer, public.offers()), lambda: public.keys("offers")),
            Projected("facts", shops, lambda: map(project_facts, public.all_facts()), public.shop_ids),
        )

    def document(self, kind: str, document_id: str) -> Document | None:
        """One document by its id; None when the id has no public record."""
        public = self._public
        match kind:
            case "shops":
                shop = public.shop(document_id)
                return None if shop is None else self._shop(shop, SHOWN_IN_SHOPS)
            case "categories":
                category = public.category(document_id)
                return None if category is None else project_category(category)
            case "facts":
                facts = public.facts(document_id)
                return None if facts is None else project_facts(facts)
            case "coupons" | "offers":
                row = self._rows.row(kind, document_id)
                if row is None or row.text is None or (shop := public.shop(str(row.owner))) is None:
                    return None
                if kind == "coupons":
                    return project_coupon(CouponRecord.model_validate_json(row.text), shop)
                return project_offer(OfferRecord.model_validate_json(row.text), shop, public.program(shop.id))
            case _:
                raise ValueError(f"there are no documents of the kind {kind}")

    def _shop(self, shop: ShopRecord, related: Collection[str]) -> ShopDocument:
        """The document of a public shop, which has records of these types at most."""
        public = self._public
        offers, total = public.newest_offers(shop.id, HEAD_OFFERS) if "offers" in related else ((), 0)
        return project_shop(
            shop,
            offers,
            total,
            public.redirects(shop.domain) if "redirects" in related else (),
            shipping=public.shipping(shop.id) if "shipping" in related else None,
            coupons=public.coupons_of(shop.id) if "coupons" in related else (),
            logo_hosts=self._logo_hosts,
        )
