"""get_shops: up to 100 shops by their domains or ids in one call (A14).

It is beyond the interface: a caller with links to many shops would otherwise need a call for each of them.
"""

from typing import Any, Final

from pydantic import Field

from service.tools.request import NoShopRequest, ReferenceList, reduce_reference
from service.tools.shop_view import ShopView, shop_wire
from service.tools.tool import BEYOND_THE_INTERFACE, Example, TokenRule, Tool, ToolContext, ToolResponse

_REFERENCES_A_READ: Final = 10


class GetShopsRequest(NoShopRequest):
    """Which shops."""

    shop_domains: ReferenceList = Field(
        description="Each a domain in any form, or an id.",
        examples=[["harbour-lane-books.example", "shop_0042"]],
    )


class ShopEntry(ToolResponse):
    """An entry of the request with its shop."""

    shop_domain: str = Field(description="The entry of shop_domains, as sent.")
    shop: ShopView | None = Field(description="The shop as find_shop shows it; null: there is none.")


class GetShopsResponse(ToolResponse):
    """An entry for each one of the request."""

    results: tuple[ShopEntry, ...] = Field(description="One entry for each entry of shop_domains, in the same order.")
    found: int = Field(description="The number of entries of results whose shop is not null.")


def extra_reads(request: GetShopsRequest) -> int:
    """The reads of a call beyond its first: one for every ten references, or a part of ten, beyond the first ten."""
    return (len(request.shop_domains) - 1) // _REFERENCES_A_READ


async def run(request: GetShopsRequest, context: ToolContext) -> dict[str, Any]:
    """Look up all shops in one request to the engine."""
    lookups = [reduce_reference(reference) for reference in request.shop_domains]
    known = [lookup for lookup in lookups if lookup is not None]
    shops = dict(zip(known, await context.search.shops(known), strict=True))
    found = [None if lookup is None else shops[lookup] for lookup in lookups]
    results = [
        {"shop_domain": reference, "shop": None if shop is None else shop_wire(shop)}
        for reference, shop in zip(request.shop_domains, found, strict=True)
    ]
    return {"results": results, "found": sum(shop is not None for shop in found)}


GET_SHOPS = Tool(
    name="get_shops",
    title="Get several shops",
    description=(
        "Get up to 100 shops by their domains or ids in one call; for one shop with all aliases and offers, call "
        "get_shop. results has one entry for each entry of shop_domains, in the same order, a repeated one included; "
        "shop is null where the directory has no such shop, which is no verdict. The call counts as one read for each "
        "ten entries or a part of them."
    ),
    request=GetShopsRequest,
    response=GetShopsResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(
        Example(
            "By domain, by id, and one that is unknown",
            {"shop_domains": ["kiefernhaus.internal", "shop_lumen-larch", "nobody.internal"]},
        ),
    ),
    extra_cost=extra_reads,
    note=BEYOND_THE_INTERFACE,
)
