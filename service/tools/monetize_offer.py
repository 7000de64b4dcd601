"""monetize_offer: an offer's URL through the shop's affiliate programme, with its disclosure (A11)."""

from pydantic import Field

from service.errors import NoValidCheckoutUrlError, OfferNotFoundError
from service.tools.request import Switch
from service.tools.resolve_checkout_url import CheckoutUrl, OfferRequest, resolve
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse


class MonetizeOfferRequest(OfferRequest):
    """Which offer."""

    affiliate: Switch = Field(True, description="Use the affiliate network if there is one.")


class Monetization(ToolResponse):
    """The programme that the URL goes through."""

    network: str = Field(description="The network's name.")
    program_id: str = Field(description="The programme's id in that network.")
    commission_stated: str | None = Field(description="As the source states it; null when not stated.")
    disclosure: str | None = Field(description="Text that must be shown to people; null when not stated.")


class MonetizedOffer(CheckoutUrl):
    """The URL, and the programme behind it."""

    monetization: Monetization | None = Field(description="null when no programme applies.")


async def run(request: MonetizeOfferRequest, context: ToolContext) -> MonetizedOffer:
    """Resolve the URL through the programme."""
    checkout, program = await resolve(request.offer_id, context, affiliate=request.affiliate)
    monetization = program and {name: program[name] for name in Monetization.model_fields}
    return MonetizedOffer.model_validate({**dict(checkout), "monetization": monetization})


MONETIZE_OFFER = Tool(
    name="monetize_offer",
    title="Monetize an offer",
    description=(
        "Get an offer's URL through the shop's affiliate programme, with the disclosure that must be shown with "
        "it. Without a programme: the shop's plain URL, with affiliate.applied false and monetization null. For a "
        "URL without affiliate links, call resolve_checkout_url. Needs an API token."
    ),
    request=MonetizeOfferRequest,
    response=MonetizedOffer,
    token=TokenRule.REQUIRED,
    run=run,
    errors=(NoValidCheckoutUrlError, OfferNotFoundError),
    examples=(
        Example("Through the programme", {"offer_id": "off_lumen-larch-desk-lamp"}),
        Example("A shop without a programme", {"offer_id": "off_7e0d5223d1c6"}),
    ),
    note="Of several programmes of a shop the first by the network's name, then by its id, is used.",
)
