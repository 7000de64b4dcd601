"""resolve_checkout_url: a validated URL for an offer; the plain one unless the affiliate one is requested (A10).

The indexer has decided which URLs are valid; nothing is fetched. monetize_offer shares the look-up (A11).
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from service.errors import NoValidCheckoutUrlError, OfferNotFoundError
from service.tools.request import NoShopRequest, OfferId, Switch
from service.tools.shop_view import ShopKey
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse


class OfferRequest(NoShopRequest):
    """Which offer."""

    offer_id: OfferId = Field(description="The id from get_shop.", examples=["off_0042"])


class Affiliate(ToolResponse):
    """Whether the URL goes through an affiliate network."""

    applied: bool = Field(description="Whether the URL goes through the network.")
    network: str | None = Field(description="The network's name; null when not applied.")
    reason: Literal["not_requested", "no_program"] | None = Field(description="Why it is not applied; null when it is.")


class CheckoutUrl(ToolResponse):
    """A URL that leads to the offer in its shop."""

    offer_id: str = Field(description="The offer's id.")
    shop: ShopKey = Field(description="The shop that sells it.")
    checkout_url: str = Field(description="An https URL of the shop, or of the network when applied.")
    affiliate: Affiliate = Field(description="Whether an affiliate network is used.")


async def resolve(
    offer_id: str, context: ToolContext, *, affiliate: bool
) -> tuple[CheckoutUrl, Mapping[str, Any] | None]:
    """The URL of an offer, and the affiliate programme that it goes through; None for the plain URL.

    Raises OfferNotFoundError if no public shop has it, NoValidCheckoutUrlError if it has no safe checkout URL.
    """
    offer = await context.search.offer(offer_id)
    if offer is None:
        raise OfferNotFoundError
    if offer.checkout_url is None:
        raise NoValidCheckoutUrlError
    program = offer.affiliate if affiliate else None
    if program is None:
        url, network, reason = offer.checkout_url, None, "no_program" if affiliate else "not_requested"
    else:
        url, network, reason = program["url"], program["network"], None
    checkout = CheckoutUrl.model_validate(
        {
            "offer_id": offer.id,
            "shop": offer.shop,
            "checkout_url": url,
            "affiliate": {"applied": program is not None, "network": network, "reason": reason},
        }
    )
    return checkout, program


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
    description=(
        "Get the URL where an offer can be bought: https, on the shop's own domain or on a checkout host known for "
        "the shop; otherwise the error no_valid_checkout_url. affiliate true: through the shop's affiliate network "
        "if there is one; affiliate.applied says whether it was. Nothing is fetched or bought. get_shop lists "
        "offers."
    ),
    request=ResolveCheckoutUrlRequest,
    response=CheckoutUrl,
    token=TokenRule.OPTIONAL,
    run=run,
    errors=(NoValidCheckoutUrlError, OfferNotFoundError),
    examples=(
        Example("The plain URL", {"offer_id": "off_lumen-larch-desk-lamp"}),
        Example("Through the programme", {"offer_id": "off_lumen-larch-desk-lamp", "affiliate": True}),
    ),
)
