"""Projection of coupons and offers: the fields that callers see, and those that queries compare (A2, A4).

The functions are pure and read no clock.
"""

from typing import Any, Final

from index_mappings.coupon_codes import folded_code
from index_mappings.documents import CouponDocument, OfferDocument
from index_mappings.rank import coupon_rank_key
from index_mappings.timestamps import FAR_AHEAD, LONG_AGO, microseconds, optional_timestamp
from indexer.records.checkout_urls import affiliate_url, checkout_url
from indexer.records.related import AffiliateProgramRecord, CouponRecord, OfferRecord
from indexer.records.shop import ShopRecord
from indexer.records.values import MoneyPart

# RFC 2606 and RFC 6761 reserve these names, so no real shop can have them (A4).
_RESERVED_TOP: Final = frozenset({"test", "example", "invalid", "localhost"})
_RESERVED_DOMAINS: Final = ("example.com", "example.net", "example.org")


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
    url = checkout_url(offer.url, shop.domain, shop.checkout_hosts)
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
