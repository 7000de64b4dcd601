"""What a visit has seen of a catalogue, so that rules find their subjects in it.

Exploring never judges: what has not the right shape is passed over here, and it is the rules that ask for it again.
"""

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shop_directory.conformance.rule import NothingToSeeError, RuleBrokenError

if TYPE_CHECKING:
    from shop_directory.conformance.replies import Reply
    from shop_directory.conformance.visit import Visit

_PROBED: Final = 8


@dataclass(frozen=True, slots=True)
class SeenShop:
    """A shop as find_shop shows it.

    Attributes:
        id: its id.
        name: its display name; hostile text, never shown unbounded.
        domain: its domain.
        categories: its slugs, the primary one first.
        countries: its markets; None where they are not stated.
        offers: ids of some of its offers.
    """

    id: str
    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...] | None
    offers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenCategory:
    """A category as list_categories shows it."""

    slug: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The subjects of a catalogue.

    Attributes:
        answered: the address answered like a Shop Directory, at least once.
        shops: the first hundred of the blank query, in its order.
        categories: all that have shops.
        coupon_shops: ids of shops with a usable coupon, each once.
        codes: a usable code of each of them.
    """

    answered: bool = False
    shops: tuple[SeenShop, ...] = ()
    categories: tuple[SeenCategory, ...] = ()
    coupon_shops: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def shop(self) -> SeenShop:
        """Any shop."""
        if not self.shops:
            raise NothingToSeeError("a shop in the catalogue")
        return self.shops[0]

    def category(self, at_least: int = 1) -> SeenCategory:
        """The smallest category of at least so many shops: its pages are the shortest."""
        large = [category for category in self.categories if category.count >= at_least]
        if not large:
            raise NothingToSeeError(f"a category of {at_least} shops or more")
        return min(large, key=lambda category: (category.count, category.slug))

    def offer(self) -> str:
        """The id of any offer."""
        for shop in self.shops:
            if shop.offers:
                return shop.offers[0]
        raise NothingToSeeError("an offer among the first shops")


async def explore(visit: "Visit") -> Seen:
    """Look around once. The requests are those that rules will ask again, so they cost nothing more."""
    page = await _results(visit.tool("find_shop", {"query": "", "limit": 100}))
    categories = await _results(visit.tool("list_categories", {}))
    shops = tuple(_shops(page or ()))
    codes = await _codes(visit, shops)
    return Seen(
        answered=page is not None or categories is not None or await _is_described(visit),
        shops=shops,
        categories=tuple(_categories(categories or ())),
        coupon_shops=tuple(codes),
        codes=tuple(codes.values()),
    )


async def _codes(visit: "Visit", shops: Sequence[SeenShop]) -> dict[str, str]:
    """A usable code of each shop that has one; of the first shops where the list of all is too long."""
    coupons = await _results(visit.all_coupons())
    if coupons is None:
        lists = [await _results(visit.tool("list_coupons", {"shop_domain": shop.id})) for shop in shops[:_PROBED]]
        coupons = [coupon for found in lists for coupon in found or ()]
    codes: dict[str, str] = {}
    for coupon in coupons:
        match coupon:
            case {"code": str(code), "shop": {"id": str(shop_id)}}:
                codes.setdefault(shop_id, code)
    return codes


async def _results(asked: "Awaitable[Reply]") -> list[Any] | None:
    """The results of a tool; None where there are none to be read."""
    try:
        document = _document(await asked)
    except RuleBrokenError:
        return None
    match document:
        case {"results": list(results)}:
            return results
    return None


def _document(reply: "Reply") -> Any:  # noqa: ANN401 - any JSON value
    try:
        return reply.document().value
    except RuleBrokenError:
        return None


async def _is_described(visit: "Visit") -> bool:
    """Whether there is an OpenAPI document with our first tool."""
    try:
        document = (await visit.get("/openapi.json")).document().value
    except RuleBrokenError:
        return False
    match document:
        case {"paths": {"/tool/find_shop": dict()}}:
            return True
    return False


def _shops(results: Iterable[Any]) -> Iterable[SeenShop]:
    for result in results:
        match result:
            case {"id": str(shop_id), "name": str(name), "domain": str(domain), "category": str(category)}:
                slugs = _texts(result.get("categories")) or (category,)
                countries = _texts(result.get("countries")) or None
                offers = result.get("offers")
                yield SeenShop(shop_id, name, domain, slugs, countries, tuple(_offer_ids(offers)))


def _categories(results: Iterable[Any]) -> Iterable[SeenCategory]:
    for result in results:
        match result:
            case {"slug": str(slug), "category": str(name), "count": int(count)} if count > 0:
                yield SeenCategory(slug, name, count)


def _offer_ids(offers: object) -> Iterable[str]:
    for offer in offers if isinstance(offers, list) else ():
        match offer:
            case {"offer_id": str(offer_id)}:
                yield offer_id


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
