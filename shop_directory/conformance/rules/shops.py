"""Shops and categories: the public view, references to a shop, the flat list of categories, and what is not shown."""

from typing import Final

from shop_directory.conformance.exchange import Part
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import Visit, expect_equal
from shop_directory.conformance.subjects import SeenCategory

_FULL: Final = 100
_SAMPLE: Final = 3
_TREE: Final = frozenset({"parent", "parent_slug", "parents", "children", "ancestors", "path", "level", "depth"})
# Where there is no such tool.
_NO_TOOL: Final = frozenset({404, 405, 501})
_BY_SHOP: Final = ("get_shop", "list_coupons", "get_shipping_policy")


@rule(
    "I6",
    "A shop under review is in no answer, and asking for it is like asking for one that does not exist.",
    Need.UNDER_REVIEW,
)
async def _under_review(visit: Visit) -> None:
    for subject in visit.under_review:
        await _expect_unknown(visit, subject, (*_BY_SHOP, "get_trust") if visit.token else _BY_SHOP)
        reply = await visit.tool("find_shop", {"query": subject, "limit": _FULL})
        for shop in reply.answer()["results"].each():
            if subject in {shop["id"].value, shop["domain"].value}:
                raise shop.broken(f"no shop {subject}")


@rule("I9", "The shop view carries id, name, domain and category (a slug) as strings.")
async def _shop_view(visit: Visit) -> None:
    for shop in await _views(visit):
        for field in ("id", "name", "domain", "category"):
            shop[field].text()


@rule("I10", "A shop id does wherever a shop's domain does.")
async def _id_or_domain(visit: Visit) -> None:
    shop = visit.seen.shop()
    for tool in (*_BY_SHOP, "get_trust") if visit.token else _BY_SHOP:
        by_domain = await visit.tool(tool, {"shop_domain": shop.domain})
        by_id = await visit.tool(tool, {"shop_domain": shop.id})
        by_id.expect_status(200)
        expect_equal(by_domain, by_id, f"the same answer of {tool} by id and by domain")


@rule("I11", "offers is always there as an array, empty while there are none.")
async def _offers(visit: Visit) -> None:
    for shop in await _views(visit):
        shop["offers"].each()


@rule("I12", "A category is a slug and a display name in a flat list: neither parent nor child.")
async def _flat(visit: Visit) -> None:
    for category in (await _categories(visit))["results"].each():
        category["slug"].text()
        category["category"].text()
        for name in category.keys():  # noqa: SIM118 - a part is no dict
            if name in _TREE or isinstance(category.value[name], dict | list):
                raise category.broken(f"a flat category, without {name}")


@rule("I14", "A shop of several categories counts in each of them.")
async def _in_each(visit: Visit) -> None:
    shop = next((shop for shop in visit.seen.shops if len(shop.categories) > 1), None)
    if shop is None:
        raise NothingToSeeError("a shop of several categories")
    listed = [category["slug"].text() for category in (await _categories(visit))["results"].each()]
    for slug in shop.categories[:_SAMPLE]:
        if slug not in listed:
            raise (await visit.tool("list_categories", {})).broken(f"the category {slug} of the shop {shop.id}")
        reply = await visit.tool("find_shop", {"query": shop.domain, "category": slug})
        if shop.id not in [found["id"].value for found in reply.answer()["results"].each()]:
            raise reply.broken(f"the shop {shop.id}, which carries {slug}")


@rule("I15", "A category that no public shop carries is not listed.")
async def _no_empty_category(visit: Visit) -> None:
    for category in (await _categories(visit))["results"].each():
        if category["count"].whole() < 1:
            raise category.broken("a category of at least one shop")


@rule("I52", "list_categories takes an empty object and gives every category with its number of public shops.")
async def _every_category(visit: Visit) -> None:
    document = await _categories(visit)
    listed = {category["slug"].text(): category["count"].whole() for category in document["results"].each()}
    document["total_count"].expect(len(listed))
    for shop in visit.seen.shops:
        if missing := [slug for slug in shop.categories if slug not in listed]:
            raise document.broken(f"the category {missing[0]} of the shop {shop.id}")
    for category in _sample(visit):
        reply = await visit.tool("find_shop", {"query": "", "category": category.slug, "limit": 1})
        reply.answer()["total_count"].expect(listed[category.slug])


