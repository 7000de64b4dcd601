"""Shops and categories: the public view, references to a shop, the list of categories, and shops under review."""

from typing import Final

from shop_directory.conformance.exchange import Part
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import ServiceUnderTest, expect_equal
from shop_directory.conformance.subjects import KnownCategory

_FULL: Final = 100
_SAMPLE: Final = 3
_TREE: Final = frozenset({"parent", "parent_slug", "parents", "children", "ancestors", "path", "level", "depth"})
# Statuses of a tool that does not exist.
_NO_TOOL: Final = frozenset({404, 405, 501})
_BY_SHOP: Final = ("get_shop", "list_coupons", "get_shipping_policy")


@rule(
    "I6",
    "No response has a shop under review, and the responses for it are those for an unknown shop.",
    Need.UNDER_REVIEW,
)
async def _under_review(service: ServiceUnderTest) -> None:
    for subject in service.under_review:
        await _expect_unknown(service, subject, (*_BY_SHOP, "get_trust") if service.token else _BY_SHOP)
        response = await service.tool("find_shop", {"query": subject, "limit": _FULL})
        for shop in response.json()["results"].each():
            if subject in {shop["id"].value, shop["domain"].value}:
                raise shop.broken(f"no shop {subject}")


@rule("I9", "The shop view has id, name, domain and category (a slug) as strings.")
async def _shop_view(service: ServiceUnderTest) -> None:
    for shop in await _views(service):
        for field in ("id", "name", "domain", "category"):
            shop[field].text()


