"""find_shop and GET /suggest: pages, totals, filters, words, bounds and order, asked by names of known shops."""

import re
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Final

from shop_directory.conformance.exchange import NothingToSeeError, Part, require
from shop_directory.conformance.rule import SHOP_DOMAIN, UNKNOWN_ID, Call, Shape, exactly, expect_shape, naming, rule
from shop_directory.conformance.rules.facts import is_country
from shop_directory.conformance.service_under_test import (
    FULL,
    PROBED,
    WORLDWIDE,
    KnownShop,
    ServiceUnderTest,
    expect_equal,
    known_shops,
)

_DEFAULT: Final = 50
_TRIED: Final = 6
# Long enough not to match as a part of two joined words.
_WORD: Final = re.compile("[A-Za-z]{5,}")
# The most shops of a broader query.
_BROADER: Final = 5
# The most values of a facet.
_VALUES: Final = 50
# Of /suggest: how many without limit, and at most.
_SUGGESTED: Final = 8
_MOST: Final = 20
# Plain letters only, which every folding of text leaves as they are.
_PLAIN: Final = re.compile(r"[A-Za-z]{3}[A-Za-z ]{3,}[A-Za-z]")

ROWS: Final = (
    rule("I51", "An unlisted category slug is an error, never an empty list.")(
        Call("find_shop", {"query": "", "category": UNKNOWN_ID}, 400, "unknown_category"),
        Call("find_shop", {"query": SHOP_DOMAIN, "category": UNKNOWN_ID}, 400, "unknown_category"),
    ),
    rule("I68", "GET /suggest needs q and no credentials.")(
        Call("GET /suggest?q=", shape={}), Call("GET /suggest?limit=3", status=400, shape={})
    ),
    rule(
        "R3.query_string",
        "An unknown or repeated parameter of /suggest is 400; those with the prefix _ or utm_ are not.",
    )(
        Call("GET /suggest?q=a&contry=DE", b"", 400, "invalid_input", naming("contry")),
        Call("GET /suggest?q=a&q=b", b"", 400, "invalid_input", naming("q")),
        Call("GET /suggest?q=a&country=DE&country=AT", b"", 400, "invalid_input", naming("country")),
        Call("GET /suggest?q=a&_=17&utm_source=check&utm_source=check", shape={}),
    ),
)


@rule("I21", "find_shop returns at most limit shops, and in total_count the number of all matches.")
async def _limit_and_total(service: ServiceUnderTest) -> None:
    page = await _found(service, query="", limit=FULL)
    total, shops = _total(page), _ids(page)
    page.response.must(len(shops) == min(total, FULL), "all matches, at most limit", f"{len(shops)} of {total}")
    short = await _found(service, query="", limit=2)
    short.response.must(len(_ids(short)) <= 2, "at most 2 results", f"{len(_ids(short))} results")  # noqa: PLR2004
    short["total_count"].expect(total)
    require(total > 2, "three shops in the catalogue")  # noqa: PLR2004 - more than the limit above


@rule("I22", "truncated is true exactly when matches lie beyond the page.")
async def _truncated(service: ServiceUnderTest) -> None:
    scope = {"query": "", "category": service.subjects.category(at_least=3).slug}
    total = _total(await _found(service, **scope, limit=FULL))
    for limit, offset in ((1, 0), (FULL, 0), (1, max(total - 1, 0)), (1, total)):
        page = await _found(service, **scope, limit=limit, offset=offset)
        page["truncated"].expect(offset + len(_ids(page)) < total)
    whole = await _found(service, query="", limit=FULL)
    whole["truncated"].expect(_total(whole) > len(_ids(whole)))


@rule("I23", "ignored_terms has the words that match nothing and were dropped, and no others.")
async def _ignored_terms(service: ServiceUnderTest) -> None:
    _, word = _worded(service)
    alone = await _found(service, query=word)
    alone["ignored_terms"].expect([])
    narrower = await _found(service, query=f"{word} {service.unmatched}")
    narrower["ignored_terms"].expect([service.unmatched])
    is_same = (_total(narrower), _ids(narrower)) == (_total(alone), _ids(alone))
    narrower.response.must(is_same, f"the shops that {word} alone finds, as the other word was dropped")
    await _expect_nothing(service, service.unmatched)


