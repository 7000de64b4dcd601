"""Finding the subjects of a catalogue. Nothing is judged here: a response of another shape is passed over."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final

from shop_directory.conformance.exchange import Response
from shop_directory.conformance.findings import RuleBrokenError
from shop_directory.conformance.service_under_test import ServiceUnderTest
from shop_directory.conformance.subjects import KnownCategory, KnownShop, Subjects

_PROBED: Final = 8


async def explore(service: ServiceUnderTest) -> Subjects:
    """Find the subjects. Rules send the same requests again, so that these cost no additional ones."""
    page = await _results(service.tool("find_shop", {"query": "", "limit": 100}))
    categories = await _results(service.tool("list_categories", {}))
    shops = tuple(_shops(page or ()))
    codes = await _codes(service, shops)
    return Subjects(
        answered=page is not None or categories is not None or await _is_described(service),
        shops=shops,
        categories=tuple(_categories(categories or ())),
        coupon_shops=tuple(codes),
        codes=tuple(codes.values()),
    )


async def _codes(service: ServiceUnderTest, shops: Sequence[KnownShop]) -> dict[str, str]:
    """A usable code of each shop that has one; of the first shops only where the list of all is too long."""
    coupons = await _results(service.all_coupons())
    if coupons is None:
        lists = [await _results(service.tool("list_coupons", {"shop_domain": shop.id})) for shop in shops[:_PROBED]]
        coupons = [coupon for found in lists for coupon in found or ()]
    codes: dict[str, str] = {}
    for coupon in coupons:
        match coupon:
            case {"code": str(code), "shop": {"id": str(shop_id)}}:
                codes.setdefault(shop_id, code)
    return codes


async def _results(pending: Awaitable[Response]) -> list[Any] | None:
    """The results of a tool; None where the response has no readable list of results."""
    match await _document(pending):
        case {"results": list(results)}:
            return results
    return None


async def _document(pending: Awaitable[Response]) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a response; None where it can't be read."""
    try:
        return (await pending).document().value
    except RuleBrokenError:
        return None


async def _is_described(service: ServiceUnderTest) -> bool:
    """Whether the OpenAPI document describes find_shop."""
    match await _document(service.get("/openapi.json")):
        case {"paths": {"/tool/find_shop": dict()}}:
            return True
    return False


def _shops(results: Iterable[Any]) -> Iterable[KnownShop]:
    for result in results:
        match result:
            case {"id": str(shop_id), "name": str(name), "domain": str(domain), "category": str(category)}:
                slugs = _texts(result.get("categories")) or (category,)
                countries = _texts(result.get("countries")) or None
                offers = result.get("offers")
                yield KnownShop(shop_id, name, domain, slugs, countries, tuple(_offer_ids(offers)))


def _categories(results: Iterable[Any]) -> Iterable[KnownCategory]:
    for result in results:
        match result:
            case {"slug": str(slug), "category": str(name), "count": int(count)} if count > 0:
                yield KnownCategory(slug, name, count)


def _offer_ids(offers: object) -> Iterable[str]:
    for offer in offers if isinstance(offers, list) else ():
        match offer:
            case {"offer_id": str(offer_id)}:
                yield offer_id


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