@rule("I53", "find_shop accepts exactly the slugs that list_categories gives.")
async def _exactly_the_slugs(visit: Visit) -> None:
    known = {category.slug for category in visit.seen.categories}
    for category in _sample(visit):
        (await visit.tool("find_shop", {"query": "", "category": category.slug, "limit": 1})).answer()
        for other in (category.slug[:-1], f"{category.slug}-", category.slug.swapcase()):
            if other and other not in known:
                (await visit.tool("find_shop", {"query": "", "category": other, "limit": 1})).problem(400)


@rule("I54", "get_shop needs shop_domain and answers the public shop view.")
async def _get_shop(visit: Visit) -> None:
    (await visit.tool("get_shop", {})).problem(400)
    shop = visit.seen.shop()
    view = (await visit.tool("get_shop", {"shop_domain": shop.domain})).answer()
    view["id"].expect(shop.id)
    view["name"].expect(shop.name)
    view["domain"].expect(shop.domain)


@rule("I55", "get_shop says shop not found, identically, of an unknown shop and of one under review.")
async def _not_found(visit: Visit) -> None:
    await expect_absent(visit, "get_shop")


@rule("A14", "get_shops, where there is one, answers each reference in the order asked, an unknown shop with null.")
async def _get_shops(visit: Visit) -> None:
    first = visit.seen.shop()
    known = [(shop.domain, shop.id) for shop in visit.seen.shops[:_SAMPLE]]
    unknown: list[tuple[str, str | None]] = [(subject, None) for subject in (visit.unknown_domain, *visit.under_review)]
    pairs = [*unknown, *known, (first.id, first.id), *known[:1]]
    reply = await visit.tool("get_shops", {"shop_domains": [reference for reference, _ in pairs]})
    if reply.status in _NO_TOOL:
        raise NothingToSeeError("the tool get_shops, which is beyond the interface")
    answer = reply.answer()
    if len(answer["results"].values()) != len(pairs):
        raise answer["results"].broken(f"{len(pairs)} entries, one for each reference")
    for entry, (reference, shop_id) in zip(answer["results"].each(), pairs, strict=True):
        entry["shop_domain"].expect(reference)
        (entry["shop"] if shop_id is None else entry["shop"]["id"]).expect(shop_id)
    answer["found"].expect(len(pairs) - len(unknown))
    for wrong in ([], [" "], ["a"] * (_FULL + 1)):
        (await visit.tool("get_shops", {"shop_domains": wrong})).problem(400, "invalid_input")


async def expect_absent(visit: Visit, tool: str) -> None:
    """Raise unless a tool says of whatever is unknown, and of what is under review, the same "shop not found".

    Raises:
        NothingToSeeError: no shop is known to be under review, so that half can't be judged.
    """
    by_id = await visit.tool(tool, {"shop_domain": visit.unknown_id})
    by_id.problem(404, "shop_not_found")
    await _expect_unknown(visit, visit.unknown_domain, (tool,))
    for subject in visit.under_review:
        await _expect_unknown(visit, subject, (tool,))
    if not visit.under_review:
        raise NothingToSeeError(f"a shop under review ({Need.UNDER_REVIEW}); unknown shops are as they should be")


async def _expect_unknown(visit: Visit, subject: str, tools: tuple[str, ...]) -> None:
    for tool in tools:
        unknown = await visit.tool(tool, {"shop_domain": visit.unknown_id})
        reply = await visit.tool(tool, {"shop_domain": subject})
        expect_equal(unknown, reply, f"the same answer of {tool} for one as for the other")


async def _views(visit: Visit) -> tuple[Part, ...]:
    """Shops as find_shop and as get_shop show them."""
    page = (await visit.tool("find_shop", {"query": "", "limit": _FULL})).answer()
    shops = [*page["results"].each()]
    with_offers = [shop for shop in visit.seen.shops if shop.offers][:1]
    without_offers = [shop for shop in visit.seen.shops if not shop.offers][:1]
    replies = [await visit.tool("get_shop", {"shop_domain": shop.domain}) for shop in (*with_offers, *without_offers)]
    shops += [reply.answer() for reply in replies]
    if not shops:
        raise NothingToSeeError("a shop in the catalogue")
    return tuple(shops)


async def _categories(visit: Visit) -> Part:
    return (await visit.tool("list_categories", {})).answer()


def _sample(visit: Visit) -> tuple[SeenCategory, ...]:
    """The largest category, the smallest, and one from the middle of the list."""
    categories = visit.seen.categories
    if not categories:
        raise NothingToSeeError("a category in the catalogue")
    return tuple({one.slug: one for one in (categories[0], categories[len(categories) // 2], categories[-1])}.values())