@rule("M3.hosts", "A host of no shop finds nothing, and is one ignored term.")
async def _unknown_host(service: ServiceUnderTest) -> None:
    await _expect_nothing(service, f"{service.unmatched}.com")


@rule(
    "M3.wishes", "Next to the words of a category a word for a shop is not ignored, and loses no shop of the category."
)
async def _word_for_a_shop(service: ServiceUnderTest) -> None:
    slug = service.subjects.category().slug
    words = slug.replace("-", " ")
    # Alone, the words may also be parts of names.
    alone = await _found(service, query=words, category=slug)
    wished = await _found(service, query=f"{words} shop", category=slug)
    wished["ignored_terms"].expect([])
    wished.response.must(_total(wished) >= _total(alone), f"at least the {_total(alone)} shops of {words}")


@rule("I24", "category_truncated says whether words matched more categories than are searched.")
async def _category_truncated(service: ServiceUnderTest) -> None:
    _, word = _worded(service)
    (await _found(service, query=word))["category_truncated"].flag()
    # A blank query has no word that could match too many.
    (await _found(service, query="", limit=FULL))["category_truncated"].expect(value=False)


@rule("I44", "find_shop needs query, which may be a part of a name or domain; left out it is 400.")
async def _query(service: ServiceUnderTest) -> None:
    (await service.tool("find_shop", {})).problem(400)
    (await service.tool("find_shop", {"query": None})).problem(400)
    shop = service.subjects.shop
    _expect_found(await _found(service, query=shop.domain), shop)
    named, word = _worded(service)
    for part in (word, word[:-1]):
        page = await _found(service, query=part, limit=FULL)
        if _total(page) <= FULL:
            _expect_found(page, named)


@rule("I45", "An empty query is valid and lists shops, those of the category if one is given.")
async def _blank_query(service: ServiceUnderTest) -> None:
    require(_ids(await _found(service, query="", limit=FULL)), "a shop in the catalogue")
    category = service.subjects.category()
    page = await _found(service, query="", category=category.slug, limit=FULL)
    page.response.must(_ids(page), f"the {category.count} shops of the category")


@rule("I46", "find_shop takes an ISO 3166-1 alpha-2 country, and returns shops that sell there or state no markets.")
async def _country(service: ServiceUnderTest) -> None:
    for wrong in ("ZZ", "Germany"):
        (await service.tool("find_shop", {"query": "", "country": wrong})).problem(400)
    country, elsewhere = _market(service)
    for shop in (await _found(service, query="", country=country, limit=FULL))["results"].each():
        markets = shop["countries"]
        is_sold = markets.value is None or {country, WORLDWIDE} & set(markets.texts())
        markets.must(is_sold, f"{country}, {WORLDWIDE} or no markets at all")
    outside = await _found(service, query=elsewhere.domain, country=country)
    expected = f"no shop that sells elsewhere only, such as {elsewhere.id}"
    outside.response.must(elsewhere.id not in _ids(outside), expected)


@rule("I47", "The limit of find_shop is 50 by default and 100 at most.")
async def _limit(service: ServiceUnderTest) -> None:
    for limit in (FULL + 1, 0):
        (await service.tool("find_shop", {"query": "", "limit": limit})).problem(400)
    page = await _found(service, query="")
    total, shown = _total(page), len(_ids(page))
    page.response.must(shown == min(total, _DEFAULT), f"{min(total, _DEFAULT)} shops", f"{shown} shops")
    require(total > _DEFAULT, f"more than {_DEFAULT} shops in the catalogue")


