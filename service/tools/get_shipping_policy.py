"""get_shipping_policy: a shop's statements about its shipping, and whether that covers a country (A7)."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from index_mappings.countries import Verdict, ships_to
from service.errors import ShopNotFoundError
from service.tools.get_shops import extra_reads, look_up_each, response_of_each, wire_of_each
from service.tools.request import CountryCode, SeveralShopsRequest, ShopRequest
from service.tools.shop_view import Money, ShopKey
from service.tools.tool import BEYOND_SEVERAL, Example, TokenRule, Tool, ToolAnswer, ToolContext, ToolResponse, is_none
from shop_directory.search.protocol import Facts


class GetShippingPolicyRequest(SeveralShopsRequest, ShopRequest):
    """Whose shipping, and to where."""

    country: CountryCode | None = Field(
        None, description="Destination, ISO 3166-1 alpha-2, for ships_to.", examples=["AT"]
    )


class DeliveryTime(ToolResponse):
    """The delivery time that the shop claims."""

    min_days: int | None = Field(description="Minimum days; null when not stated.")
    max_days: int | None = Field(description="Maximum days; null when not stated.")
    as_stated: str | None = Field(description="In the shop's words; null when not stored.")


class ShippingStatement(ToolResponse):
    """The statement; ships_to is there only when a country was given."""

    shop: ShopKey = Field(description="The shop that states it.")
    collected: bool = Field(description="false: no statement was collected, which is not a refusal.")
    destinations: tuple[str, ...] | None = Field(
        description="Countries and groups that the shop lists; null when not stated."
    )
    excluded: tuple[str, ...] | None = Field(
        description="Countries and groups that the shop excludes from destinations; null when not stated. "
        "Beyond the interface."
    )
    destinations_exhaustive: bool = Field(description="Whether the shop says that the list is complete.")
    delivery_time: DeliveryTime | None = Field(description="What the shop claims; null when not stated.")
    free_shipping_threshold: Money | None = Field(
        description="Order value from which shipping is free; null when not stated."
    )
    checked_at: str | None = Field(description="RFC 3339 time of the last check; null when not known.")
    source: Literal["policy_page", "structured_data"] | None = Field(
        description="Where it was read; null when not known."
    )
    ships_to: Verdict | None = Field(
        None, description="Only with country: whether the shop states that it ships there.", exclude_if=is_none
    )


async def run(request: GetShippingPolicyRequest, context: ToolContext) -> ToolAnswer:
    """Look the statement up, or those of several shops."""
    return await of_one_or_each(request, context, "shipping", lambda facts: shipping_statement(facts, request.country))


async def of_one_or_each(
    request: SeveralShopsRequest, context: ToolContext, name: str, view: Callable[[Facts], ToolResponse]
) -> ToolAnswer:
    """The view of what is known of one shop, or of each of several, in one request to the engine.

    Raises ShopNotFoundError if it is one shop and unknown.
    """
    if request.shop_domains is not None:
        found = await look_up_each(request.shop_domains, context.search.facts)
        return wire_of_each("shops", request.shop_domains, name, found, lambda facts: view(facts).model_dump())
    (facts,) = await look_up_each((request.reference or "",), context.search.facts)
    if facts is None:
        raise ShopNotFoundError(request.reference)
    return view(facts)


def shipping_statement(facts: Facts, country: str | None) -> ShippingStatement:
    """What a shop states of its shipping, with a verdict on the country, if there is one."""
    stated = facts.shipping or {}
    return ShippingStatement.model_validate(
        {
            **{name: stated.get(name) for name in ShippingStatement.model_fields},
            "shop": facts.shop,
            "collected": facts.shipping is not None,
            "excluded": stated.get("excluded") or None,
            "destinations_exhaustive": stated.get("destinations_exhaustive", False),
            "ships_to": None if country is None else ships_to(facts.shipping, country),
        }
    )


GET_SHIPPING_POLICY = Tool(
    name="get_shipping_policy",
    title="Get a shop's shipping statement",
    description=(
        "Get a shop's own statement about shipping: destinations, delivery time, free-shipping threshold, and when "
        "and where it was read. With shop_domains, shops has one entry per shop, as in get_shops. It has no "
        "carrier or price. ships_to unknown: the statement does not settle it. collected false: no statement was "
        "collected. Neither is a refusal. Destinations are countries or groups such as EU, minus those in "
        "excluded; ships_to expands both."
    ),
    request=GetShippingPolicyRequest,
    response=ShippingStatement,
    token=TokenRule.OPTIONAL,
    run=run,
    errors=(ShopNotFoundError,),
    examples=(
        Example("Whether it ships to Austria", {"shop_domain": "kiefernhaus.internal", "country": "AT"}),
        Example("The statement alone", {"shop_domain": "bottega-dellaquilone.internal"}),
        Example("Nothing was gathered, which is no verdict", {"shop_domain": "aukandarrow.internal", "country": "AT"}),
        Example(
            "Of several shops, one of them unknown",
            {"shop_domains": ["kiefernhaus.internal", "nobody.internal"], "country": "AT"},
        ),
    ),
    extra_cost=extra_reads,
    note=BEYOND_SEVERAL,
    several=response_of_each("shops", "shipping", ShippingStatement, "the statement of its shop"),
)
