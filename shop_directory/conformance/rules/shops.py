"""Shops and categories: views, references, the list of categories, and shops under review, which look unknown."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Part, Response, RuleBrokenError, require
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import Call, Need, has, rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import (
    FULL,
    Arguments,
    KnownCategory,
    ServiceUnderTest,
    expect_equal,
)

_SAMPLE: Final = 3
_TREE: Final = frozenset({"parent", "parent_slug", "parents", "children", "ancestors", "path", "level", "depth"})
# Statuses of a tool that does not exist.
NO_TOOL: Final = frozenset({404, 405, 501})
_BY_SHOP: Final = ("get_shop", "list_coupons", "get_shipping_policy", "get_trust")
_MOST_OFFERS: Final = 3
_MOST_OFFERS_ALONE: Final = 100
_LONGEST: Final = 2048
_READ: Final = "resources/read"
# They belong to one response, or depend on how many there were before.
_VOLATILE: Final = frozenset({"date", "x-request-id", "ratelimit"})
_REQUEST_ID: Final = re.compile(rb'("x-request-id"\s*:\s*")[^"]*"')
# A tool, and its arguments that name a shop.
About = tuple[str, Callable[[str], Arguments]]
_READS: Final[tuple[About, ...]] = (
    ("get_shop", lambda shop: {"shop_domain": shop}),
    ("get_shop", lambda shop: {"shop_id_or_domain": shop}),
    ("list_coupons", lambda shop: {"shop_domain": shop}),
    ("get_shipping_policy", lambda shop: {"shop_domain": shop, "country": "DE"}),
    ("get_shop_policies", lambda shop: {"shop_domain": shop, "country": "DE"}),
    ("get_trust", lambda shop: {"shop_domain": shop}),
    ("resolve_conflict", lambda shop: {"from_shop_id": shop}),
)
_REPORTS: Final[tuple[About, ...]] = (
    ("report_code", lambda shop: {"shop_domain": shop, "code": "NOSUCHCODE", "reason": "invalid"}),
    ("report_issue", lambda shop: {"shop_domain": shop, "subject_type": "shop", "reason": "unreachable"}),
)


async def _views(service: ServiceUnderTest) -> list[Part]:
    """Shops of the responses of find_shop and get_shop."""
    page = await service.read("find_shop", {"query": "", "limit": FULL})
    with_offers = [shop for shop in service.subjects.shops if shop.offers][:1]
    without_offers = [shop for shop in service.subjects.shops if not shop.offers][:1]
    alone = [await _view(service, shop.domain) for shop in (*with_offers, *without_offers)]
    return require([*page["results"].each(), *alone], "a shop in the catalogue")


def _logo(shop: Part) -> None:
    if "logo_url" in shop:
        shop["logo_url"].must(shop["logo_url"].text().startswith("https://"), "an https URL")


ROWS: Final = (
    rule("I9", "The shop view has id, name, domain and category (a slug) as strings.")(
        has(_views, dict.fromkeys(("id", "name", "domain", "category"), Part.text))
    ),
    rule("I11", "offers is always an array, empty while there are none.")(has(_views, {"offers": Part.each})),
    rule("F21", "logo_url, where a shop has one, is an https URL.")(has(_views, _logo)),
    rule(
        "R1.bounds", "A reference that is blank or over 2,048 characters is 400; an impossible host is an unknown shop."
    )(
        Call("get_shop", {"shop_domain": " "}, 400, "invalid_input"),
        Call("get_shop", {"shop_domain": "a" * (_LONGEST + 1)}, 400, "invalid_input"),
        Call("get_shop", {"shop_domain": f"{'a' * 300}.example"}, 404, "shop_not_found"),
    ),
)


@rule(
    "I6",
    "No response has a shop under review, and the responses for it are those for an unknown shop.",
    Need.UNDER_REVIEW,
)
async def _under_review(service: ServiceUnderTest) -> None:
    for subject in service.under_review:
        await _expect_same_error(service, subject, *service.allowed(*_BY_SHOP))
        for shop in (await service.read("find_shop", {"query": subject, "limit": FULL}))["results"].each():
            shop.must(not _is(shop, subject), f"no shop {subject}")


@rule("I10", "A shop id is accepted wherever a domain is.")
async def _id_or_domain(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    for tool in service.allowed(*_BY_SHOP):
        by_domain, by_id = [await service.about_shop(tool, reference) for reference in (shop.domain, shop.id)]
        by_id.expect_status(200)
        expect_equal(by_domain, by_id, f"the same response of {tool} by id and by domain")


@rule("I12", "A category is a slug and a display name in a flat list, without parent or child.")
async def _flat(service: ServiceUnderTest) -> None:
    for category in (await _categories(service)).each():
        category["slug"].text()
        category["category"].text()
        for name in category.names():
            is_flat = name not in _TREE and not isinstance(category.value[name], dict | list)
            category.must(is_flat, f"a flat category, without {name}")


@rule("I14", "A shop of several categories counts in each of them.")
async def _in_each(service: ServiceUnderTest) -> None:
    several = [shop for shop in service.subjects.shops if len(shop.categories) > 1]
    shop = require(several, "a shop of several categories")[0]
    categories = await _categories(service)
    listed = [category["slug"].text() for category in categories.each()]
    for slug in shop.categories[:_SAMPLE]:
        categories.response.must(slug in listed, f"the category {slug} of the shop {shop.id}")
        page = await service.read("find_shop", {"query": shop.domain, "category": slug})
        is_found = shop.id in [found["id"].value for found in page["results"].each()]
        page.response.must(is_found, f"the shop {shop.id}, which carries {slug}")


@rule("I15", "A category that no public shop carries is not listed.")
async def _no_empty_category(service: ServiceUnderTest) -> None:
    for category in (await _categories(service)).each():
        category.must(category["count"].whole() > 0, "a category of at least one shop")


@rule("I52", "list_categories takes an empty object and returns every category with its number of public shops.")
async def _every_category(service: ServiceUnderTest) -> None:
    document = await service.read("list_categories")
    listed = {category["slug"].text(): category["count"].whole() for category in document["results"].each()}
    document["total_count"].expect(len(listed))
    for shop in service.subjects.shops:
        for slug in shop.categories:
            document.must(slug in listed, f"the category {slug} of the shop {shop.id}")
    for category in _sample(service):
        page = await service.read("find_shop", {"query": "", "category": category.slug, "limit": 1})
        page["total_count"].expect(listed[category.slug])


@rule("I53", "find_shop accepts exactly the slugs of list_categories.")
async def _exactly_the_slugs(service: ServiceUnderTest) -> None:
    known = {category.slug for category in service.subjects.categories}
    for category in _sample(service):
        await service.read("find_shop", {"query": "", "category": category.slug, "limit": 1})
        for other in (category.slug[:-1], f"{category.slug}-", category.slug.swapcase()):
            if other and other not in known:
                (await service.tool("find_shop", {"query": "", "category": other, "limit": 1})).problem(400)


@rule("I54", "get_shop needs shop_domain and returns the public shop view.")
async def _get_shop(service: ServiceUnderTest) -> None:
    (await service.tool("get_shop", {})).problem(400)
    shop = service.subjects.shop()
    view = await _view(service, shop.domain)
    for name, value in (("id", shop.id), ("name", shop.name), ("domain", shop.domain)):
        view[name].expect(value)


@rule("I55", "get_shop answers shop_not_found, identically, for an unknown shop and for one under review.")
async def _not_found(service: ServiceUnderTest) -> None:
    await expect_absent(service, "get_shop")


@rule("A14", "get_shops, where it exists, has one entry for each reference in order, null for an unknown shop.")
async def _get_shops(service: ServiceUnderTest) -> None:
    first = service.subjects.shop()
    known = [(shop.domain, shop.id) for shop in service.subjects.shops[:_SAMPLE]]
    unknown: list[tuple[str, str | None]] = [
        (subject, None) for subject in (service.unknown_domain, *service.under_review)
    ]
    pairs = [*unknown, *known, (first.id, first.id), *known[:1]]
    response = await service.tool("get_shops", {"shop_domains": [reference for reference, _ in pairs]})
    require(response.status not in NO_TOOL, "the tool get_shops, which the interface does not require")
    answer = response.json()
    results = answer["results"]
    results.must(len(results.values()) == len(pairs), f"{len(pairs)} entries, one for each reference")
    for entry, (reference, shop_id) in zip(results.each(), pairs, strict=True):
        entry["shop_domain"].expect(reference)
        (entry["shop"] if shop_id is None else entry["shop"]["id"]).expect(shop_id)
    answer["found"].expect(len(pairs) - len(unknown))
    for wrong in ([], [" "], ["a"] * (FULL + 1)):
        (await service.tool("get_shops", {"shop_domains": wrong})).problem(400, "invalid_input")


@rule(
    "F17", "list_coupons and get_shipping_policy, where they take shop_domains, answer each as alone, null if unknown."
)
async def _several_shops(service: ServiceUnderTest) -> None:
    known = [reference for shop in service.subjects.shops[:_SAMPLE] for reference in (shop.domain, shop.id)]
    asked = [service.unknown_domain, *service.under_review[:_SAMPLE], *known, *known[:1]]
    for tool, name in (("list_coupons", "coupons"), ("get_shipping_policy", "shipping")):
        response = await service.tool(tool, {"shop_domains": asked})
        is_taken = response.status != HTTPStatus.BAD_REQUEST
        require(is_taken, f"the field shop_domains of {tool}, which the interface does not require")
        answer = response.json()
        shops = answer["shops"]
        shops.must(len(shops.values()) == len(asked), f"{len(asked)} entries, one for each reference")
        for entry, reference in zip(shops.each(), asked, strict=True):
            entry["shop_domain"].expect(reference)
            alone = await service.about_shop(tool, reference)
            entry[name].expect(alone.json().value if alone.status == HTTPStatus.OK else None)
        answer["found"].expect(len([*known, *known[:1]]))
        for wrong in ({"shop_domains": []}, {"shop_domains": asked, "shop_domain": asked[0]}):
            (await service.tool(tool, wrong)).problem(400, "invalid_input")


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
    spellings = (shop.domain.upper(), f" {shop.domain}\r\n", f"{shop.domain}.", f"http://{shop.domain}", pasted)
    for spelling in (*spellings, f"<{pasted}>", f'"{shop.domain}",', f"[Shop no. 1]({pasted})"):
        expect_equal(plain, await _shop(service, spelling), "the same shop by every spelling of its domain")
    below = await _shop(service, f"no-such-part.{shop.domain}")
    below.problem(404, "shop_not_found")
    advice = "the same sentence about every sub-domain, which says that its parent is not looked up"
    expect_equal(await _shop(service, f"no-such-part.{service.unknown_domain}"), below, advice)
    below.must(below.body != (await _shop(service, service.unknown_domain)).body, advice)
    if (other := shop.id.swapcase()) not in {shop.id, *(one.id for one in service.subjects.shops)}:
        (await _shop(service, other)).problem(404, "shop_not_found")


@rule("R2", "shop_domain and shop_id_or_domain are one field; two values that differ are 400.")
async def _one_field(service: ServiceUnderTest) -> None:
    domain = service.shop_domain
    same = {"shop_domain": domain, "shop_id_or_domain": f"https://{domain}/"}
    expect_equal(await _shop(service, domain), await service.tool("get_shop", same), "the same shop as by one of them")
    different = {**same, "shop_id_or_domain": service.unknown_domain}
    (await service.tool("get_shop", different)).problem(400, "invalid_input")


@rule("M11", "Categories are listed by count, largest first, then by slug.")
async def _order_of_categories(service: ServiceUnderTest) -> None:
    results = await _categories(service)
    order = [(-category["count"].whole(), category["slug"].text()) for category in results.each()]
    results.must(order == sorted(order), "the largest first, those of equal count by slug")


@rule("A1.offers", "A shop has at most 3 offers in find_shop and 100 in get_shop, and the number of all its offers.")
async def _number_of_offers(service: ServiceUnderTest) -> None:
    page = await service.read("find_shop", {"query": "", "limit": FULL})
    alone = await _view(service, service.shop_domain)
    for shop, most in (*((shop, _MOST_OFFERS) for shop in page["results"].each()), (alone, _MOST_OFFERS_ALONE)):
        shown, total = len(shop["offers"].values()), shop["offers_total"].whole()
        shop["offers"].must(shown == min(total, most), f"{min(total, most)} of {total} offers")


@rule(
    "V2",
    "Responses for a shop under review are those for an unknown one over every transport, to the byte.",
    Need.UNDER_REVIEW,
)
async def _hidden_shops_are_unknown(service: ServiceUnderTest) -> None:
    calls = [(tool, about) for tool, about in _READS if service.allowed(tool)]
    if service.token and service.subjects.shops:
        known = service.subjects.shops[0].id
        calls.append(("resolve_conflict", lambda shop: {"from_shop_id": known, "to_shop_id": shop}))
    for hidden in service.under_review:
        for call in calls:
            for era in (None, *Era):
                await _expect_unknown(service, era, call, hidden)
        for era in Era:
            await _expect_unknown(service, era, (_READ, lambda shop: {"uri": f"shop://{shop}"}), hidden)
        # Neither search results nor suggestions show the shop.
        page = await service.read("find_shop", {"query": hidden})
        # The interface does not require did_you_mean: a service may have it.
        for name in ("results", *({"did_you_mean"} & set(page.names()))):
            is_shown = any(_is(shop, hidden) for shop in page[name].each())
            page.response.must(not is_shown, f"{name} without the shop under review")
        suggestions = await suggested(service, hidden)
        is_suggested = any(_is(shop, hidden) for shop in suggestions.json()["shops"].each())
        suggestions.must(not is_suggested, "suggestions without the shop under review")


@rule(
    "A9",
    "A report on a shop under review is refused like one on an unknown shop.",
    Need.UNDER_REVIEW,
    Need.TOKEN,
    Need.WRITE,
)
async def _hidden_shops_take_no_reports(service: ServiceUnderTest) -> None:
    for hidden in service.under_review:
        for call in _REPORTS:
            # Two of the three transports: reports have the smallest quota.
            for era in (None, Era.PER_REQUEST):
                await _expect_unknown(service, era, call, hidden)


async def expect_absent(service: ServiceUnderTest, tool: str) -> None:
    """Raise unless a tool has the same shop_not_found for unknown shops and for shops under review.

    It raises NothingToSeeError where no shop under review was given.
    """
    for unknown in (service.unknown_id, service.unknown_domain):
        (await service.about_shop(tool, unknown)).problem(404, "shop_not_found")
    for subject in service.under_review:
        await _expect_same_error(service, subject, tool)
    missing = f"a shop under review ({Need.UNDER_REVIEW}); the responses for unknown shops are correct"
    require(service.under_review, missing)


async def _expect_same_error(service: ServiceUnderTest, subject: str, *tools: str) -> None:
    for tool in tools:
        unknown = await service.about_shop(tool, service.unknown_like(subject))
        expect_equal(unknown, await service.about_shop(tool, subject), f"the same response of {tool} for both")


def _is(shop: Part, reference: str) -> bool:
    return reference in (shop["id"].value, shop["domain"].value)


async def _categories(service: ServiceUnderTest) -> Part:
    return (await service.read("list_categories"))["results"]


def _sample(service: ServiceUnderTest) -> tuple[KnownCategory, ...]:
    """The largest category, the smallest, and one from the middle of the list."""
    categories = require(service.subjects.categories, "a category in the catalogue")
    return tuple({one.slug: one for one in (categories[0], categories[len(categories) // 2], categories[-1])}.values())


async def _shop(service: ServiceUnderTest, reference: str) -> Response:
    return await service.about_shop("get_shop", reference)


async def _view(service: ServiceUnderTest, reference: str) -> Part:
    return (await _shop(service, reference)).json()


async def _expect_unknown(service: ServiceUnderTest, era: Era | None, call: About, hidden: str) -> None:
    """Raise unless a shop under review is answered like two unknown ones, over MCP in an era or over REST.

    A difference is looked at again, as a generation may have been published between the responses.
    """
    try:
        await _compare_with_unknown(service, era, call, hidden)
    except RuleBrokenError:
        await _compare_with_unknown(service.fresh, era, call, hidden)


async def _compare_with_unknown(service: ServiceUnderTest, era: Era | None, call: About, hidden: str) -> None:
    """Raise unless the responses are equal to the byte but for noise.

    Noise is what differs between the responses for two unknown shops, such as an id that a proxy adds.
    """
    references = (service.unknown_like(hidden), service.unknown_like(hidden, "x"), hidden)
    one, other, answer = [await _response(service, era, call, reference) for reference in references]
    noise = _VOLATILE | {name for name, _ in set(one.headers) ^ set(other.headers)}
    differing = sorted({name for name, _ in set(answer.headers) ^ set(one.headers)} - noise)
    actual = f"{answer.shown}; headers that differ: {', '.join(differing) or 'none'}"
    is_same = _without_noise(answer, noise) == _without_noise(one, noise)
    answer.must(is_same, f"the response for an unknown shop: {one.shown}", actual)


def _without_noise(response: Response, noise: frozenset[str]) -> tuple[int, list[tuple[str, str]], bytes]:
    """A response without what differs between two equal requests; the header names stay."""
    headers = [(name, "-" if name in noise else value) for name, value in response.headers]
    return response.status, headers, _REQUEST_ID.sub(rb'\1-"', response.body)


async def _response(service: ServiceUnderTest, era: Era | None, call: About, reference: str) -> Response:
    tool, about = call
    if era is None:
        return await service.tool(tool, about(reference))
    if tool == _READ:
        return (await mcp.request(service, era, _READ, about(reference))).response
    return (await mcp.call(service, era, tool, about(reference))).response