@rule("I48", "offset is 0 by default; raising it returns all matches page by page, each once.")
async def _offset(service: ServiceUnderTest) -> None:
    whole = await _found(service, query="", limit=FULL)
    wanted = _ids(whole)
    require(len(wanted) > 2, "three shops in the catalogue")  # noqa: PLR2004 - pages need something to page through
    step = -(-len(wanted) // 3)
    paged: list[str] = []
    for offset in range(0, len(wanted), step):
        page = await _found(service, query="", limit=step, offset=offset)
        paged += _ids(page)
    is_whole = paged[: len(wanted)] == wanted and len(set(paged)) == len(paged)
    page.response.must(is_whole, f"pages of {step} that hold each shop of the page of {FULL} once, in its order")
    first = _ids(await _found(service, query="", limit=step))
    whole.response.must(first == wanted[:step], "the first page when no offset is given")


@rule("I49", "category is an exact slug, and a shop must match both it and the query.")
async def _category(service: ServiceUnderTest) -> None:
    slug = service.subjects.category().slug
    for shop in (await _found(service, query="", category=slug, limit=FULL))["results"].each():
        shop["categories"].must(slug in shop["categories"].texts(), slug)
    outside = [shop for shop in service.subjects.shops if slug not in shop.categories]
    other = require(outside, "a shop that does not carry every category")[0]
    _expect_found(await _found(service, query=other.domain, category=other.categories[0]), other)
    both = await _found(service, query=other.domain, category=slug, limit=FULL)
    both.response.must(other.id not in _ids(both), f"no shop outside the category, such as {other.id}")


@rule("I50", "Every word of a query needs evidence on the same shop: in its name, domain or category.")
async def _every_word(service: ServiceUnderTest) -> None:
    one, other = await _words_of_two(service)
    page = await _found(service, query=f"{one} {other}", limit=FULL)
    matches = {word: set(_ids(await _found(service, query=word, limit=FULL))) for word in (one, other)}
    # With another word, a label of the domain is evidence too (M3 e).
    unexpected = {
        shop["id"].text()
        for shop in page["results"].each()
        for word in (one, other)
        if shop["id"].text() not in matches[word] and word not in shop["domain"].text().split(".")
    }
    actual = f"also {', '.join(sorted(unexpected)[:5])}"
    page.response.must(not unexpected, f"only shops that match both {one} and {other}", actual)


@rule(
    "M6.word_counts",
    "When several words match no shop together, word_counts has the number of shops for each, zeros too.",
)
async def _word_counts(service: ServiceUnderTest) -> None:
    words = (service.unmatched, f"{service.unmatched}x")
    unmatched = await _found(service, query=f"{words[0]} {words[1]} {words[0]}")
    require("word_counts" in unmatched, "word_counts, which the interface does not require")
    unmatched["word_counts"].expect([{"word": word, "shops": 0} for word in words])
    _, word = _worded(service)
    found = await _found(service, query=f"{word} {word}")
    found.response.must("word_counts" not in found, "no word_counts where there are matches")


@rule(
    "M6.broader",
    "When several words match no shop together, broader has queries of fewer of them, and the shops that each finds.",
)
async def _broader(service: ServiceUnderTest) -> None:
    one, other = await _words_of_two(service)
    page = await _found(service, query=f"{one} {other}")
    require(not _total(page), "two words of shops that no shop has together")
    require("broader" in page, "broader, which the interface does not require")
    page.response.must(page["broader"].values(), f"a query for {one} or for {other}")
    for wider in page["broader"].each():
        query = wider["query"].text()
        wider["query"].one_of(one, other)
        wider["left_out"].expect([other if query == one else one])
        found = await _found(service, query=query, limit=_BROADER)
        wider["total_count"].expect(_total(found))
        shown = [shop["id"].text() for shop in wider["results"].each()]
        wider["results"].must(shown == _ids(found), f"the first shops that {query} finds")
    found = await _found(service, query=one)
    found.response.must("broader" not in found, "no broader where there are matches")


@rule("R4", "country is an assigned alpha-2 code or XK in any case; others, UK and XX among them, are 400.")
async def _countries(service: ServiceUnderTest) -> None:
    upper = await _found(service, query="", country="DE", limit=3)
    lower = await _found(service, query="", country="de", limit=3)
    expect_equal(upper.response, lower.response, "the same response for the code in lower case")
    await _found(service, query="", country="XK", limit=1)
    for code in ("UK", "XX", "DEU", "1"):
        await _expect_invalid(service, country=code, limit=1)


@rule("M6.nothing_left", "When every word is dropped, the category is browsed; without a category the result is empty.")
async def _nothing_left(service: ServiceUnderTest) -> None:
    slug = service.subjects.category().slug
    browsed = await _found(service, query="", category=slug, limit=FULL)
    page = await _found(service, query=service.unmatched, category=slug, limit=FULL)
    is_same = page["results"].values() == browsed["results"].values()
    page.response.must(is_same, "the shops of the category, as every word was dropped")
    (await _found(service, query=service.unmatched))["results"].expect([])


@rule("M8", "A value out of bounds is refused, never clamped; 50.0 is an integer, strings and booleans are not.")
async def _bounds(service: ServiceUnderTest) -> None:
    whole = await _found(service, query="", limit=5)
    as_decimal = await service.tool("find_shop", b'{"query":"","limit":5.0}')
    expect_equal(whole.response, as_decimal, "the same answer for 5.0 and for 5")
    for limit in ("5", True, 2.5, 0, FULL + 1):
        await _expect_invalid(service, limit=limit)
    await _expect_invalid(service, offset=-1)
    for query in ("a" * 201, " ".join("abcdefghijklm")):
        await _expect_invalid(service, query=query)
    (await service.tool("find_shop", {"query": "", "offset": 100_000, "limit": 1})).problem(400, "page_too_deep")


@rule("F1", "ships_to, where it exists, keeps the shops that ship there, and counts those that do not say so.")
async def _ships_to(service: ServiceUnderTest) -> None:
    named = [answer["destinations"] for answer in await service.of_first_shops("get_shipping_policy")]
    stated = [name for names in named if names.value is not None for name in names.texts() if is_country(name)]
    country = stated[0] if stated else "DE"
    settled = await _by_destination(service, country)
    whole = await _by_destination(service, country, include_unsettled=True)
    whole["total_count"].expect(_total(settled) + settled["unsettled_count"].whole())
    verdicts = {shop["id"].text(): shop["ships_to"].text() for shop in whole["results"].each()}
    in_order = sorted(verdicts.values(), key=("yes", "unknown").index)
    whole.response.must(list(verdicts.values()) == in_order, "the shops that ship there before all others")
    expected = [shop_id for shop_id, verdict in verdicts.items() if verdict == "yes"]
    settled.response.must(_ids(settled) == expected, f"the shops that ship to {country}, in the same order")
    for shop in service.subjects.shops[:PROBED]:
        asked = {"shop_domain": shop.domain, "country": country}
        verdict = (await service.read("get_shipping_policy", asked))["ships_to"].text()
        # The first shops come first among those that ship there, and may be beyond this page among the others.
        found = verdicts.get(shop.id, verdict if verdict == "unknown" else "no")
        whole.response.must(found == verdict, f"{verdict} for {shop.id}", found)


@rule("F3", "has_code, where it exists, keeps shops of which list_coupons lists a code.")
async def _has_code(service: ServiceUnderTest) -> None:
    await _by_destination(service, "DE")
    page = await _found(service, query="", limit=PROBED, has_code=True)
    for shop_id in require(_ids(page), "a shop with a usable code"):
        page.response.must(await _lists_codes(service, shop_id), f"no shop without a usable code, such as {shop_id}")
    others = [shop for shop in service.subjects.shops if shop.id not in service.subjects.codes]
    for shop in others[:1]:
        found = _ids(await _found(service, query=shop.domain, has_code=True))
        page.response.must(shop.id not in found or await _lists_codes(service, shop.id), f"no code of {shop.id}")


@rule("E4", "The error for an unknown category proposes similar slugs that exist.")
async def _similar_slugs(service: ServiceUnderTest) -> None:
    slug = service.subjects.category().slug
    response = await service.tool("find_shop", {"query": "", "category": f"{slug}-x"})
    detail = response.problem(400, "unknown_category")["detail"].text()
    response.must(slug in detail, f"an error that proposes {slug}")


@rule("F5", "facets, where they exist, count all matches by category and by market, without the filter of their kind.")
async def _facets(service: ServiceUnderTest) -> None:
    page = await _beyond(service, "facets", ["category"], query="", limit=1)
    for arguments in ({}, {"category": service.subjects.category().slug}):
        page = await _found(service, query="", limit=1, facets=["category"], **arguments)
        listed = (await service.read("list_categories"))["results"].each()
        expected = [{"value": one["slug"].text(), "count": one["count"].whole()} for one in listed][:_VALUES]
        counted = page["facets"]["category"]["values"]
        is_same = [{name: value[name].value for name in ("value", "count")} for value in counted.each()] == expected
        counted.must(is_same, "the categories of list_categories with their counts")
    page = await _found(service, query="", limit=FULL, facets=["country"], category=_small_category(service))
    stated = [shop["countries"].value or () for shop in page["results"].each()]
    counts = Counter(country for countries in stated for country in countries)
    country = page["facets"]["country"]
    found = {value["value"].text(): value["count"].whole() for value in country["values"].each()}
    is_exact = found.items() <= counts.items() and len(found) == min(len(counts), _VALUES)
    country["values"].must(is_exact, f"the counts of the {_total(page)} matches: {dict(counts)}")
    country["missing"].expect(stated.count(()))
    country["other_count"].expect(len(counts) - len(found))


@rule("F6", "categories and countries, where they exist, keep the shops that pass any of them.")
async def _any_of_several(service: ServiceUnderTest) -> None:
    slugs = [category.slug for category in service.subjects.categories[:2]]
    page = await _beyond(service, "categories", slugs, query="", limit=FULL)
    for shop in page["results"].each():
        shop["categories"].must({*shop["categories"].texts()} & {*slugs}, f"one of {', '.join(slugs)}")
    for slug in slugs:
        alone = _total(await _found(service, query="", limit=1, category=slug))
        page.response.must(_total(page) >= alone, f"at least the {alone} shops of {slug}")
    unknown = await service.tool("find_shop", {"query": "", "categories": [slugs[0], service.unknown_id]})
    unknown.problem(400, "unknown_category")["errors"][0]["field"].expect("categories.1")
    await _expect_invalid(service, categories=slugs, category=slugs[0])
    await _expect_invalid(service, countries=[])
    country, elsewhere = _market(service)
    outside = await _found(service, query=elsewhere.domain, countries=[country])
    outside.response.must(elsewhere.id not in _ids(outside), f"no shop that sells elsewhere only, as {elsewhere.id}")


@rule("F7", "next_cursor, where it exists, leads through all matches, each once, and is refused for another search.")
async def _cursor(service: ServiceUnderTest) -> None:
    wanted = require(_ids(await _found(service, query="", limit=FULL)), "a shop in the catalogue")
    scope = {"query": "", "limit": -(-len(wanted) // 3)}
    page = await _found(service, **scope)
    require("next_cursor" in page, "next_cursor, which the interface does not require")
    first, paged = page["next_cursor"].text(), _ids(page)
    while len(paged) < len(wanted):
        page.response.must(page["truncated"].flag() == ("next_cursor" in page), "next_cursor exactly while truncated")
        page = await _found(service, **scope, cursor=page["next_cursor"].text())
        paged += _ids(page)
    is_whole = paged[: len(wanted)] == wanted and len(set(paged)) == len(paged)
    page.response.must(is_whole, f"pages that hold each shop of the page of {FULL} once, in its order")
    for wrong in ({"cursor": f"{first}x"}, {"cursor": first, "country": "DE"}, {"cursor": first, "offset": 1}):
        await _expect_invalid(service, **{**scope, **wrong})


async def _beyond(service: ServiceUnderTest, name: str, value: object, **arguments: Any) -> Part:  # noqa: ANN401 - as below
    """A page with a parameter that the interface does not require."""
    response = await service.tool("find_shop", {**arguments, name: value})
    require(response.status != HTTPStatus.BAD_REQUEST, f"the parameter {name}, which the interface does not require")
    return response.json()


def _small_category(service: ServiceUnderTest) -> str:
    small = [category.slug for category in service.subjects.categories if category.count <= FULL]
    return require(small, f"a category of at most {FULL} shops")[0]


async def _found(service: ServiceUnderTest, **arguments: Any) -> Part:  # noqa: ANN401 - arguments of find_shop
    return await service.read("find_shop", arguments)


async def _lists_codes(service: ServiceUnderTest, shop_id: str) -> bool:
    return bool((await service.about_shop("list_coupons", shop_id)).json()["results"].values())


async def _by_destination(service: ServiceUnderTest, country: str, **arguments: bool) -> Part:
    """The shops that ship to a country."""
    page = await _beyond(service, "ships_to", country, query="", limit=FULL, **arguments)
    require("unsettled_count" in page, "filters by facts")
    return page


async def _expect_nothing(service: ServiceUnderTest, word: str) -> None:
    unmatched = await _found(service, query=word)
    unmatched["ignored_terms"].expect([word])
    unmatched["total_count"].expect(0)


async def _expect_invalid(service: ServiceUnderTest, **arguments: Any) -> None:  # noqa: ANN401 - as above
    (await service.tool("find_shop", {"query": "", **arguments})).problem(400, "invalid_input")


def _ids(page: Part, name: str = "results") -> list[str]:
    return [shop["id"].text() for shop in page[name].each()]


def _total(page: Part) -> int:
    return page["total_count"].whole()


def _expect_found(page: Part, shop: KnownShop) -> None:
    page.response.must(shop.id in _ids(page), f"the shop {shop.id} among the results")


def _words(shop: KnownShop) -> list[str]:
    return [word.lower() for word in shop.name.split() if _WORD.fullmatch(word)]


def _worded(service: ServiceUnderTest) -> tuple[KnownShop, str]:
    """A shop whose name has a plain word, and that word."""
    worded = ((shop, word) for shop in service.subjects.shops for word in _words(shop))
    return require(next(worded, None), "a shop with a word of five plain letters in its name")


def _market(service: ServiceUnderTest) -> tuple[str, KnownShop]:
    """A country that some shop sells in, and a shop that sells elsewhere only."""
    stated = [shop for shop in service.subjects.shops if shop.countries and WORLDWIDE not in shop.countries]
    countries = (country for shop in stated for country in shop.countries or ())
    pairs = ((country, shop) for country in countries for shop in stated if not shop.sells_in(country))
    return require(next(pairs, None), "two shops with different markets")


async def _words_of_two(service: ServiceUnderTest) -> tuple[str, str]:
    """Words of two shops that match few enough shops to compare them, and not the same shops."""
    worded = [words[0] for shop in service.subjects.shops if (words := _words(shop))]
    for one, other in pairwise(worded[:_TRIED]):
        first, second = [await _found(service, query=word, limit=FULL) for word in (one, other)]
        if max(_total(first), _total(second)) <= FULL and set(_ids(first)) - set(_ids(second)):
            return one, other
    raise NothingToSeeError("two shops with a word of their own each")


@rule("I69", "/suggest matches prefixes, tolerates a typing error and ranks popular shops first.")
async def _matching(service: ServiceUnderTest) -> None:
    plain = [shop for shop in service.subjects.shops if _PLAIN.fullmatch(shop.name)]
    shop = require(plain, "a shop with a name of seven plain letters or more among the most popular")[0]
    await _expect_suggested(service, shop.name[:-1], shop, "a prefix of its name")
    middle = len(shop.name) // 2
    other = "q" if shop.name[middle].lower() != "q" else "x"
    mistyped = shop.name[:middle] + other + shop.name[middle + 1 :]
    await _expect_suggested(service, mistyped, shop, "its name with one wrong letter")
    for q in (shop.name[:2], shop.name):
        response = await service.suggest(q, limit=_MOST)
        scores = [found["score"].number() for found in response.json()["shops"].each()]
        in_order = scores == sorted(scores, reverse=True)
        response.must(in_order, "shops in the order of their scores, the highest first", f"scores {scores}")
    expected = [shop.id for shop in await _listed(service)][:_MOST]
    response = await service.suggest("", limit=_MOST)
    found = _ids(response.json(), "shops")
    response.must(found == expected, f"the most popular shops, as find_shop lists them: {expected}", f"{found}")


@rule("I70", "/suggest returns up to 8 shops and categories, or as many as limit says.")
async def _suggest_limit(service: ServiceUnderTest) -> None:
    subjects = service.subjects
    require(subjects.shops and subjects.categories, "a shop in a category")
    for limit, most in ((3, 3), (None, _SUGGESTED), (_MOST, _MOST)):
        answer = (await service.suggest("", limit=limit)).json()
        for name, known in (("shops", len(subjects.shops)), ("categories", len(subjects.categories))):
            expected = min(most, known)
            answer[name].must(len(answer[name].values()) == expected, f"{expected} of the {known} most popular")
    require(len(subjects.shops) > _SUGGESTED, "more than eight shops")


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
        response = await service.suggest("", limit=_MOST, country=spelling)
        found = {shop["id"].text() for shop in response.json()["shops"].each()}
        is_filtered = not refused & found and expected <= found
        response.must(is_filtered, f"the most popular shops of {country}: {sorted(expected)}", f"{sorted(found)}")
    (await service.suggest("", country="XX")).problem(400)


@rule("I72", "/suggest returns query as sent, and categories and shops with exactly their fields.")
async def _fields(service: ServiceUnderTest) -> None:
    typed = f" {service.subjects.shop.name[:60].upper()}+&%"
    for q in ("", typed):
        answer = (await service.suggest(q)).json()
        _expect_exactly(answer, {"query": exactly(q), "categories": Part.values, "shops": Part.values})
        for category in answer["categories"].each():
            _expect_exactly(category, {"category": Part.text, "slug": Part.text, "count": Part.whole})
        texts = dict.fromkeys(("id", "name", "domain", "category"), Part.text)
        for shop in answer["shops"].each():
            _expect_exactly(shop, {**texts, "score": Part.number})


@rule("M10", "limit of /suggest is 1 to 20, and its categories have the counts of list_categories.")
async def _category_counts(service: ServiceUnderTest) -> None:
    for limit in (0, _MOST + 1):
        (await service.suggest("", limit=limit)).problem(400)
    stated = next((shop.countries[0] for shop in service.subjects.shops if shop.countries), WORLDWIDE)
    listed = (await service.read("list_categories"))["results"].values()
    for country in (None, stated if stated != WORLDWIDE else "DE"):
        response = await service.suggest("", limit=_MOST, country=country)
        found = response.json()["categories"].values()
        expected = "the first of list_categories, with the same counts, whatever the country"
        response.must(found == listed[:_MOST], expected)


async def _expect_suggested(service: ServiceUnderTest, q: str, shop: KnownShop, what: str) -> None:
    response = await service.suggest(q, limit=_MOST)
    response.must(shop.id in _ids(response.json(), "shops"), f"the shop {shop.id} for {what}")


async def _listed(service: ServiceUnderTest) -> list[KnownShop]:
    """The first hundred shops of the blank search."""
    return [*known_shops((await service.read("find_shop", {"query": "", "limit": FULL}))["results"].values())]


def _expect_exactly(part: Part, shape: Mapping[str, Shape]) -> None:
    """Raise RuleBrokenError unless an object is of a shape, and has no other fields."""
    part.must(set(part.names()) == set(shape), f"exactly the fields {', '.join(sorted(shape))}")
    expect_shape(part, shape)
