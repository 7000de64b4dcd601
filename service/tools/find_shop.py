"""find_shop: search shops by name, domain or category word, with filters, counts and paging (M3 to M8, F5 to F7)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field, ValidationInfo, field_validator

from index_mappings.countries import MARKET_NAMES
from index_mappings.values import microseconds
from service.errors import FieldError, PageTooDeepError, UnknownCategoryError
from service.tools.request import (
    CountryCode,
    NoShopRequest,
    PageLimit,
    PageOffset,
    QueryText,
    Switch,
    Text,
    fault,
    invalid,
    listed,
    one_of,
)
from service.tools.shop_view import ShopView, shop_wire
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse, is_none
from shop_directory.search.bounds import DEFAULT_LIMIT
from shop_directory.search.plan import FACET_FIELDS
from shop_directory.search.protocol import CouponQuery, FacetCounts, FindQuery, Found, Position
from shop_directory.typeahead.suggestions import SuggestedShop

MAX_DEPTH: Final = 100_000
MOST_VALUES: Final = 50
_CLOSEST: Final = 3
MOST_FILTERS: Final = 20
# Raised when the order of results changes, so that no cursor of another order is taken.
_CURSOR_VERSION: Final = 2
# The lengths in bytes of a cursor's digest, of what precedes the rank, and of the popularity that a rank begins with.
_DIGEST: Final = 7
_HEAD: Final = 2 + _DIGEST
_POPULARITY: Final = 8

SlugList = Annotated[tuple[Text, ...], *listed(MOST_FILTERS, "slugs of list_categories", type="string")]
Countries = Annotated[tuple[CountryCode, ...], *listed(MOST_FILTERS, "country codes", type="string")]
FacetKinds = Annotated[
    tuple[Annotated[str, *one_of(tuple(FACET_FIELDS))], ...],
    *listed(len(FACET_FIELDS), f"of {', '.join(FACET_FIELDS)}", type="string", enum=list(FACET_FIELDS)),
]


class FindShopRequest(NoShopRequest):
    """What to search for."""

    query: QueryText = Field(
        description="At most 12 words; each one narrows the search.",
        examples=["harbour books", "harbour-lane-books.example", ""],
    )
    country: CountryCode | None = Field(
        None,
        description="ISO 3166-1 alpha-2: only shops that sell there or state no markets.",
        examples=["DE"],
    )
    limit: PageLimit = Field(DEFAULT_LIMIT, description="Maximum number of shops.")
    offset: PageOffset = Field(0, description="Number of matches to skip; with limit at most 100,000.")
    category: Text | None = Field(None, description="A slug of list_categories.", examples=["books"])
    countries: Countries | None = Field(None, description="Any of these, instead of country.", examples=[["DE", "AT"]])
    categories: SlugList | None = Field(None, description="Any of these, instead of category.", examples=[["books"]])
    ships_to: CountryCode | None = Field(
        None, description="Destination: only shops for which get_shipping_policy says yes.", examples=["AT"]
    )
    include_unsettled: Switch = Field(
        default=False, description="With ships_to: also shops for which it says unknown, last."
    )
    has_code: Switch = Field(
        default=False,
        description="Only shops with a code that list_coupons would return now, valid in ships_to, else country; codes "
        "blocked in some country may not count.",
    )
    verified_code: Switch = Field(default=False, description="As has_code, with a code that worked in a real checkout.")
    facets: FacetKinds | None = Field(None, description="Count all matches by these.", examples=[["category"]])
    cursor: Text | None = Field(
        None, description="next_cursor of the previous page. Keep all other parameters; omit offset."
    )

    @field_validator("include_unsettled")
    @classmethod
    def _has_destination(cls, value: bool, others: ValidationInfo) -> bool:  # noqa: FBT001 - pydantic's signature
        if value and others.data.get("ships_to", "") is None:
            raise fault("needs ships_to")
        return value


# A cursor is of a search: of all parameters but those that say where in it the page is.
_COMPARED: Final = tuple(
    name for name in FindShopRequest.model_fields if name not in {"cursor", "offset", *NoShopRequest.model_fields}
)


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
    shops: int = Field(description="Number of shops that it fits, with the filters applied.")


class BroaderQuery(ToolResponse):
    """A query with fewer words that finds shops."""

    query: str = Field(description="The query, to send with the same filters.")
    left_out: tuple[str, ...] = Field(description="Words of your query that were left out.")
    total_count: int = Field(description="Number of shops that it finds.")
    results: tuple[NearShop, ...] = Field(description="Up to 5 of them, best first.")


class FacetValue(ToolResponse):
    """A value of a facet."""

    value: str = Field(description="Value to filter by; WORLDWIDE is not a filter.")
    name: str = Field(description="Display name.")
    count: int = Field(description="Number of matches that have it.")


class FacetView(ToolResponse):
    """The counts of one kind, over all matches without the filter of that kind."""

    values: tuple[FacetValue, ...] = Field(description=f"Up to {MOST_VALUES}, largest first.")
    missing: int = Field(description="Number of matches without a value.")
    other_count: int = Field(description="Number of further values.")


class FindShopResponse(ToolResponse):
    """One page of matches; word_counts and broader are there only when several words found nothing together."""

    results: tuple[FoundShop, ...] = Field(description="The shops of this page, best first.")
    total_count: int = Field(description="Number of all matches, not only on this page.")
    truncated: bool = Field(description="More matches follow this page: see next_cursor, or raise offset.")
    ignored_terms: tuple[str, ...] = Field(
        description="Words that fit no shop and were dropped: the results answer a shorter query."
    )
    category_truncated: bool = Field(
        description="A word fits more categories than were searched: there may be more matches."
    )
    did_you_mean: tuple[NearShop, ...] = Field(
        description="Up to 3 shops whose name the query, or an ignored word, misspells or contains; none is a match. "
        "Beyond the interface."
    )
    word_counts: tuple[WordShops, ...] | None = Field(
        None,
        description="Only when several words find nothing together: how many shops each fits. Beyond the interface.",
        exclude_if=is_none,
    )
    broader: tuple[BroaderQuery, ...] | None = Field(
        None,
        description="Only with word_counts: up to 3 queries without some of the words. Beyond the interface.",
        exclude_if=is_none,
    )
    unsettled_count: int | None = Field(
        None,
        description="Only with ships_to: for how many shops that match otherwise get_shipping_policy says unknown. "
        "Beyond the interface.",
        exclude_if=is_none,
    )
    next_cursor: str | None = Field(
        None, description="Only when truncated: cursor of the next page. Beyond the interface.", exclude_if=is_none
    )
    facets: dict[str, FacetView] | None = Field(
        None,
        description="By requested kind: category, or country (the stated market). Beyond the interface.",
        exclude_if=is_none,
    )


async def run(request: FindShopRequest, context: ToolContext) -> dict[str, Any]:
    """Search one page."""
    if request.offset + request.limit > MAX_DEPTH:
        raise PageTooDeepError
    query = _find_query(request, context)
    await _check_categories(request, context)
    found = await context.search.find(query)
    wire = page_wire(found)
    if found.last is not None:
        wire["next_cursor"] = cursor_of(request, found.last)
    if query.facets:
        wire["facets"] = await _facets_wire(found.facets, context)
    return wire


def _find_query(request: FindShopRequest, context: ToolContext) -> FindQuery:
    """The search of a request; InvalidInputError if parameters contradict each other, or the cursor is wrong."""
    for single, several in (("country", "countries"), ("category", "categories")):
        if getattr(request, single) is not None and getattr(request, several) is not None:
            raise invalid((FieldError(several, f"and {single} are two filters of one kind; give one of them"),))
    coupons = None
    if request.has_code or request.verified_code:
        coupons = CouponQuery(None, microseconds(context.now), context.channel, context.country, None)
    return FindQuery(
        request.query,
        request.countries or ((request.country,) if request.country else ()),
        request.categories or ((request.category,) if request.category else ()),
        request.offset,
        request.limit,
        request.ships_to,
        request.include_unsettled,
        coupons,
        request.verified_code,
        _position(request),
        request.facets or (),
    )


def page_wire(found: Found) -> dict[str, Any]:
    """One page of matches in the wire form of `FindShopResponse`, without cursor and facets."""
    wire: dict[str, Any] = {
        "results": [shop_wire(shop) for shop in found.shops],
        "total_count": found.total,
        "truncated": found.last is not None,
        "ignored_terms": found.ignored,
        "category_truncated": found.category_truncated,
        "did_you_mean": list(map(_near_wire, found.did_you_mean)),
    }
    if found.word_counts is not None:
        wire["word_counts"] = [{"word": count.word, "shops": count.shops} for count in found.word_counts]
    if found.broader is not None:
        wire["broader"] = [
            {
                "query": one.query,
                "left_out": one.left_out,
                "total_count": one.total,
                "results": list(map(_near_wire, one.shops)),
            }
            for one in found.broader
        ]
    if found.unsettled_count is not None:
        wire["unsettled_count"] = found.unsettled_count
        settled = len(found.shops) - found.unsettled
        for index, shop in enumerate(wire["results"]):
            shop["ships_to"] = "yes" if index < settled else "unknown"
    return wire


def _near_wire(shop: SuggestedShop) -> dict[str, str]:
    return {"id": shop.id, "name": shop.name, "domain": shop.domain}


async def _facets_wire(facets: Mapping[str, FacetCounts], context: ToolContext) -> dict[str, Any]:
    names = {"category": {one.slug: one.name for one in await context.search.categories()}, "country": MARKET_NAMES}
    return {kind: _facet_wire(facets[kind], names[kind]) for kind in FACET_FIELDS if kind in facets}


def _facet_wire(counts: FacetCounts, names: Mapping[str, str]) -> dict[str, Any]:
    # A change of the index may be visible a moment before the categories of its stamp.
    known = [(value, count) for value, count in counts.values.items() if value in names]
    known.sort(key=lambda one: (-one[1], one[0]))
    return {
        "values": [{"value": value, "name": names[value], "count": count} for value, count in known[:MOST_VALUES]],
        "missing": counts.missing,
        "other_count": max(0, len(known) - MOST_VALUES),
    }


def cursor_of(request: FindShopRequest, position: Position) -> str:
    """The cursor of the page behind a position in the answer of a request: it has a digest of both."""
    popularity, shop_id = position.rank[: 2 * _POPULARITY], position.rank[2 * _POPULARITY :]
    place = bytes((position.level,)) + bytes.fromhex(popularity) + shop_id.encode()
    asked = orjson.dumps([getattr(request, name) for name in _COMPARED])
    digest = sha256(place + asked).digest()[:_DIGEST]
    return urlsafe_b64encode(bytes((_CURSOR_VERSION,)) + digest + place).decode().rstrip("=")


def _position(request: FindShopRequest) -> Position | None:
    """The position of a request's cursor, which is right if it is what `cursor_of` makes of that position."""
    if request.cursor is None:
        return None
    if request.offset:
        raise invalid((FieldError("cursor", "and offset are two beginnings of the page; give one of them"),))
    try:
        data = urlsafe_b64decode(request.cursor + "=" * (-len(request.cursor) % 4))
        rank = data[_HEAD : _HEAD + _POPULARITY].hex() + data[_HEAD + _POPULARITY :].decode("ascii")
        position = Position(data[_HEAD - 1], rank)
        if cursor_of(request, position) == request.cursor:
            return position
    except (ValueError, IndexError):
        pass
    message = (
        "is no next_cursor of this search: send it unchanged, with all other parameters as they were, or leave it out "
        "to begin again"
    )
    raise invalid((FieldError("cursor", message),))


