"""What the project has settled where the interface is silent: references, bounds, orders, and help with errors."""

from typing import Any, Final

from shop_directory.conformance.exchange import Reply, as_json
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.rules.trust import KINDS
from shop_directory.conformance.service_under_test import Visit, expect_equal

_FULL: Final = 100
_MOST_OFFERS: Final = 3
_MOST_OFFERS_ALONE: Final = 100
_LONGEST: Final = 2048
_DEEPEST: Final = 100_000
_SHOPS: Final = 8


@rule("R1", "All spellings of a host, pasted URLs included, are the same shop; ids keep their case.")
async def _references(visit: Visit) -> None:
    shop = visit.seen.shop()
    plain = await _shop(visit, shop.domain)
    plain.answer()
    pasted = f"https://www.{shop.domain}/sale?from=check#top"
    for spelling in (shop.domain.upper(), f" {shop.domain} ", f"{shop.domain}.", f"http://{shop.domain}", pasted):
        expect_equal(plain, await _shop(visit, spelling), "the same shop by every spelling of its domain")
    (await _shop(visit, f"no-such-part.{shop.domain}")).problem(404, "shop_not_found")
    if (other := shop.id.swapcase()) not in {shop.id, *(one.id for one in visit.seen.shops)}:
        (await _shop(visit, other)).problem(404, "shop_not_found")


@rule("R1.bounds", "A reference that is blank or over 2,048 characters is 400; a host that can't be one is unknown.")
async def _bounds_of_references(visit: Visit) -> None:
    (await _shop(visit, " ")).problem(400, "invalid_input")
    (await _shop(visit, "a" * (_LONGEST + 1))).problem(400, "invalid_input")
    (await _shop(visit, f"{'a' * 300}.example")).problem(404, "shop_not_found")


@rule("R2", "shop_domain and shop_id_or_domain are one field; two values that differ are 400.")
async def _one_field(visit: Visit) -> None:
    shop = visit.seen.shop()
    same = {"shop_domain": shop.domain, "shop_id_or_domain": f"https://{shop.domain}/"}
    expect_equal(await _shop(visit, shop.domain), await visit.tool("get_shop", same), "the same shop as by one of them")
    (await visit.tool("get_shop", {**same, "shop_id_or_domain": visit.unknown_domain})).problem(400, "invalid_input")


@rule("R4", "country is an assigned alpha-2 code or XK in any case; others, UK and XX among them, are 400.")
async def _countries(visit: Visit) -> None:
    capitals = await _found(visit, country="DE", limit=_MOST_OFFERS)
    capitals.answer()
    expect_equal(capitals, await _found(visit, country="de", limit=_MOST_OFFERS), "the same answer in small letters")
    (await _found(visit, country="XK", limit=1)).answer()
    for code in ("UK", "XX", "DEU", "1"):
        (await _found(visit, country=code, limit=1)).problem(400, "invalid_input")


@rule("M6.nothing_left", "With every word dropped the category is browsed, or without one the answer is empty.")
async def _nothing_left(visit: Visit) -> None:
    category = visit.seen.category()
    nowhere = visit.unknown_id.replace("_", "")
    browsed = await _found(visit, category=category.slug, limit=_FULL)
    reply = await _found(visit, query=nowhere, category=category.slug, limit=_FULL)
    if reply.answer()["results"].values() != browsed.answer()["results"].values():
        raise reply.broken("the shops of the category, as every word was dropped")
    (await _found(visit, query=nowhere)).answer()["results"].expect([])


@rule("M8", "Bounds are refused and never clamped; 50.0 is a whole number, strings and booleans are none.")
async def _bounds(visit: Visit) -> None:
    whole = await _found(visit, limit=5)
    as_decimal = await visit.tool("find_shop", b'{"query":"","limit":5.0}')
    expect_equal(whole, as_decimal, "the same answer for 5.0 as for 5")
    wrong: tuple[dict[str, Any], ...] = (
        {"limit": "5"},
        {"limit": True},
        {"limit": 2.5},
        {"limit": _FULL + 1},
        {"offset": -1},
        {"query": "a" * 201},
        {"query": " ".join("abcdefghijklm")},
    )
    for arguments in wrong:
        (await _found(visit, **arguments)).problem(400, "invalid_input")
    (await _found(visit, offset=_DEEPEST, limit=1)).problem(400, "page_too_deep")


@rule("M11", "Categories are listed by count, largest first, then by slug.")
async def _order_of_categories(visit: Visit) -> None:
    results = (await visit.tool("list_categories", {})).answer()["results"]
    order = [(-category["count"].whole(), category["slug"].text()) for category in results.each()]
    if order != sorted(order):
        raise results.broken("the largest first, equal ones by slug")


@rule(
    "M11.other_lists", "Coupons are listed verified ones first, the latest tested first; trust signals by their kinds."
)
async def _other_orders(visit: Visit) -> None:
    for shop_id in visit.seen.coupon_shops[:_SHOPS]:
        results = (await visit.tool("list_coupons", {"shop_domain": shop_id})).answer()["results"]
        tested = [
            (coupon["verificationStatus"].text(), coupon["lastVerifiedAt"].value or "") for coupon in results.each()
        ]
        if tested != sorted(tested, reverse=True):
            raise results.broken("verified_applied first, in each the latest tested first")
    for shop in visit.seen.shops[:_SHOPS] if visit.token else ():
        signals = (await visit.tool("get_trust", {"shop_domain": shop.domain})).answer()["signals"]
        kinds = [kind for signal in signals.each() if (kind := signal["kind"].text()) in KINDS]
        if kinds != sorted(kinds, key=KINDS.index):
            raise signals.broken(f"the order {', '.join(KINDS)}")
    if not visit.seen.coupon_shops:
        raise NothingToSeeError("a usable coupon")


@rule("A1.offers", "A shop comes with at most 3 offers in find_shop and 100 in get_shop, and with the number of all.")
async def _offers(visit: Visit) -> None:
    page = (await _found(visit, limit=_FULL)).answer()["results"]
    alone = (await _shop(visit, visit.seen.shop().domain)).answer()
    for shop, most in (*((shop, _MOST_OFFERS) for shop in page.each()), (alone, _MOST_OFFERS_ALONE)):
        there, total = len(shop["offers"].values()), shop["offers_total"].whole()
        if there != min(total, most):
            raise shop["offers"].broken(f"{min(total, most)} of {total} offers")


@rule("E4", "An unknown category is answered with similar slugs that there are.")
async def _similar_slugs(visit: Visit) -> None:
    slug = visit.seen.category().slug
    reply = await _found(visit, category=f"{slug}-x")
    if slug not in reply.problem(400, "unknown_category")["detail"].text():
        raise reply.broken(f"an error that proposes {slug}")


async def _shop(visit: Visit, reference: str) -> Reply:
    return await visit.tool("get_shop", {"shop_domain": reference})


async def _found(visit: Visit, **arguments: Any) -> Reply:  # noqa: ANN401 - arguments of find_shop
    return await visit.tool("find_shop", as_json({"query": "", **arguments}))
