"""Decisions where the interface is silent: references, bounds, orders, and help with errors."""

from typing import Any, Final

from shop_directory.conformance.exchange import Response, as_json
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.rules.trust import KINDS
from shop_directory.conformance.service_under_test import ServiceUnderTest, expect_equal

_FULL: Final = 100
_MOST_OFFERS: Final = 3
_MOST_OFFERS_ALONE: Final = 100
_LONGEST: Final = 2048
_DEEPEST: Final = 100_000
_SHOPS: Final = 8
_VERDICTS: Final = ("likely_same", "insufficient_evidence", "likely_different")


@rule(
    "R1",
    "All spellings of a host, pasted URLs and links included, are the same shop; a sub-domain is told from its parent; "
    "ids are case-sensitive.",
)
async def _references(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    plain = await _shop(service, shop.domain)
    plain.json()
    pasted = f"https://www.{shop.domain}/sale?from=check#top"
    spellings = (shop.domain.upper(), f" {shop.domain} ", f"{shop.domain}.", f"http://{shop.domain}", pasted)
    for spelling in (*spellings, f"<{pasted}>", f'"{shop.domain}",', f"[Shop no. 1]({pasted})"):
        expect_equal(plain, await _shop(service, spelling), "the same shop by every spelling of its domain")
    below = await _shop(service, f"no-such-part.{shop.domain}")
    below.problem(404, "shop_not_found")
    advice = "the same sentence about every sub-domain, which says that its parent is not looked up"
    expect_equal(await _shop(service, f"no-such-part.{service.unknown_domain}"), below, advice)
    if below.body == (await _shop(service, service.unknown_domain)).body:
        raise below.broken(advice)
    if (other := shop.id.swapcase()) not in {shop.id, *(one.id for one in service.subjects.shops)}:
        (await _shop(service, other)).problem(404, "shop_not_found")


@rule("R1.bounds", "A reference that is blank or over 2,048 characters is 400; an impossible host is an unknown shop.")
async def _bounds_of_references(service: ServiceUnderTest) -> None:
    (await _shop(service, " ")).problem(400, "invalid_input")
    (await _shop(service, "a" * (_LONGEST + 1))).problem(400, "invalid_input")
    (await _shop(service, f"{'a' * 300}.example")).problem(404, "shop_not_found")


@rule("R2", "shop_domain and shop_id_or_domain are one field; two values that differ are 400.")
async def _one_field(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    same = {"shop_domain": shop.domain, "shop_id_or_domain": f"https://{shop.domain}/"}
    expect_equal(
        await _shop(service, shop.domain), await service.tool("get_shop", same), "the same shop as by one of them"
    )
    (await service.tool("get_shop", {**same, "shop_id_or_domain": service.unknown_domain})).problem(
        400, "invalid_input"
    )


@rule("R4", "country is an assigned alpha-2 code or XK in any case; others, UK and XX among them, are 400.")
async def _countries(service: ServiceUnderTest) -> None:
    upper = await _found(service, country="DE", limit=_MOST_OFFERS)
    upper.json()
    expect_equal(
        upper, await _found(service, country="de", limit=_MOST_OFFERS), "the same response for the code in lower case"
    )
    (await _found(service, country="XK", limit=1)).json()
    for code in ("UK", "XX", "DEU", "1"):
        (await _found(service, country=code, limit=1)).problem(400, "invalid_input")


@rule("M6.nothing_left", "When every word is dropped, the category is browsed; without a category the result is empty.")
async def _nothing_left(service: ServiceUnderTest) -> None:
    category = service.subjects.category()
    no_match = service.unknown_id.replace("_", "")
    browsed = await _found(service, category=category.slug, limit=_FULL)
    response = await _found(service, query=no_match, category=category.slug, limit=_FULL)
    if response.json()["results"].values() != browsed.json()["results"].values():
        raise response.broken("the shops of the category, as every word was dropped")
    (await _found(service, query=no_match)).json()["results"].expect([])


@rule("M8", "A value out of bounds is refused, never clamped; 50.0 is an integer, strings and booleans are not.")
async def _bounds(service: ServiceUnderTest) -> None:
    whole = await _found(service, limit=5)
    as_decimal = await service.tool("find_shop", b'{"query":"","limit":5.0}')
    expect_equal(whole, as_decimal, "the same answer for 5.0 and for 5")
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
        (await _found(service, **arguments)).problem(400, "invalid_input")
    (await _found(service, offset=_DEEPEST, limit=1)).problem(400, "page_too_deep")


@rule("M11", "Categories are listed by count, largest first, then by slug.")
async def _order_of_categories(service: ServiceUnderTest) -> None:
    results = (await service.tool("list_categories", {})).json()["results"]
    order = [(-category["count"].whole(), category["slug"].text()) for category in results.each()]
    if order != sorted(order):
        raise results.broken("the largest first, those of equal count by slug")


@rule(
    "M11.other_lists",
    "Coupons are listed verified ones first, the latest tested first; trust signals by their kinds; merge candidates "
    "by verdict, then agreeing evidence.",
)
async def _other_orders(service: ServiceUnderTest) -> None:
    for shop_id in service.subjects.coupon_shops[:_SHOPS]:
        results = (await service.tool("list_coupons", {"shop_domain": shop_id})).json()["results"]
        order = [
            (coupon["verificationStatus"].text(), coupon["lastVerifiedAt"].value or "") for coupon in results.each()
        ]
        if order != sorted(order, reverse=True):
            raise results.broken("verified_applied first, and within each status the latest tested first")
    for shop in service.subjects.shops[:_SHOPS] if service.token else ():
        signals = (await service.tool("get_trust", {"shop_domain": shop.domain})).json()["signals"]
        kinds = [kind for signal in signals.each() if (kind := signal["kind"].text()) in KINDS]
        if kinds != sorted(kinds, key=KINDS.index):
            raise signals.broken(f"the order {', '.join(KINDS)}")
        candidates = (await service.tool("resolve_conflict", {"from_shop_id": shop.id})).json()["candidates"]
        ranks = [
            (
                _VERDICTS.index(one["verdict"].one_of(*_VERDICTS)),
                -sum(e["agrees"].flag() for e in one["evidence"].each()),
            )
            for one in candidates.each()
        ]
        if ranks != sorted(ranks):
            raise candidates.broken(f"the order {', '.join(_VERDICTS)}, and within each most agreeing evidence first")
    if not service.subjects.coupon_shops:
        raise NothingToSeeError("a usable coupon")


@rule("A1.offers", "A shop has at most 3 offers in find_shop and 100 in get_shop, and the number of all its offers.")
async def _offers(service: ServiceUnderTest) -> None:
    page = (await _found(service, limit=_FULL)).json()["results"]
    alone = (await _shop(service, service.subjects.shop().domain)).json()
    for shop, most in (*((shop, _MOST_OFFERS) for shop in page.each()), (alone, _MOST_OFFERS_ALONE)):
        shown, total = len(shop["offers"].values()), shop["offers_total"].whole()
        if shown != min(total, most):
            raise shop["offers"].broken(f"{min(total, most)} of {total} offers")


@rule("E4", "The error for an unknown category proposes similar slugs that exist.")
async def _similar_slugs(service: ServiceUnderTest) -> None:
    slug = service.subjects.category().slug
    response = await _found(service, category=f"{slug}-x")
    if slug not in response.problem(400, "unknown_category")["detail"].text():
        raise response.broken(f"an error that proposes {slug}")


async def _shop(service: ServiceUnderTest, reference: str) -> Response:
    return await service.tool("get_shop", {"shop_domain": reference})


async def _found(service: ServiceUnderTest, **arguments: Any) -> Response:  # noqa: ANN401 - arguments of find_shop
    return await service.tool("find_shop", as_json({"query": "", **arguments}))
