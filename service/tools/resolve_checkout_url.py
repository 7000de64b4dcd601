"""resolve_checkout_url: a validated URL for an offer; the plain one unless the affiliate one is requested (A10)."""

from pydantic import Field

from service.tools.checkout import CheckoutUrl, OfferRequest, resolve
from service.tools.fields import Switch
from service.tools.tool import Example, TokenRule, Tool, ToolContext

DESCRIPTION = (
    "Get the URL where an offer can be bought: https, on the shop's own domain or a checkout host known for the shop; "
    "an offer without one is the error no_valid_checkout_url. With affiliate true it goes through the shop's affiliate"
    " network if there is one; affiliate.applied says whether it does. Nothing is fetched or bought. get_shop lists "
    "offers."
)


class ResolveCheckoutUrlRequest(OfferRequest):
    """Which offer, and which URL."""

    affiliate: Switch = Field(False, description="Go through the affiliate network, if there is one.")


async def run(request: ResolveCheckoutUrlRequest, context: ToolContext) -> CheckoutUrl:
    """Resolve the URL."""
    checkout, _ = await resolve(request.offer_id, context, affiliate=request.affiliate)
    return checkout


RESOLVE_CHECKOUT_URL = Tool(
    name="resolve_checkout_url",
    title="Resolve an offer's checkout URL",
    description=DESCRIPTION,
    request=ResolveCheckoutUrlRequest,
    response=CheckoutUrl,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(
        Example("The plain URL", {"offer_id": "off_lumen-larch-desk-lamp"}),
        Example("Through the programme", {"offer_id": "off_lumen-larch-desk-lamp", "affiliate": True}),
    ),
)
