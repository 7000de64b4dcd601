"""Finding the subjects of a catalogue. Nothing is judged here: a response of another shape is passed over."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final

from shop_directory.conformance.exchange import Reply
from shop_directory.conformance.findings import RuleBrokenError
from shop_directory.conformance.service_under_test import Visit
from shop_directory.conformance.subjects import Seen, SeenCategory, SeenShop

_PROBED: Final = 8


async def explore(visit: Visit) -> Seen:
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


async def _codes(visit: Visit, shops: Sequence[SeenShop]) -> dict[str, str]:
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


async def _results(asked: Awaitable[Reply]) -> list[Any] | None:
    """The results of a tool; None where there are none to be read."""
    try:
        document = _document(await asked)
    except RuleBrokenError:
        return None
    match document:
        case {"results": list(results)}:
            return results
    return None


def _document(reply: Reply) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return reply.document().value
    except RuleBrokenError:
        return None


async def _is_described(visit: Visit) -> bool:
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
