"""get_shop: one shop by its domain or id; a shop under review is unknown (V2)."""

from typing import Any, Final

from pydantic import Field

from index_mappings.documents import Shop
from service.errors import ShopNotFoundError
from service.tools.request import OffersOffset, ShopRequest
from service.tools.shop_view import ShopView, shop_wire
from service.tools.tool import Example, TokenRule, Tool, ToolContext
from shop_directory.search.bounds import reduce_reference

OFFERS: Final = 100


class GetShopRequest(ShopRequest):
    """Which shop."""

    offers_offset: OffersOffset = Field(
        0, description="Number of offers to skip. Beyond the last one, offers is empty."
    )


async def public_shop(
    reference: str | None, context: ToolContext, *, offers: int = 0, offers_offset: int = 0, field: str | None = None
) -> Shop:
    """The public shop of a reference, with some of its offers; raises ShopNotFoundError, which may name the field."""
    lookup = reduce_reference(reference or "")
    shop = None if lookup is None else await context.search.shop(lookup, offers, offers_offset)
    if shop is None:
        raise ShopNotFoundError(reference, field)
    return shop


async def run(request: GetShopRequest, context: ToolContext) -> dict[str, Any]:
    """Look the shop up."""
    shop = await public_shop(request.reference, context, offers=OFFERS, offers_offset=request.offers_offset)
    return shop_wire(shop, most_aliases=None)


GET_SHOP = Tool(
    name="get_shop",
    title="Get one shop",
    description=(
        "Get one shop by its domain, a link or its id; to search by name, call find_shop. A subdomain does not "
        "match its parent domain. countries null: no markets are stated. offers has up to 100 of offers_total, "
        "newest first; raise offers_offset for more. An unknown shop is the error shop_not_found, never a guess."
    ),
    request=GetShopRequest,
    response=ShopView,
    token=TokenRule.OPTIONAL,
    run=run,
    errors=(ShopNotFoundError,),
    examples=(
        Example("By domain", {"shop_domain": "kiefernhaus.internal"}),
        Example("By a pasted link", {"shop_domain": "https://www.tsuki.internal/new?page=2"}),
    ),
)
