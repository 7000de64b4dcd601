"""resolve_checkout_url: a validated URL for an offer; plain unless the affiliate one is asked for (A10)."""

from typing import Annotated

from pydantic import Field

from service.context import ToolContext
from service.tools.checkout import CheckoutUrl, OfferRequest, resolve
from service.tools.fields import Switch
from service.tools.money import ShopKey
from service.tools.tool import READS, Example, TokenRule, Tool

DESCRIPTION = (
    "Get the URL where an offer can be bought. It is always https and leads to the shop's own domain or to a checkout "
    "host that is known for the shop; an offer without such a URL is the error no_valid_checkout_url. With affiliate "
    "true the URL goes through the shop's affiliate network if it has one; affiliate.applied says whether it does. "
    "Nothing is fetched or bought. Find offer_id in the offers of get_shop."
)


class ResolveCheckoutUrlRequest(OfferRequest):
    """Which offer, and by which way."""

    affiliate: Annotated[
        Switch, Field(description="Go through the shop's affiliate network, if it has one. false unless given.")
    ] = False


async def run(request: ResolveCheckoutUrlRequest, context: ToolContext) -> CheckoutUrl:
    """Resolve the URL."""
    found = await resolve(request.offer_id, context, affiliate=request.affiliate)
    return CheckoutUrl(
        offer_id=found.offer.id,
        shop=ShopKey.model_validate(found.offer.shop),
        checkout_url=found.url,
        affiliate=found.affiliate,
    )


RESOLVE_CHECKOUT_URL = Tool(
    name="resolve_checkout_url",
    title="Resolve an offer's checkout URL",
    description=DESCRIPTION,
    request=ResolveCheckoutUrlRequest,
    response=CheckoutUrl,
    token=TokenRule.OPTIONAL,
    effects=READS,
    run=run,
    examples=(
        Example("The plain URL", {"offer_id": "off_lumen-larch-desk-lamp"}),
        Example("Through the programme", {"offer_id": "off_lumen-larch-desk-lamp", "affiliate": True}),
    ),
)
