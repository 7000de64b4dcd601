"""list_coupons: the codes that may work now, and the numbers of those that are withheld (A4 to A6)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from index_mappings.values import microseconds
from service.errors import ShopNotFoundError, TooManyCouponsError
from service.tools.get_shops import extra_reads, look_up_each, response_of_each, wire_of_each
from service.tools.request import ReferenceText, SeveralShopsRequest
from service.tools.shop_view import Money, NamedShop
from service.tools.tool import BEYOND_SEVERAL, Example, TokenRule, Tool, ToolContext, ToolResponse
from shop_directory.search.protocol import CouponQuery, Coupons


class ListCouponsRequest(SeveralShopsRequest):
    """Whose coupons."""

    shop_domain: ReferenceText = Field(
        None,
        description="Domain, URL or id. Leave out for the coupons of all shops.",
        examples=["harbour-lane-books.example"],
    )


class Discount(ToolResponse):
    """What a coupon takes off."""

    kind: Literal["percent", "amount", "free_shipping", "other"] = Field(description="Kind of discount.")
    value: str | None = Field(description="Decimal number as a string; null if the kind has none.")
    currency: str | None = Field(description="ISO 4217 code for an amount, else null.")


class Coupon(ToolResponse):
    """A code that may be shown."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    code: str = Field(description="Text to enter at checkout.")
    title: str | None = Field(description="Title in the source.")
    discount: Discount | None = Field(description="The discount; null when not stated.")
    min_order: Money | None = Field(description="Minimum order value; null when not stated.")
    countries: tuple[str, ...] | None = Field(description="Countries where it is valid; null when not stated.")
    shop: NamedShop = Field(description="The shop that accepts the code.")
    valid_from: str | None = Field(description="RFC 3339; null when not stated.")
    valid_until: str | None = Field(description="RFC 3339; null means open-ended, not unknown.")
    verification_status: Literal["verified_applied", "unverified"] = Field(
        description="verified_applied: worked in a real checkout. unverified: not proven either way."
    )
    last_verified_at: str | None = Field(
        description="RFC 3339 time of the last real checkout test; null if never tested."
    )
    source: str | None = Field(description="Where the code was found; null when not stated.")


class Withheld(ToolResponse):
    """How many codes are not shown, each counted once for its first reason."""

    expired: int = Field(description="validUntil has passed.")
    verified_rejected: int = Field(description="A real checkout test showed that they do not work.")
    reserved_test_domain: int = Field(description="Their shop's domain is reserved for tests.")
    policy: int = Field(description="A display policy hides them on this channel or in this country.")


class ListCouponsResponse(ToolResponse):
    """Usable codes and the balance: total_count is results plus everything withheld."""

    results: tuple[Coupon, ...] = Field(description="The usable codes, verified ones first.")
    total_count: int = Field(description="Number of codes found, withheld ones included.")
    withheld: Withheld = Field(description="Number of codes left out of results, by reason.")
    note: str = Field(description="The same counts in one sentence.")


async def run(request: ListCouponsRequest, context: ToolContext) -> dict[str, Any]:
    """List and count the coupons at the time of the call."""
    if request.shop_domains is not None:
        balances = await look_up_each(request.shop_domains, partial(_balances, context, context.most_coupons))
        if context.most_coupons is not None and sum(found.usable for found in balances if found) > context.most_coupons:
            raise TooManyCouponsError
        return wire_of_each("shops", request.shop_domains, "coupons", balances, _wire)
    if request.reference is None:
        (found,) = await _balances(context, context.most_coupons, None)
    else:
        (found,) = await look_up_each((request.reference,), partial(_balances, context, None))
    if found is None:
        raise ShopNotFoundError(request.reference)
    return _wire(found)


async def _balances(
    context: ToolContext, list_limit: int | None, shops: Sequence[str] | None
) -> tuple[Coupons | None, ...]:
    query = CouponQuery(
        shops=None if shops is None else tuple(shops),
        now_us=microseconds(context.now),
        channel=context.channel,
        country=context.country,
        list_limit=list_limit,
    )
    return await context.search.coupons(query)


def _wire(found: Coupons) -> dict[str, Any]:
    if found.views is None:
        raise TooManyCouponsError
    total = found.usable + found.expired + found.rejected + found.reserved + found.policy
    return {
        # As the indexer wrote them, which is as `Coupon` describes them.
        "results": list(found.views),
        "total_count": total,
        "withheld": {
            "expired": found.expired,
            "verified_rejected": found.rejected,
            "reserved_test_domain": found.reserved,
            "policy": found.policy,
        },
        "note": _note(total, found),
    }


def _note(total: int, found: Coupons) -> str:
    codes = "code" if total == 1 else "codes"
    return (
        f"{total} {codes} found: {found.usable} usable, {found.expired} expired, {found.rejected} rejected in a real "
        f"checkout, {found.reserved} on reserved test domains, {found.policy} withheld by display policy."
    )


LIST_COUPONS = Tool(
    name="list_coupons",
    title="List coupons",
    description=(
        "List the discount codes that may work now: of one shop; of each of shop_domains, in shops as in "
        "get_shops; or of all shops, unless the error too_many_coupons asks for one. verificationStatus "
        "verified_applied: worked in a real checkout, safe to recommend; unverified: not proven either way, so say "
        "so. Codes that are expired, rejected, on test domains or hidden by a display policy are only counted, in "
        "withheld, total_count and note. Empty results with total_count above 0: codes exist, but none may be "
        "shown. validUntil null: open-ended. lastVerifiedAt null: never tested. An unknown shop is shop_not_found "
        "(null in shops), not an empty list."
    ),
    request=ListCouponsRequest,
    response=ListCouponsResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    errors=(ShopNotFoundError, TooManyCouponsError),
    examples=(
        Example("Of one shop", {"shop_domain": "rimona.internal"}),
        Example("A shop whose only code is withheld", {"shop_domain": "breezy-parcels.internal"}),
        Example("Of several shops, one of them unknown", {"shop_domains": ["rimona.internal", "nobody.internal"]}),
    ),
    extra_cost=extra_reads,
    note=BEYOND_SEVERAL,
    several=response_of_each("shops", "coupons", ListCouponsResponse, "the coupons of its shop"),
)
