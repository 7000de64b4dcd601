"""The rules of GET /suggest: what it takes, what it answers, in which order."""

import re
from typing import Final
from urllib.parse import quote

from shop_directory.conformance.exchange import Part, Reply
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import Visit, steadily
from shop_directory.conformance.subjects import SeenShop

_DEFAULT: Final = 8
_MOST: Final = 20
_LISTED: Final = 100
_SHOP_FIELDS: Final = {"id", "name", "domain", "category", "score"}
_CATEGORY_FIELDS: Final = {"category", "slug", "count"}
_EVERYWHERE: Final = "WORLDWIDE"
# Plain names, so that a letter more or less is one to every folding of text.
_PLAIN: Final = re.compile(r"[A-Za-z]{3}[A-Za-z ]{3,}[A-Za-z]")


async def suggested(
    visit: Visit, q: str, *, limit: int | None = None, country: str | None = None, fresh: bool = False
) -> Reply:
    """Ask for suggestions."""
    more = "".join(f"&{name}={value}" for name, value in (("limit", limit), ("country", country)) if value is not None)
    return await visit.get(f"/suggest?q={quote(q, safe='')}{more}", fresh=fresh)


@rule("I68", "GET /suggest needs q and no credentials.")
async def _needs_q_only(visit: Visit) -> None:
    (await suggested(visit, "")).answer()
    (await visit.get("/suggest?limit=3")).problem(400)


@rule("I69", "/suggest matches beginnings, forgives a typing error and puts the popular first.")
async def _finds_as_one_types(visit: Visit) -> None:
    shop = next((shop for shop in visit.seen.shops if _PLAIN.fullmatch(shop.name)), None)
    if shop is None:
        raise NothingToSeeError("a shop with a name of seven plain letters or more among the most popular")
    await _finds(visit, shop.name[:-1], shop, "the beginning of its name")
    middle = len(shop.name) // 2
    other = "q" if shop.name[middle].lower() != "q" else "x"
    await _finds(visit, shop.name[:middle] + other + shop.name[middle + 1 :], shop, "its name with one wrong letter")
    for q in (shop.name[:2], shop.name):
        reply = await suggested(visit, q, limit=_MOST)
        scores = [_score(found) for found in reply.answer()["shops"].each()]
        if scores != sorted(scores, reverse=True):
            raise reply.broken("shops in the order of their scores, the highest first", f"scores {scores}")
    await _popular_first(visit)


@rule("I70", "/suggest gives up to 8 shops and categories unless limit says otherwise.")
async def _gives_eight(visit: Visit) -> None:
    visit.seen.shop(), visit.seen.category()
    for limit, most in ((3, 3), (None, _DEFAULT), (_MOST, _MOST)):
        reply = await suggested(visit, "", limit=limit)
        answer = reply.answer()
        for name, there in (("shops", len(visit.seen.shops)), ("categories", len(visit.seen.categories))):
            expected = min(most, there)
            if len(answer[name].values()) != expected:
                raise answer[name].broken(f"{expected} of the {there} most popular")
    if len(visit.seen.shops) <= _DEFAULT:
        raise NothingToSeeError("more than eight shops")


@rule("I71", "/suggest keeps to the shops of a country.")
async def _keeps_to_a_country(visit: Visit) -> None:
    country = _country(visit)

    async def compare(*, fresh: bool) -> None:
        listed = await _listed(visit, fresh=fresh)
        expected = {shop.id for shop in [shop for shop in listed if sells_in(shop, country)][:_MOST]}
        refused = {shop.id for shop in listed if not sells_in(shop, country)}
        for spelling in (country, country.lower()):
            reply = await suggested(visit, "", limit=_MOST, country=spelling, fresh=fresh)
            found = {shop["id"].text() for shop in reply.answer()["shops"].each()}
            if refused & found or not expected <= found:
                raise reply.broken(f"the most popular shops of {country}: {sorted(expected)}", f"{sorted(found)}")

    await steadily(compare)
    (await suggested(visit, "", country="XX")).problem(400)