@rule("I10", "A shop id is accepted wherever a domain is.")
async def _id_or_domain(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    for tool in (*_BY_SHOP, "get_trust") if service.token else _BY_SHOP:
        by_domain = await service.tool(tool, {"shop_domain": shop.domain})
        by_id = await service.tool(tool, {"shop_domain": shop.id})
        by_id.expect_status(200)
        expect_equal(by_domain, by_id, f"the same response of {tool} by id and by domain")


@rule("I11", "offers is always an array, empty while there are none.")
async def _offers(service: ServiceUnderTest) -> None:
    for shop in await _views(service):
        shop["offers"].each()


@rule("I12", "A category is a slug and a display name in a flat list, without parent or child.")
async def _flat(service: ServiceUnderTest) -> None:
    for category in (await _categories(service))["results"].each():
        category["slug"].text()
        category["category"].text()
        for name in category.keys():  # noqa: SIM118 - a part is no dict
            if name in _TREE or isinstance(category.value[name], dict | list):
                raise category.broken(f"a flat category, without {name}")


@rule("I14", "A shop of several categories counts in each of them.")
async def _in_each(service: ServiceUnderTest) -> None:
    shop = next((shop for shop in service.subjects.shops if len(shop.categories) > 1), None)
    if shop is None:
        raise NothingToSeeError("a shop of several categories")
    listed = [category["slug"].text() for category in (await _categories(service))["results"].each()]
    for slug in shop.categories[:_SAMPLE]:
        if slug not in listed:
            raise (await service.tool("list_categories", {})).broken(f"the category {slug} of the shop {shop.id}")
        response = await service.tool("find_shop", {"query": shop.domain, "category": slug})
        if shop.id not in [found["id"].value for found in response.json()["results"].each()]:
            raise response.broken(f"the shop {shop.id}, which carries {slug}")


@rule("I15", "A category that no public shop carries is not listed.")
async def _no_empty_category(service: ServiceUnderTest) -> None:
    for category in (await _categories(service))["results"].each():
        if category["count"].whole() < 1:
            raise category.broken("a category of at least one shop")


@rule("I52", "list_categories takes an empty object and returns every category with its number of public shops.")
async def _every_category(service: ServiceUnderTest) -> None:
    document = await _categories(service)
    listed = {category["slug"].text(): category["count"].whole() for category in document["results"].each()}
    document["total_count"].expect(len(listed))
    for shop in service.subjects.shops:
        if missing := [slug for slug in shop.categories if slug not in listed]:
            raise document.broken(f"the category {missing[0]} of the shop {shop.id}")
    for category in _sample(service):
        response = await service.tool("find_shop", {"query": "", "category": category.slug, "limit": 1})
        response.json()["total_count"].expect(listed[category.slug])


@rule("I53", "find_shop accepts exactly the slugs of list_categories.")
async def _exactly_the_slugs(service: ServiceUnderTest) -> None:
    known = {category.slug for category in service.subjects.categories}
    for category in _sample(service):
        (await service.tool("find_shop", {"query": "", "category": category.slug, "limit": 1})).json()
        for other in (category.slug[:-1], f"{category.slug}-", category.slug.swapcase()):
            if other and other not in known:
                (await service.tool("find_shop", {"query": "", "category": other, "limit": 1})).problem(400)


@rule("I54", "get_shop needs shop_domain and returns the public shop view.")
async def _get_shop(service: ServiceUnderTest) -> None:
    (await service.tool("get_shop", {})).problem(400)
    shop = service.subjects.shop()
    view = (await service.tool("get_shop", {"shop_domain": shop.domain})).json()
    view["id"].expect(shop.id)
    view["name"].expect(shop.name)
    view["domain"].expect(shop.domain)


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
    if response.status in _NO_TOOL:
        raise NothingToSeeError("the tool get_shops, which the interface does not require")
    answer = response.json()
    if len(answer["results"].values()) != len(pairs):
        raise answer["results"].broken(f"{len(pairs)} entries, one for each reference")
    for entry, (reference, shop_id) in zip(answer["results"].each(), pairs, strict=True):
        entry["shop_domain"].expect(reference)
        (entry["shop"] if shop_id is None else entry["shop"]["id"]).expect(shop_id)
    answer["found"].expect(len(pairs) - len(unknown))
    for wrong in ([], [" "], ["a"] * (_FULL + 1)):
        (await service.tool("get_shops", {"shop_domains": wrong})).problem(400, "invalid_input")


async def expect_absent(service: ServiceUnderTest, tool: str) -> None:
    """Raise unless a tool has the same shop_not_found for unknown shops and for shops under review.

    Raises:
        NothingToSeeError: no shop under review was given, so only unknown shops were checked.
    """
    by_id = await service.tool(tool, {"shop_domain": service.unknown_id})
    by_id.problem(404, "shop_not_found")
    (await service.tool(tool, {"shop_domain": service.unknown_domain})).problem(404, "shop_not_found")
    for subject in service.under_review:
        await _expect_unknown(service, subject, (tool,))
    if not service.under_review:
        raise NothingToSeeError(
            f"a shop under review ({Need.UNDER_REVIEW}); the responses for unknown shops are correct"
        )


async def _expect_unknown(service: ServiceUnderTest, subject: str, tools: tuple[str, ...]) -> None:
    for tool in tools:
        unknown = await service.tool(tool, {"shop_domain": service.unknown_like(subject)})
        response = await service.tool(tool, {"shop_domain": subject})
        expect_equal(unknown, response, f"the same response of {tool} for both")


async def _views(service: ServiceUnderTest) -> tuple[Part, ...]:
    """Shops of the responses of find_shop and get_shop."""
    page = (await service.tool("find_shop", {"query": "", "limit": _FULL})).json()
    shops = [*page["results"].each()]
    with_offers = [shop for shop in service.subjects.shops if shop.offers][:1]
    without_offers = [shop for shop in service.subjects.shops if not shop.offers][:1]
    responses = [
        await service.tool("get_shop", {"shop_domain": shop.domain}) for shop in (*with_offers, *without_offers)
    ]
    shops += [response.json() for response in responses]
    if not shops:
        raise NothingToSeeError("a shop in the catalogue")
    return tuple(shops)


async def _categories(service: ServiceUnderTest) -> Part:
    return (await service.tool("list_categories", {})).json()


def _sample(service: ServiceUnderTest) -> tuple[KnownCategory, ...]:
    """The largest category, the smallest, and one from the middle of the list."""
    categories = service.subjects.categories
    if not categories:
        raise NothingToSeeError("a category in the catalogue")
    return tuple({one.slug: one for one in (categories[0], categories[len(categories) // 2], categories[-1])}.values())
