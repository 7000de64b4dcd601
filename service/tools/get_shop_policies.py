"""get_shop_policies: what a shop states about returns, payment, buyer protection and shipping (F8).

It is beyond the interface. The statement for exactly the asked country counts, else the one without a country; two are
never merged (F10).
"""

from typing import Literal

from pydantic import Field

from service.tools.get_shipping_policy import ShippingStatement, facts_of, shipping_statement
from service.tools.request import CountryCode, ShopRequest
from service.tools.shop_view import ShopKey
from service.tools.tool import BEYOND_THE_INTERFACE, Example, TokenRule, Tool, ToolContext, ToolResponse


class GetShopPoliciesRequest(ShopRequest):
    """Whose statements, and for where."""

    country: CountryCode | None = Field(
        None, description="The buyer's, ISO 3166-1 alpha-2, also for ships_to.", examples=["AT"]
    )


class Policy(ToolResponse):
    """What every statement has."""

    country: str | None = Field(description="The country that it is for; null: stated without one.")
    source: str = Field(description="Where it was read.")
    checked_at: str = Field(description="RFC 3339 time of the last look.")


class Returns(Policy):
    """What the shop states about returns, after schema.org's MerchantReturnPolicy."""

    category: Literal["finite", "unlimited", "not_permitted"] = Field(
        description="finite: within a time; not_permitted: the shop states that it takes nothing back."
    )
    days: int | None = Field(description="Days of a finite time; null when not stated.")
    counted_from: Literal["delivered", "ordered"] | None = Field(
        description="What the days are counted from; null when not stated."
    )
    fees: Literal["free", "paid", "unknown"] = Field(description="What a return costs the buyer.")
    methods: tuple[Literal["by_mail", "in_store", "at_kiosk", "keep_product"], ...] | None = Field(
        description="Ways to return; null when not stated."
    )
    countries: tuple[str, ...] | None = Field(
        description="Countries that the shop applies it to, or WORLDWIDE; null when not stated."
    )
    as_stated: str | None = Field(description="In the shop's words; null when not stored.")


class PaymentMethods(Policy):
    """The payment methods that the shop states."""

    methods: tuple[str, ...] = Field(description="As the shop states them; those measured are in get_trust.")
    as_stated: str | None = Field(description="In the shop's words; null when not stored.")


class BuyerProtection(Policy):
    """What the shop states about the protection of buyers."""

    as_stated: str = Field(description="In the shop's words.")


class GetShopPoliciesResponse(ToolResponse):
    """The statements that count for the country."""

    shop: ShopKey = Field(description="Whose statements they are.")
    returns: Returns | None = Field(description="null: none that counts was collected, which is no refusal.")
    payment_methods: PaymentMethods | None = Field(description="null: none that counts was collected.")
    buyer_protection: BuyerProtection | None = Field(description="null: none that counts was collected.")
    shipping: ShippingStatement = Field(description="The answer of get_shipping_policy.")


async def run(request: GetShopPoliciesRequest, context: ToolContext) -> GetShopPoliciesResponse:
    """Look all statements up at once."""
    facts = await facts_of(request, context)
    counting: dict[str, object] = {}
    for kind in ("returns", "payment_methods", "buyer_protection"):
        by_country = {stated["country"]: stated for stated in facts.policies.get(kind, ())}
        counting[kind] = by_country.get(request.country) or by_country.get(None)
    shipping = shipping_statement(facts, request.country)
    return GetShopPoliciesResponse.model_validate({"shop": facts.shop, **counting, "shipping": shipping})


GET_SHOP_POLICIES = Tool(
    name="get_shop_policies",
    title="Get a shop's policies",
    description=(
        "Get what a shop states about returns, payment methods and buyer protection, each with source and time, and "
        "its shipping as get_shipping_policy has it. With country, the statement for that country counts, else the one "
        "without. null: neither was collected, which is no verdict; rights that a law gives are not filled in."
    ),
    request=GetShopPoliciesRequest,
    response=GetShopPoliciesResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(
        Example("For a buyer in Austria", {"shop_domain": "kiefernhaus.internal", "country": "AT"}),
        Example("Without a country", {"shop_domain": "lumen-larch.internal"}),
        Example("Nothing was collected, which is no verdict", {"shop_domain": "aukandarrow.internal"}),
    ),
    note=BEYOND_THE_INTERFACE,
)
