"""What the two checkout tools share: the look-up, and the choice between the plain URL and the network's (A10, A11).

Which URLs are valid was decided by the indexer; nothing is fetched, and no other URL can come out of here.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from service.errors import NoValidCheckoutUrlError, OfferNotFoundError
from service.search.related_records import Offer
from service.tools.context import ToolContext
from service.tools.fields import OfferId
from service.tools.money import ShopKey
from service.tools.request import NoShopRequest
from service.tools.tool import ToolResponse


class OfferRequest(NoShopRequest):
    """Which offer."""

    offer_id: Annotated[OfferId, Field(description="As get_shop shows it.", examples=["off_0042"])]


class Affiliate(ToolResponse):
    """Whether the URL goes through an affiliate network."""

    applied: Annotated[bool, Field(description="The URL goes through the network.")]
    network: Annotated[str | None, Field(description="The network's name; null when not applied.")]
    reason: Annotated[
        Literal["not_requested", "no_program"] | None, Field(description="Why it is not applied; null when it is.")
    ]


class CheckoutUrl(ToolResponse):
    """A URL that leads to the offer in its shop."""

    offer_id: Annotated[str, Field(description="The offer's id.")]
    shop: Annotated[ShopKey, Field(description="The shop that sells it.")]
    checkout_url: Annotated[str, Field(description="An https URL of the shop, or of the network when applied.")]
    affiliate: Annotated[Affiliate, Field(description="Whether a network is in between.")]


@dataclass(frozen=True, slots=True)
class Resolved:
    """An offer with the URL to hand out.

    Attributes:
        offer: the offer.
        url: the URL.
        program: the programme that the URL goes through; None for the plain URL.
        affiliate: what callers are told of that.
    """

    offer: Offer
    url: str
    program: dict[str, Any] | None
    affiliate: Affiliate


async def resolve(offer_id: str, context: ToolContext, *, affiliate: bool) -> Resolved:
    """Find the offer and choose its URL.

    Raises:
        OfferNotFoundError: no public shop has it.
        NoValidCheckoutUrlError: it has no URL that may be handed out.
    """
    offer = await context.search.offer(offer_id)
    if offer is None:
        raise OfferNotFoundError
    if offer.checkout_url is None:
        raise NoValidCheckoutUrlError
    if affiliate and offer.affiliate is not None:
        program = dict(offer.affiliate)
        told = Affiliate(applied=True, network=program["network"], reason=None)
        return Resolved(offer, program["url"], program, told)
    told = Affiliate(applied=False, network=None, reason="no_program" if affiliate else "not_requested")
    return Resolved(offer, offer.checkout_url, None, told)
