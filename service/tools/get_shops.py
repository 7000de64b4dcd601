"""get_shops: up to 100 shops by their domains or ids in one call (A14).

It is beyond the interface: a caller with links to many shops would otherwise need a call for each of them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from pydantic import Field, create_model

from service.tools.request import NoShopRequest, ReferenceList, SeveralShopsRequest
from service.tools.shop_view import ShopView, shop_wire
from service.tools.tool import BEYOND_THE_INTERFACE, Example, TokenRule, Tool, ToolContext, ToolResponse
from shop_directory.search.bounds import reduce_reference

T = TypeVar("T")

_REFERENCES_A_READ: Final = 10
_ANSWER: Final = "The answer for this shop; null if the shop is unknown."


class GetShopsRequest(NoShopRequest):
    """Which shops."""

    shop_domains: ReferenceList = Field(
        description="Domains in any form, or ids.",
        examples=[["harbour-lane-books.example", "shop_0042"]],
    )


def response_of_each(
    key: str, name: str, view: type[ToolResponse], what: str, *, view_is: str = _ANSWER
) -> type[ToolResponse]:
    """The model of `wire_of_each`, whose entries have `what` of their shop."""
    sent = Field(description="The entry of shop_domains, as sent.")
    fields: dict[str, Any] = {"shop_domain": (str, sent), name: (view | None, Field(description=view_is))}
    doc = f"An entry of the request with {what}."
    entry = create_model("Entry", __base__=ToolResponse, __doc__=doc, **fields)
    entries = Field(description="One entry per entry of shop_domains, in the same order.")
    verb = "are" if name.endswith("s") else "is"
    found = Field(description=f"Number of entries whose {name} {verb} not null.")
    answer: dict[str, Any] = {key: (tuple[entry, ...], entries), "found": (int, found)}
    return create_model("Entries", __base__=ToolResponse, **answer)


def extra_reads(request: GetShopsRequest | SeveralShopsRequest) -> int:
    """The reads of a call beyond its first: one for every ten references, or a part of ten, beyond the first ten."""
    return max(0, len(request.shop_domains or ()) - 1) // _REFERENCES_A_READ


async def look_up_each(
    references: Sequence[str], look_up: Callable[[Sequence[str]], Awaitable[Sequence[T | None]]]
) -> list[T | None]:
    """What one request to the engine finds for each reference as sent; None for one of no shop."""
    lookups = [reduce_reference(reference) for reference in references]
    known = tuple(lookup for lookup in lookups if lookup is not None)
    found = dict(zip(known, await look_up(known), strict=True))
    return [None if lookup is None else found[lookup] for lookup in lookups]


def wire_of_each(
    key: str, references: Sequence[str], name: str, found: Sequence[T | None], view: Callable[[T], dict[str, Any]]
) -> dict[str, Any]:
    """An answer with an entry for each reference as sent, which has the view of what was found under `name`."""
    entries = [
        {"shop_domain": reference, name: None if one is None else view(one)}
        for reference, one in zip(references, found, strict=True)
    ]
    return {key: entries, "found": sum(one is not None for one in found)}


async def run(request: GetShopsRequest, context: ToolContext) -> dict[str, Any]:
    """Look up all shops in one request to the engine."""
    shops = await look_up_each(request.shop_domains, context.search.shops)
    return wire_of_each("results", request.shop_domains, "shop", shops, shop_wire)


GET_SHOPS = Tool(
    name="get_shops",
    title="Get several shops",
    description=(
        "Check which of up to 100 domains or ids are in the directory. results has one entry per entry of "
        "shop_domains, in order and with duplicates: the shop, or null if the directory does not have it, which is "
        "not a verdict. get_shop has all aliases and offers. Each ten entries begun count as one read."
    ),
    request=GetShopsRequest,
    response=response_of_each(
        "results",
        "shop",
        ShopView,
        "its shop",
        view_is="The shop as in find_shop; null if the directory does not have it.",
    ),
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
