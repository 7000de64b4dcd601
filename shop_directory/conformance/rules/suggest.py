"""GET /suggest: its parameters, its fields, and the order of its suggestions."""

import re
from typing import Final
from urllib.parse import quote

from shop_directory.conformance.exchange import NothingToSeeError, Part, Response
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import KnownShop, ServiceUnderTest, compare_with_retry, known_shops

_DEFAULT: Final = 8
_MOST: Final = 20
_LISTED: Final = 100
_SHOP_FIELDS: Final = {"id", "name", "domain", "category", "score"}
_CATEGORY_FIELDS: Final = {"category", "slug", "count"}
_WORLDWIDE: Final = "WORLDWIDE"
# Plain letters only, which every folding of text leaves as they are.
_PLAIN: Final = re.compile(r"[A-Za-z]{3}[A-Za-z ]{3,}[A-Za-z]")


async def suggested(
    service: ServiceUnderTest, q: str, *, limit: int | None = None, country: str | None = None
) -> Response:
    """Send a suggest request."""
    more = "".join(f"&{name}={value}" for name, value in (("limit", limit), ("country", country)) if value is not None)
    return await service.get(f"/suggest?q={quote(q, safe='')}{more}")


@rule("I68", "GET /suggest needs q and no credentials.")
async def _needs_q_only(service: ServiceUnderTest) -> None:
    (await suggested(service, "")).json()
    (await service.get("/suggest?limit=3")).problem(400)


@rule("I69", "/suggest matches prefixes, tolerates a typing error and ranks popular shops first.")
async def _matching(service: ServiceUnderTest) -> None:
    shop = next((shop for shop in service.subjects.shops if _PLAIN.fullmatch(shop.name)), None)
    if shop is None:
        raise NothingToSeeError("a shop with a name of seven plain letters or more among the most popular")
    await _finds(service, shop.name[:-1], shop, "a prefix of its name")
    middle = len(shop.name) // 2
    other = "q" if shop.name[middle].lower() != "q" else "x"
    await _finds(service, shop.name[:middle] + other + shop.name[middle + 1 :], shop, "its name with one wrong letter")
    for q in (shop.name[:2], shop.name):
        response = await suggested(service, q, limit=_MOST)
        scores = [_score(found) for found in response.json()["shops"].each()]
        if scores != sorted(scores, reverse=True):
            raise response.broken("shops in the order of their scores, the highest first", f"scores {scores}")
    await _popular_first(service)


@rule("I70", "/suggest returns up to 8 shops and categories, or as many as limit says.")
async def _limit(service: ServiceUnderTest) -> None:
    service.subjects.shop(), service.subjects.category()
    for limit, most in ((3, 3), (None, _DEFAULT), (_MOST, _MOST)):
        response = await suggested(service, "", limit=limit)
        answer = response.json()
        for name, known in (("shops", len(service.subjects.shops)), ("categories", len(service.subjects.categories))):
            expected = min(most, known)
            if len(answer[name].values()) != expected:
                raise answer[name].broken(f"{expected} of the {known} most popular")
    if len(service.subjects.shops) <= _DEFAULT:
        raise NothingToSeeError("more than eight shops")


@rule("I71", "/suggest returns only shops of the given country.")
async def _country_filter(service: ServiceUnderTest) -> None:
    country = _country(service)

    async def compare(service: ServiceUnderTest) -> None:
        listed = await _listed(service)
        expected = {shop.id for shop in [shop for shop in listed if sells_in(shop, country)][:_MOST]}
        refused = {shop.id for shop in listed if not sells_in(shop, country)}
        for spelling in (country, country.lower()):
            response = await suggested(service, "", limit=_MOST, country=spelling)
            found = {shop["id"].text() for shop in response.json()["shops"].each()}
            if refused & found or not expected <= found:
                raise response.broken(f"the most popular shops of {country}: {sorted(expected)}", f"{sorted(found)}")

    await compare_with_retry(service, compare)
    (await suggested(service, "", country="XX")).problem(400)


@rule("I72", "/suggest returns query as sent, and categories and shops with exactly their fields.")
async def _fields(service: ServiceUnderTest) -> None:
    typed = f" {service.subjects.shop().name[:60].upper()}+&%"
    for q in ("", typed):
        answer = (await suggested(service, q)).json()
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


@rule("M10", "limit of /suggest is 1 to 20, and its categories have the counts of list_categories.")
async def _category_counts(service: ServiceUnderTest) -> None:
    for limit in (0, _MOST + 1):
        (await suggested(service, "", limit=limit)).problem(400)
    country = next((shop.countries[0] for shop in service.subjects.shops if shop.countries), "DE")

    async def compare(service: ServiceUnderTest) -> None:
        listed = (await service.tool("list_categories", {})).json()["results"].values()
        for of in (None, country if country != _WORLDWIDE else "DE"):
            response = await suggested(service, "", limit=_MOST, country=of)
            if response.json()["categories"].values() != listed[:_MOST]:
                raise response.broken("the first of list_categories, with the same counts, whatever the country")

    await compare_with_retry(service, compare)


@rule(
    "R3.query_string", "An unknown or repeated parameter of /suggest is 400; those with the prefix _ or utm_ are not."
)
async def _strict_parameters(service: ServiceUnderTest) -> None:
    for query, named in (("q=a&contry=DE", "contry"), ("q=a&q=b", "q"), ("q=a&country=DE&country=AT", "country")):
        response = await service.get(f"/suggest?{query}")
        fields = [error["field"].value for error in response.problem(400, "invalid_input")["errors"].each()]
        if named not in fields:
            raise response.broken(f"an error that names {named}")
    (await service.get("/suggest?q=a&_=17&utm_source=check&utm_source=check")).json()


def sells_in(shop: KnownShop, country: str) -> bool:
    """Whether a country filter includes the shop: it states the market, or all markets, or none."""
    return shop.countries is None or country in shop.countries or _WORLDWIDE in shop.countries


async def _finds(service: ServiceUnderTest, q: str, shop: KnownShop, what: str) -> None:
    response = await suggested(service, q, limit=_MOST)
    if shop.id not in [found["id"].value for found in response.json()["shops"].each()]:
        raise response.broken(f"the shop {shop.id} for {what}")


async def _popular_first(service: ServiceUnderTest) -> None:
    """Raise unless a blank q returns the first shops of the blank search."""

    async def compare(service: ServiceUnderTest) -> None:
        expected = [shop.id for shop in await _listed(service)][:_MOST]
        response = await suggested(service, "", limit=_MOST)
        found = [shop["id"].value for shop in response.json()["shops"].each()]
        if found != expected:
            raise response.broken(f"the most popular shops, as find_shop lists them: {expected}", f"{found}")

    await compare_with_retry(service, compare)


async def _listed(service: ServiceUnderTest) -> list[KnownShop]:
    """The first hundred shops of the blank search."""
    page = (await service.tool("find_shop", {"query": "", "limit": _LISTED})).json()
    return [*known_shops(page["results"].values())]


def _country(service: ServiceUnderTest) -> str:
    """A country in which some of the most popular shops do not sell."""
    named = {country for shop in service.subjects.shops for country in shop.countries or () if country != _WORLDWIDE}
    first = service.subjects.shops[:_MOST]
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
