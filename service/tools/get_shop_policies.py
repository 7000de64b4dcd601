"""get_shop_policies: a shop's statements about returns, payment, buyer protection and shipping (F8).

It is beyond the interface. The statement for exactly the asked country counts, else the one without a country, each
only for the countries that it names itself; two are never merged (F10).
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from index_mappings.countries import WORLDWIDE
from service.errors import ShopNotFoundError
from service.tools.get_shipping_policy import ShippingStatement, of_one_or_each, shipping_statement
from service.tools.get_shops import extra_reads, response_of_each
from service.tools.request import CountryCode, SeveralShopsRequest, ShopRequest
from service.tools.shop_view import ShopKey
from service.tools.tool import BEYOND_THE_INTERFACE, Example, TokenRule, Tool, ToolAnswer, ToolContext, ToolResponse
from shop_directory.search.protocol import Facts


class GetShopPoliciesRequest(SeveralShopsRequest, ShopRequest):
    """Whose statements, and for where."""

    country: CountryCode | None = Field(
        None, description="The buyer's country, ISO 3166-1 alpha-2; also used for ships_to.", examples=["AT"]
    )


class Policy(ToolResponse):
    """What every statement has."""

    country: str | None = Field(description="The country it applies to; null: no country is stated.")
    source: str = Field(description="Where it was read.")
    checked_at: str = Field(description="RFC 3339 time of the last check.")


class Returns(Policy):
    """What the shop states about returns, after schema.org's MerchantReturnPolicy."""

    category: Literal["finite", "unlimited", "not_permitted"] = Field(
        description="finite: within a period; not_permitted: the shop states that it accepts no returns."
    )
    days: int | None = Field(description="Length of a finite period in days; null when not stated.")
    counted_from: Literal["delivered", "ordered"] | None = Field(
        description="Start of the period; null when not stated."
    )
    fees: Literal["free", "paid", "unknown"] = Field(description="Whether the buyer pays for a return.")
    methods: tuple[Literal["by_mail", "in_store", "at_kiosk", "keep_product"], ...] | None = Field(
        description="Ways to return an item; null when not stated."
    )
    countries: tuple[str, ...] | None = Field(
        description="Countries where it applies, or WORLDWIDE; null when not stated."
    )
    as_stated: str | None = Field(description="In the shop's words; null when not stored.")


class PaymentMethods(Policy):
    """The payment methods that the shop states."""

    methods: tuple[str, ...] = Field(description="As the shop states them; get_trust has the measured ones.")
    as_stated: str | None = Field(description="In the shop's words; null when not stored.")


class BuyerProtection(Policy):
    """What the shop states about the protection of buyers."""

    as_stated: str = Field(description="In the shop's words.")


class GetShopPoliciesResponse(ToolResponse):
    """The statements that count for the country."""

    shop: ShopKey = Field(description="The shop that states them.")
    returns: Returns | None = Field(description="null: none that applies was collected, which is not a refusal.")
    payment_methods: PaymentMethods | None = Field(description="null: none that applies was collected.")
    buyer_protection: BuyerProtection | None = Field(description="null: none that applies was collected.")
    shipping: ShippingStatement = Field(description="The answer of get_shipping_policy.")


async def run(request: GetShopPoliciesRequest, context: ToolContext) -> ToolAnswer:
    """Look all statements up at once, or those of several shops."""
    return await of_one_or_each(request, context, "policies", lambda facts: _policies(facts, request.country))


def _policies(facts: Facts, country: str | None) -> GetShopPoliciesResponse:
    counting: dict[str, object] = {}
    for kind in ("returns", "payment_methods", "buyer_protection"):
        by_country = {stated["country"]: stated for stated in facts.policies.get(kind, ()) if _counts(stated, country)}
        counting[kind] = by_country.get(country) or by_country.get(None)
    shipping = shipping_statement(facts, country)
    return GetShopPoliciesResponse.model_validate({"shop": facts.shop, **counting, "shipping": shipping})


def _counts(stated: Mapping[str, Any], country: str | None) -> bool:
    """Whether a statement counts for a country by the countries that it is applied to; only returns state these."""
    applied_to = stated.get("countries")
    return country is None or not applied_to or country in applied_to or WORLDWIDE in applied_to


GET_SHOP_POLICIES = Tool(
    name="get_shop_policies",
    title="Get a shop's policies",
    description=(
        "Get a shop's own statements about returns, payment methods and buyer protection, each with source and "
        "time, plus shipping as in get_shipping_policy. With shop_domains, shops has one entry per shop, as in "
        "get_shops. With country, its statement applies, else the one without a country; returns that list "
        "countries apply only there. null: none was collected, which is not a verdict; statutory rights are not "
        "filled in."
    ),
    request=GetShopPoliciesRequest,
    response=GetShopPoliciesResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    errors=(ShopNotFoundError,),
    examples=(
        Example("For a buyer in Austria", {"shop_domain": "kiefernhaus.internal", "country": "AT"}),
        Example("Without a country", {"shop_domain": "lumen-larch.internal"}),
        Example("Nothing was collected, which is no verdict", {"shop_domain": "aukandarrow.internal"}),
        Example(
            "Of several shops, one of them unknown",
            {"shop_domains": ["kiefernhaus.internal", "nobody.internal"], "country": "AT"},
        ),
    ),
    extra_cost=extra_reads,
    note=f"{BEYOND_THE_INTERFACE} A call with shop_domains counts as one read for each ten entries or a part of them.",
    several=response_of_each("shops", "policies", GetShopPoliciesResponse, "the statements of its shop"),
)
