"""Queries and answers about the related records of a shop: coupons, facts, offers, and what a merge affects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CouponQuery:
    """A query for coupons.

    Attributes:
        shop: an id or reduced domain; None for the coupons of all shops.
        now_us: the clock reading of the call, in microseconds since 1970.
        channel: the transport, as display policies name it.
        country: the caller's, as stated by a trusted edge; None otherwise.
        list_limit: with more usable coupons than this the list is not read; None reads any number.
    """

    shop: str | None
    now_us: int
    channel: str
    country: str | None
    list_limit: int | None


@dataclass(frozen=True, slots=True)
class Coupons:
    """The balance of coupons (A4).

    Attributes:
        usable: how many may be shown.
        expired, rejected, reserved, policy: how many are withheld, each counted for its first reason.
        views: the usable ones as callers see them, in M11's order; None when there are more than the query's limit.
    """

    usable: int
    expired: int
    rejected: int
    reserved: int
    policy: int
    views: tuple[Mapping[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The collected facts of a public shop.

    Attributes:
        shop: its id and domain.
        shipping: the statement as callers see it, with `excluded`; None when none was collected.
        signals: present trust signals as callers see them.
        pipeline_gaps: kinds of signal whose check ran without a usable value.
    """

    shop: Mapping[str, str]
    shipping: Mapping[str, Any] | None
    signals: tuple[Mapping[str, Any], ...]
    pipeline_gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer with what the checkout tools need.

    Attributes:
        id: offer id.
        shop: the shop's id and domain.
        checkout_url: a valid URL, or None.
        affiliate: network, program_id, commission_stated, disclosure and url; None without a programme.
    """

    id: str
    shop: Mapping[str, str]
    checkout_url: str | None
    affiliate: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class MergeEffects:
    """What a merge of two shops would affect.

    Attributes:
        coupons, offers: the number of both shops together.
        duplicate_codes: the number of coupon codes that both have.
        domain_has_others: whether the two shops share a registrable domain and a name, and a third shop on that domain
            has none of their shared names.
    """

    coupons: int
    offers: int
    duplicate_codes: int
    domain_has_others: bool
