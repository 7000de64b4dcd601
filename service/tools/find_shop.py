"""find_shop: search shops by name, domain or category word, with filters and paging (M3 to M8)."""

from typing import Any, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from index_mappings.values import microseconds
from service.errors import FieldError, PageTooDeepError, UnknownCategoryError
from service.search.protocol import CouponQuery, FindQuery, Found
from service.tools.request import CountryCode, NoShopRequest, PageLimit, PageOffset, QueryText, Switch, Text, fault
from service.tools.shop_view import ShopView, shop_wire
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse, is_none

MAX_DEPTH: Final = 100_000
_CLOSEST: Final = 3


class FindShopRequest(NoShopRequest):
    """What to search for."""

    query: QueryText = Field(
        description="At most 12 words; more words narrow the search.",
        examples=["harbour books", "harbour-lane-books.example", ""],
    )
    country: CountryCode | None = Field(
        None,
        description="ISO 3166-1 alpha-2, such as GB. Keeps shops that sell there or do not state their markets.",
        examples=["DE"],
    )
    limit: PageLimit = Field(50, description="The most shops to return.")
    offset: PageOffset = Field(0, description="Matches to pass over, to page; with limit at most 100,000.")
    category: Text | None = Field(None, description="A slug exactly as list_categories returns it.", examples=["books"])
    ships_to: CountryCode | None = Field(
        None, description="Destination: keeps shops for which get_shipping_policy says yes.", examples=["AT"]
    )
    include_unsettled: Switch = Field(
        default=False, description="With ships_to: also shops for which it says unknown, after all others."
    )
    has_code: Switch = Field(default=False, description="true keeps shops of which list_coupons lists a code now.")

    @field_validator("include_unsettled")
    @classmethod
    def _has_destination(cls, value: bool, others: ValidationInfo) -> bool:  # noqa: FBT001 - pydantic's signature
        if value and others.data.get("ships_to", "") is None:
            raise fault("needs ships_to")
        return value


class NearShop(ToolResponse):
    """A shop whose name the query misspells, or holds among other words."""

    id: str = Field(description="The directory's id of the shop.")
    name: str = Field(description="Display name.")
    domain: str = Field(description="The shop's domain.")


class FoundShop(ShopView):
    """A shop that matches."""

    ships_to: Literal["yes", "unknown"] | None = Field(
        None, description="Only with ships_to: what get_shipping_policy says.", exclude_if=is_none
    )


class WordShops(ToolResponse):
    """A word of the query and the shops that it fits."""

    word: str = Field(description="The word as typed.")
    shops: int = Field(description="How many shops it fits, within country and category.")


class FindShopResponse(ToolResponse):
    """One page of matches; word_counts is there only when several words found nothing together."""

    results: tuple[FoundShop, ...] = Field(description="The shops of this page, best first.")
    total_count: int = Field(description="The number of all matches, not only of this page.")
    truncated: bool = Field(description="More matches follow this page: raise offset.")
    ignored_terms: tuple[str, ...] = Field(
        description="Words that fit no shop and were dropped: the results answer a narrower question."
    )
    category_truncated: bool = Field(
        description="A word fits more categories than were searched: the matches are a part."
    )
    did_you_mean: tuple[NearShop, ...] = Field(
        description="Up to 3 shops whose name the query, or an ignored word, misspells or holds among other words; no "
        "match is among them. "
        "Beyond the interface."
    )
    word_counts: tuple[WordShops, ...] | None = Field(
        None,
        description="Only when two or more words have no match: how many shops each of them fits, to see which one to "
        "leave out. Beyond the interface.",
        exclude_if=is_none,
    )
    unsettled_count: int | None = Field(
        None,
        description="Only with ships_to: how many shops match otherwise and do not say whether they ship there. Beyond "
        "the interface.",
        exclude_if=is_none,
    )


async def run(request: FindShopRequest, context: ToolContext) -> dict[str, Any]:
    """Search one page."""
    if request.offset + request.limit > MAX_DEPTH:
        raise PageTooDeepError
    if request.category is not None:
        await _check_category(request.category, context)
    coupons = None
    if request.has_code:
        coupons = CouponQuery(None, microseconds(context.now), context.channel, context.country, None)
    query = FindQuery(
        request.query,
        request.country,
        request.category,
        request.offset,
        request.limit,
        request.ships_to,
        request.include_unsettled,
        coupons,
    )
    return page_wire(await context.search.find(query), request.offset)


def page_wire(found: Found, offset: int) -> dict[str, Any]:
    """One page of matches, of which `offset` are before it, in the wire form of `FindShopResponse`."""
    wire: dict[str, Any] = {
        "results": [shop_wire(shop) for shop in found.shops],
        "total_count": found.total,
        "truncated": offset + len(found.shops) < found.total,
        "ignored_terms": found.ignored,
        "category_truncated": found.category_truncated,
        "did_you_mean": [{"id": shop.id, "name": shop.name, "domain": shop.domain} for shop in found.did_you_mean],
    }
    if found.word_counts is not None:
        wire["word_counts"] = [{"word": count.word, "shops": count.shops} for count in found.word_counts]
    if found.unsettled_count is not None:
        wire["unsettled_count"] = found.unsettled_count
        settled = len(found.shops) - found.unsettled
        for index, shop in enumerate(wire["results"]):
            shop["ships_to"] = "yes" if index < settled else "unknown"
    return wire


async def _check_category(slug: str, context: ToolContext) -> None:
    if slug in {category.slug for category in await context.search.categories()}:
        return
    closest = await context.search.closest_categories(slug, _CLOSEST)
    names = ", ".join(closest)
    raise UnknownCategoryError(
        f"No shop carries this category. {f'Closest: {names}. ' if names else ''}"
        "Call list_categories for the slugs that exist.",
        [FieldError("category", "must be a slug of list_categories" + (f"; closest: {names}" if names else ""))],
    )


FIND_SHOP = Tool(
    name="find_shop",
    title="Find shops",
    description=(
        "Search shops by name, domain or what they sell (lidl, nike shoes, book stores), or browse a category with an "
        "empty query. With the domain or id known, call get_shop. Every word must fit the same shop: its name, domain "
        "or category, next to other words also its country (lidl germany); only country is a filter. limit 5 is enough "
        "to find one shop (up to 600 tokens; 10: 1,500; the default 50: 7,500). Call list_categories before you filter "
        "by category: only its slugs are accepted. unsettled_count: so many more do not say whether they ship to "
        "ships_to, which is no refusal. truncated: more follow, raise offset. ignored_terms fit no shop and "
        "were dropped: the results answer a narrower question, say so. category_truncated: a word fits so many "
        "categories that some were left out. did_you_mean names shops that the query misspells or holds among other "
        "words: suggestions, not results. word_counts: how many shops each word fits, when together they find none: "
        "leave one out."
    ),
    request=FindShopRequest,
    response=FindShopResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(
        Example("By a part of the name", {"query": "kiefernhaus"}),
        Example("Browse a category in one country", {"query": "", "category": "garden", "country": "DE", "limit": 2}),
        Example("With a typing error", {"query": "kifernhaus"}),
        Example(
            "That ships to Austria and has a code", {"query": "garden", "ships_to": "AT", "has_code": True, "limit": 2}
        ),
        Example("Two words that fit no shop together", {"query": "kiefernhaus toys"}),
    ),
)