@rule("I72", "/suggest answers query as sent, and its categories and shops with their fields.")
async def _has_its_fields(visit: Visit) -> None:
    typed = f" {visit.seen.shop().name[:60].upper()}+&%"
    for q in ("", typed):
        answer = (await suggested(visit, q)).answer()
        answer["query"].expect(q)
        for category in answer["categories"].each():
            _expect_fields(category, _CATEGORY_FIELDS)
            category["category"].text()
            category["slug"].text()
            category["count"].whole()
        for shop in answer["shops"].each():
            _expect_fields(shop, _SHOP_FIELDS)
            for name in ("id", "name", "domain", "category"):
                shop[name].text()
            _score(shop)
        _expect_fields(answer, {"query", "categories", "shops"})


@rule("M10", "limit of /suggest is 1 to 20, and its categories carry the counts of list_categories.")
async def _counts_alike(visit: Visit) -> None:
    for limit in (0, _MOST + 1):
        (await suggested(visit, "", limit=limit)).problem(400)
    country = next((shop.countries[0] for shop in visit.seen.shops if shop.countries), "DE")

    async def compare(*, fresh: bool) -> None:
        listed = (await visit.tool("list_categories", {}, fresh=fresh)).answer()["results"].values()
        for of in (None, country if country != _EVERYWHERE else "DE"):
            reply = await suggested(visit, "", limit=_MOST, country=of, fresh=fresh)
            if reply.answer()["categories"].values() != listed[:_MOST]:
                raise reply.broken("the first of list_categories, with the same counts, whatever the country")

    await steadily(compare)


@rule("R3.query_string", "An unknown or repeated parameter of /suggest is 400; those with _ or utm_ before are not.")
async def _reads_parameters_strictly(visit: Visit) -> None:
    for query, named in (("q=a&contry=DE", "contry"), ("q=a&q=b", "q"), ("q=a&country=DE&country=AT", "country")):
        reply = await visit.get(f"/suggest?{query}")
        fields = [error["field"].value for error in reply.problem(400, "invalid_input")["errors"].each()]
        if named not in fields:
            raise reply.broken(f"an error that names {named}")
    (await visit.get("/suggest?q=a&_=17&utm_source=check&utm_source=check")).answer()


def sells_in(shop: SeenShop, country: str) -> bool:
    """Whether a country filter keeps the shop: it states the market, or all, or none."""
    return shop.countries is None or country in shop.countries or _EVERYWHERE in shop.countries


async def _finds(visit: Visit, q: str, shop: SeenShop, what: str) -> None:
    reply = await suggested(visit, q, limit=_MOST)
    if shop.id not in [found["id"].value for found in reply.answer()["shops"].each()]:
        raise reply.broken(f"the shop {shop.id} for {what}")


async def _popular_first(visit: Visit) -> None:
    """A blank q gives the shops that lead the blank search."""

    async def compare(*, fresh: bool) -> None:
        expected = [shop.id for shop in await _listed(visit, fresh=fresh)][:_MOST]
        reply = await suggested(visit, "", limit=_MOST, fresh=fresh)
        found = [shop["id"].value for shop in reply.answer()["shops"].each()]
        if found != expected:
            raise reply.broken(f"the most popular shops, as find_shop has them: {expected}", f"{found}")

    await steadily(compare)


async def _listed(visit: Visit, *, fresh: bool) -> list[SeenShop]:
    """The first hundred shops of the blank search."""
    page = (await visit.tool("find_shop", {"query": "", "limit": _LISTED}, fresh=fresh)).answer()
    return [
        SeenShop(
            shop["id"].text(),
            shop["name"].text(),
            shop["domain"].text(),
            (),
            None if shop["countries"].is_null else shop["countries"].texts(),
            (),
        )
        for shop in page["results"].each()
    ]


def _country(visit: Visit) -> str:
    """A country that some of the most popular shops leave out."""
    named = {country for shop in visit.seen.shops for country in shop.countries or () if country != _EVERYWHERE}
    first = visit.seen.shops[:_MOST]
    for country in sorted(named):
        if not all(sells_in(shop, country) for shop in first):
            return country
    raise NothingToSeeError("shops of different countries among the most popular")


def _score(shop: Part) -> float:
    score = shop["score"].value
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise shop["score"].broken("a number")
    return float(score)


def _expect_fields(part: Part, fields: set[str]) -> None:
    if set(part.keys()) != fields:
        raise part.broken(f"exactly the fields {', '.join(sorted(fields))}")
