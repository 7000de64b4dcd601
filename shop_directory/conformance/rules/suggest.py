"""GET /suggest: its parameters, its fields, and the order of its suggestions."""

import re
from typing import Final
from urllib.parse import quote

from shop_directory.conformance.exchange import Part, Response, require
from shop_directory.conformance.rule import Call, expect_shape, rule
from shop_directory.conformance.rules.calls import named_fields
from shop_directory.conformance.service_under_test import FULL, WORLDWIDE, KnownShop, ServiceUnderTest, known_shops

_DEFAULT: Final = 8
_MOST: Final = 20
# Plain letters only, which every folding of text leaves as they are.
_PLAIN: Final = re.compile(r"[A-Za-z]{3}[A-Za-z ]{3,}[A-Za-z]")


async def suggested(
    service: ServiceUnderTest, q: str, *, limit: int | None = None, country: str | None = None
) -> Response:
    """Send a suggest request."""
    more = "".join(f"&{name}={value}" for name, value in (("limit", limit), ("country", country)) if value is not None)
    return await service.get(f"/suggest?q={quote(q, safe='')}{more}")


ROWS: Final = (
    rule("I68", "GET /suggest needs q and no credentials.")(
        Call("GET /suggest?q=", shape={}), Call("GET /suggest?limit=3", status=400, shape={})
    ),
)


@rule("I69", "/suggest matches prefixes, tolerates a typing error and ranks popular shops first.")
async def _matching(service: ServiceUnderTest) -> None:
    plain = [shop for shop in service.subjects.shops if _PLAIN.fullmatch(shop.name)]
    shop = require(plain, "a shop with a name of seven plain letters or more among the most popular")[0]
    await _finds(service, shop.name[:-1], shop, "a prefix of its name")
    middle = len(shop.name) // 2
    other = "q" if shop.name[middle].lower() != "q" else "x"
    await _finds(service, shop.name[:middle] + other + shop.name[middle + 1 :], shop, "its name with one wrong letter")
    for q in (shop.name[:2], shop.name):
        response = await suggested(service, q, limit=_MOST)
        scores = [_score(found) for found in response.json()["shops"].each()]
        in_order = scores == sorted(scores, reverse=True)
        response.must(in_order, "shops in the order of their scores, the highest first", f"scores {scores}")
    expected = [shop.id for shop in await _listed(service)][:_MOST]
    response = await suggested(service, "", limit=_MOST)
    found = _ids(response)
    response.must(found == expected, f"the most popular shops, as find_shop lists them: {expected}", f"{found}")


@rule("I70", "/suggest returns up to 8 shops and categories, or as many as limit says.")
async def _limit(service: ServiceUnderTest) -> None:
    subjects = service.subjects
    subjects.shop(), subjects.category()
    for limit, most in ((3, 3), (None, _DEFAULT), (_MOST, _MOST)):
        answer = (await suggested(service, "", limit=limit)).json()
        for name, known in (("shops", len(subjects.shops)), ("categories", len(subjects.categories))):
            expected = min(most, known)
            answer[name].must(len(answer[name].values()) == expected, f"{expected} of the {known} most popular")
    require(len(subjects.shops) > _DEFAULT, "more than eight shops")


@rule("I71", "/suggest returns only shops of the given country.")
async def _country_filter(service: ServiceUnderTest) -> None:
    named = {country for shop in service.subjects.shops for country in shop.countries or () if country != WORLDWIDE}
    first = service.subjects.shops[:_MOST]
    filtered = [country for country in sorted(named) if not all(shop.sells_in(country) for shop in first)]
    country = require(filtered, "shops of different countries among the most popular")[0]
    listed = await _listed(service)
    expected = {shop.id for shop in [shop for shop in listed if shop.sells_in(country)][:_MOST]}
    refused = {shop.id for shop in listed if not shop.sells_in(country)}
    for spelling in (country, country.lower()):
        response = await suggested(service, "", limit=_MOST, country=spelling)
        found = {shop["id"].text() for shop in response.json()["shops"].each()}
        is_filtered = not refused & found and expected <= found
        response.must(is_filtered, f"the most popular shops of {country}: {sorted(expected)}", f"{sorted(found)}")
    (await suggested(service, "", country="XX")).problem(400)


@rule("I72", "/suggest returns query as sent, and categories and shops with exactly their fields.")
async def _fields(service: ServiceUnderTest) -> None:
    typed = f" {service.subjects.shop().name[:60].upper()}+&%"
    for q in ("", typed):
        answer = (await suggested(service, q)).json()
        answer["query"].expect(q)
        for category in answer["categories"].each():
            _expect_fields(category, "category", "slug", "count")
            expect_shape(category, {"category": Part.text, "slug": Part.text, "count": Part.whole})
        for shop in answer["shops"].each():
            _expect_fields(shop, "id", "name", "domain", "category", "score")
            expect_shape(shop, dict.fromkeys(("id", "name", "domain", "category"), Part.text))
            _score(shop)
        _expect_fields(answer, "query", "categories", "shops")


@rule("M10", "limit of /suggest is 1 to 20, and its categories have the counts of list_categories.")
async def _category_counts(service: ServiceUnderTest) -> None:
    for limit in (0, _MOST + 1):
        (await suggested(service, "", limit=limit)).problem(400)
    stated = next((shop.countries[0] for shop in service.subjects.shops if shop.countries), WORLDWIDE)
    listed = (await service.read("list_categories"))["results"].values()
    for country in (None, stated if stated != WORLDWIDE else "DE"):
        response = await suggested(service, "", limit=_MOST, country=country)
        found = response.json()["categories"].values()
        expected = "the first of list_categories, with the same counts, whatever the country"
        response.must(found == listed[:_MOST], expected)


@rule(
    "R3.query_string", "An unknown or repeated parameter of /suggest is 400; those with the prefix _ or utm_ are not."
)
async def _strict_parameters(service: ServiceUnderTest) -> None:
    for query, named in (("q=a&contry=DE", "contry"), ("q=a&q=b", "q"), ("q=a&country=DE&country=AT", "country")):
        response = await service.get(f"/suggest?{query}")
        fields = named_fields(response.problem(400, "invalid_input"))
        response.must(named in fields, f"an error that names {named}")
    (await service.get("/suggest?q=a&_=17&utm_source=check&utm_source=check")).json()


async def _finds(service: ServiceUnderTest, q: str, shop: KnownShop, what: str) -> None:
    response = await suggested(service, q, limit=_MOST)
    response.must(shop.id in _ids(response), f"the shop {shop.id} for {what}")


async def _listed(service: ServiceUnderTest) -> list[KnownShop]:
    """The first hundred shops of the blank search."""
    return [*known_shops((await service.read("find_shop", {"query": "", "limit": FULL}))["results"].values())]


def _ids(response: Response) -> list[object]:
    return [found["id"].value for found in response.json()["shops"].each()]


def _score(shop: Part) -> float:
    score = shop["score"].value
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise shop["score"].broken("a number")
    return float(score)


def _expect_fields(part: Part, *fields: str) -> None:
    part.must(set(part.names()) == set(fields), f"exactly the fields {', '.join(sorted(fields))}")
