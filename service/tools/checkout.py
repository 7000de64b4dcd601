"""The shared part of the two checkout tools: the look-up, and the choice of the plain or the affiliate URL (A10, A11).

The indexer has decided which URLs are valid. Nothing is fetched, and no other URL is returned.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from service.errors import NoValidCheckoutUrlError, OfferNotFoundError
from service.tools.fields import OfferId
from service.tools.request import NoShopRequest
from service.tools.shop_view import ShopKey
from service.tools.tool import ToolContext, ToolResponse


class OfferRequest(NoShopRequest):
    """Which offer."""

    offer_id: OfferId = Field(description="As get_shop shows it.", examples=["off_0042"])


class Affiliate(ToolResponse):
    """Whether the URL goes through an affiliate network."""

    applied: bool = Field(description="The URL goes through the network.")
    network: str | None = Field(description="The network's name; null when not applied.")
    reason: Literal["not_requested", "no_program"] | None = Field(description="Why it is not applied; null when it is.")


class CheckoutUrl(ToolResponse):
    """A URL that leads to the offer in its shop."""

    offer_id: str = Field(description="The offer's id.")
    shop: ShopKey = Field(description="The shop that sells it.")
    checkout_url: str = Field(description="An https URL of the shop, or of the network when applied.")
    affiliate: Affiliate = Field(description="Whether a network is in between.")


async def resolve(
    offer_id: str, context: ToolContext, *, affiliate: bool
) -> tuple[CheckoutUrl, Mapping[str, Any] | None]:
    """Find the offer and choose its URL.

    Returns:
        The URL, and the affiliate programme that it goes through; None for the plain URL.

    Raises:
        OfferNotFoundError: no public shop has it.
        NoValidCheckoutUrlError: it has no safe checkout URL.
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