async def _check_categories(request: FindShopRequest, context: ToolContext) -> None:
    asked = {f"categories.{index}": slug for index, slug in enumerate(request.categories or ())}
    if request.category is not None:
        asked["category"] = request.category
    known = {category.slug for category in await context.search.categories()} if asked else ()
    unknown = next(((field, slug) for field, slug in asked.items() if slug not in known), None)
    if unknown is None:
        return
    field, slug = unknown
    closest = await context.search.closest_categories(slug, _CLOSEST)
    names = ", ".join(closest)
    raise UnknownCategoryError(
        f"No shop carries this category. {f'Closest: {names}. ' if names else ''}"
        "Call list_categories for the slugs that exist.",
        [FieldError(field, "must be a slug of list_categories" + (f"; closest: {names}" if names else ""))],
    )


FIND_SHOP = Tool(
    name="find_shop",
    title="Find shops",
    description=(
        "Search shops by name, domain or what they sell (lidl, nike shoes, book stores); an empty query browses. "
        "For a known domain or id, call get_shop. Every word must fit the same shop: its name, domain or category. "
        "With other words, a country name also matches (lidl germany); only the country parameter filters. limit 5 "
        "is enough for one shop (600 tokens; the default 50: 7,500). Call list_categories before a category "
        "filter: only its slugs are accepted. unsettled_count: shops that do not state whether they ship there, "
        "not a refusal. truncated: repeat the call with cursor. ignored_terms fit no shop and were dropped: tell "
        "the user. category_truncated: some categories of a word were left out. did_you_mean: shops whose name the "
        "query misspells or contains. They are not results: ask which is meant. broader: the words together find "
        "nothing, but these queries do. Show their shops, and say which words (left_out) were left out."
    ),
    request=FindShopRequest,
    response=FindShopResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    errors=(PageTooDeepError, UnknownCategoryError),
    examples=(
        Example("By a part of the name", {"query": "kiefernhaus"}),
        Example("Browse a category in one country", {"query": "", "category": "garden", "country": "DE", "limit": 2}),
        Example("With a typing error", {"query": "kifernhaus"}),
        Example(
            "That ships to Austria and has a code", {"query": "garden", "ships_to": "AT", "has_code": True, "limit": 2}
        ),
        Example("Two words that fit no shop together, and broader queries", {"query": "kiefernhaus toys"}),
        Example("Counts by category and market", {"query": "", "facets": ["category", "country"], "limit": 1}),
    ),
)
