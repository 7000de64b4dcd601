"""find_shop: pages, totals, filters, words and bounds. The queries are made of names of known shops."""

import re
from itertools import pairwise
from typing import Any, Final

from shop_directory.conformance.exchange import NothingToSeeError, Response
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import KnownShop, ServiceUnderTest, expect_equal

_FULL: Final = 100
_DEFAULT: Final = 50
_TRIED: Final = 6
_WORLDWIDE: Final = "WORLDWIDE"
# Long enough not to match as a part of two joined words.
_WORD: Final = re.compile("[A-Za-z]{5,}")
_DEEPEST: Final = 100_000


@rule("I21", "find_shop returns at most limit shops, and in total_count the number of all matches.")
async def _limit_and_total(service: ServiceUnderTest) -> None:
    response = await _found(service, query="", limit=_FULL)
    total, shops = _total(response), _ids(response)
    if len(shops) != min(total, _FULL):
        raise response.broken("all matches, at most limit", f"{len(shops)} of {total}")
    short = await _found(service, query="", limit=2)
    if len(_ids(short)) > 2:  # noqa: PLR2004 - the limit that was asked for
        raise short.broken("at most 2 results", f"{len(_ids(short))} results")
    short.json()["total_count"].expect(total)
    if total < 3:  # noqa: PLR2004 - more than the limit above
        raise NothingToSeeError("three shops in the catalogue")


@rule("I22", "truncated is true exactly when matches lie beyond the page.")
async def _truncated(service: ServiceUnderTest) -> None:
    category = service.subjects.category(at_least=3)
    scope = {"query": "", "category": category.slug}
    total = _total(await _found(service, **scope, limit=_FULL))
    for limit, offset in ((1, 0), (_FULL, 0), (1, max(total - 1, 0)), (1, total)):
        response = await _found(service, **scope, limit=limit, offset=offset)
        response.json()["truncated"].expect(offset + len(_ids(response)) < total)
    whole = await _found(service, query="", limit=_FULL)
    whole.json()["truncated"].expect(_total(whole) > len(_ids(whole)))


@rule("I23", "ignored_terms has the words that match nothing and were dropped, and no others.")
async def _ignored_terms(service: ServiceUnderTest) -> None:
    _, word = _worded(service)
    no_match = service.unknown_id.replace("_", "")
    alone = await _found(service, query=word)
    alone.json()["ignored_terms"].expect([])
    narrower = await _found(service, query=f"{word} {no_match}")
    narrower.json()["ignored_terms"].expect([no_match])
    if (_total(narrower), _ids(narrower)) != (_total(alone), _ids(alone)):
        raise narrower.broken(f"the shops that {word} alone finds, as the other word was dropped")
    unmatched = await _found(service, query=no_match)
    unmatched.json()["ignored_terms"].expect([no_match])
    unmatched.json()["total_count"].expect(0)


@rule("M3.hosts", "A host of no shop finds nothing, and is one ignored term.")
async def _unknown_host(service: ServiceUnderTest) -> None:
    host = f"{service.unknown_id.replace('_', '')}.com"
    response = await _found(service, query=host)
    response.json()["ignored_terms"].expect([host])
    response.json()["total_count"].expect(0)


@rule("M3.wishes", "Next to the words of a category a word for a shop is not ignored, and loses no shop.")
async def _word_for_a_shop(service: ServiceUnderTest) -> None:
    words = service.subjects.category().slug.replace("-", " ")
    alone, wished = await _found(service, query=words), await _found(service, query=f"{words} shop")
    wished.json()["ignored_terms"].expect([])
    if _total(wished) < _total(alone):
        raise wished.broken(f"at least the {_total(alone)} shops of {words}")


@rule("I24", "category_truncated says whether words matched more categories than are searched.")
async def _category_truncated(service: ServiceUnderTest) -> None:
    _, word = _worded(service)
    (await _found(service, query=word)).json()["category_truncated"].flag()
    # A blank query has no word that could match too many.
    (await _found(service, query="", limit=_FULL)).json()["category_truncated"].expect(value=False)


@rule("I44", "find_shop needs query, which may be a part of a name or domain; left out it is 400.")
async def _query(service: ServiceUnderTest) -> None:
    (await service.tool("find_shop", {})).problem(400)
    (await service.tool("find_shop", {"query": None})).problem(400)
    shop = service.subjects.shop()
    _expect_found(await _found(service, query=shop.domain), shop)
    named, word = _worded(service)
    for part in (word, word[:-1]):
        response = await _found(service, query=part, limit=_FULL)
        if _total(response) <= _FULL:
            _expect_found(response, named)


@rule("I45", "An empty query is valid and lists shops, those of the category if one is given.")
async def _blank_query(service: ServiceUnderTest) -> None:
    whole = await _found(service, query="", limit=_FULL)
    if not _ids(whole):
        raise NothingToSeeError("a shop in the catalogue")
    category = service.subjects.category()
    response = await _found(service, query="", category=category.slug, limit=_FULL)
    if not _ids(response):
        raise response.broken(f"the {category.count} shops of the category")


@rule("I46", "find_shop takes an ISO 3166-1 alpha-2 country, and returns shops that sell there or state no markets.")
async def _country(service: ServiceUnderTest) -> None:
    (await service.tool("find_shop", {"query": "", "country": "ZZ"})).problem(400)
    (await service.tool("find_shop", {"query": "", "country": "Germany"})).problem(400)
    country, elsewhere = _market(service)
    response = await _found(service, query="", country=country, limit=_FULL)
    for shop in response.json()["results"].each():
        markets = shop["countries"]
        if not markets.is_null and not {country, _WORLDWIDE} & set(markets.texts()):
            raise markets.broken(f"{country}, {_WORLDWIDE} or no markets at all")
    outside = await _found(service, query=elsewhere.domain, country=country)
    if elsewhere.id in _ids(outside):
        raise outside.broken(f"no shop that sells elsewhere only, such as {elsewhere.id}")


@rule("I47", "The limit of find_shop is 50 by default and 100 at most.")
async def _limit(service: ServiceUnderTest) -> None:
    (await service.tool("find_shop", {"query": "", "limit": _FULL + 1})).problem(400)
    (await service.tool("find_shop", {"query": "", "limit": 0})).problem(400)
    response = await _found(service, query="")
    total, shown = _total(response), len(_ids(response))
    if shown != min(total, _DEFAULT):
        raise response.broken(f"{min(total, _DEFAULT)} shops", f"{shown} shops")
    if total <= _DEFAULT:
        raise NothingToSeeError(f"more than {_DEFAULT} shops in the catalogue")


@rule("I48", "offset is 0 by default; raising it returns all matches page by page, each once.")
async def _offset(service: ServiceUnderTest) -> None:
    whole = await _found(service, query="", limit=_FULL)
    wanted = _ids(whole)
    if len(wanted) < 3:  # noqa: PLR2004 - pages need something to page through
        raise NothingToSeeError("three shops in the catalogue")
    step = -(-len(wanted) // 3)
    paged: list[str] = []
    for offset in range(0, len(wanted), step):
        response = await _found(service, query="", limit=step, offset=offset)
        paged += _ids(response)
    if paged[: len(wanted)] != wanted or len(set(paged)) != len(paged):
        raise response.broken(f"pages of {step} that hold each shop of the page of {_FULL} once, in its order")
    if _ids(await _found(service, query="", limit=step)) != wanted[:step]:
        raise whole.broken("the first page when no offset is given")


@rule("I49", "category is an exact slug, and a shop must match both it and the query.")
async def _category(service: ServiceUnderTest) -> None:
    category = service.subjects.category()
    response = await _found(service, query="", category=category.slug, limit=_FULL)
    for shop in response.json()["results"].each():
        if category.slug not in shop["categories"].texts():
            raise shop["categories"].broken(category.slug)
    other = next((shop for shop in service.subjects.shops if category.slug not in shop.categories), None)
    if other is None:
        raise NothingToSeeError("a shop that does not carry every category")
    _expect_found(await _found(service, query=other.domain, category=other.categories[0]), other)
    both = await _found(service, query=other.domain, category=category.slug, limit=_FULL)
    if other.id in _ids(both):
        raise both.broken(f"no shop outside the category, such as {other.id}")


@rule("I50", "Every word of a query needs evidence on the same shop: in its name, domain or category.")
async def _every_word(service: ServiceUnderTest) -> None:
    one, other = await _words_of_two(service)
    response = await _found(service, query=f"{one} {other}", limit=_FULL)
    matches = {word: set(_ids(await _found(service, query=word, limit=_FULL))) for word in (one, other)}
    # With another word, a label of the domain is evidence too (M3 e).
    unexpected = {
        shop["id"].text()
        for shop in response.json()["results"].each()
        for word in (one, other)
        if shop["id"].text() not in matches[word] and word not in shop["domain"].text().split(".")
    }
    if unexpected:
        raise response.broken(
            f"only shops that match both {one} and {other}", f"also {', '.join(sorted(unexpected)[:5])}"
        )


@rule(
    "M6.word_counts",
    "When several words match no shop together, word_counts has the number of shops for each, zeros too.",
)
async def _word_counts(service: ServiceUnderTest) -> None:
    no_match = service.unknown_id.replace("_", "")
    unmatched = await _found(service, query=f"{no_match} {no_match}x {no_match}")
    if "word_counts" not in unmatched.json():
        raise NothingToSeeError("word_counts, which the interface does not require")
    unmatched.json()["word_counts"].expect([{"word": word, "shops": 0} for word in (no_match, f"{no_match}x")])
    _, word = _worded(service)
    found = await _found(service, query=f"{word} {word}")
    if "word_counts" in found.json():
        raise found.broken("no word_counts where there are matches")


@rule("I51", "An unlisted category slug is an error, never an empty list.")
async def _unknown_category(service: ServiceUnderTest) -> None:
    for query in ("", service.subjects.shop().domain):
        response = await service.tool("find_shop", {"query": query, "category": service.unknown_id})
        response.problem(400, "unknown_category")


@rule("R4", "country is an assigned alpha-2 code or XK in any case; others, UK and XX among them, are 400.")
async def _countries(service: ServiceUnderTest) -> None:
    upper = await _found(service, query="", country="DE", limit=3)
    expect_equal(
        upper, await _found(service, query="", country="de", limit=3), "the same response for the code in lower case"
    )
    await _found(service, query="", country="XK", limit=1)
    for code in ("UK", "XX", "DEU", "1"):
        await _expect_invalid(service, country=code, limit=1)


@rule("M6.nothing_left", "When every word is dropped, the category is browsed; without a category the result is empty.")
async def _nothing_left(service: ServiceUnderTest) -> None:
    category = service.subjects.category()
    no_match = service.unknown_id.replace("_", "")
    browsed = await _found(service, query="", category=category.slug, limit=_FULL)
    response = await _found(service, query=no_match, category=category.slug, limit=_FULL)
    if response.json()["results"].values() != browsed.json()["results"].values():
        raise response.broken("the shops of the category, as every word was dropped")
    (await _found(service, query=no_match)).json()["results"].expect([])


@rule("M8", "A value out of bounds is refused, never clamped; 50.0 is an integer, strings and booleans are not.")
async def _bounds(service: ServiceUnderTest) -> None:
    whole = await _found(service, query="", limit=5)
    as_decimal = await service.tool("find_shop", b'{"query":"","limit":5.0}')
    expect_equal(whole, as_decimal, "the same answer for 5.0 and for 5")
    for limit in ("5", True, 2.5, 0, _FULL + 1):
        await _expect_invalid(service, limit=limit)
    await _expect_invalid(service, offset=-1)
    for query in ("a" * 201, " ".join("abcdefghijklm")):
        await _expect_invalid(service, query=query)
    (await service.tool("find_shop", {"query": "", "offset": _DEEPEST, "limit": 1})).problem(400, "page_too_deep")


@rule("E4", "The error for an unknown category proposes similar slugs that exist.")
async def _similar_slugs(service: ServiceUnderTest) -> None:
    slug = service.subjects.category().slug
    response = await service.tool("find_shop", {"query": "", "category": f"{slug}-x"})
    if slug not in response.problem(400, "unknown_category")["detail"].text():
        raise response.broken(f"an error that proposes {slug}")


async def _found(service: ServiceUnderTest, **arguments: Any) -> Response:  # noqa: ANN401 - arguments of find_shop
    response = await service.tool("find_shop", arguments)
    response.json()
    return response


async def _expect_invalid(service: ServiceUnderTest, **arguments: Any) -> None:  # noqa: ANN401 - as above
    (await service.tool("find_shop", {"query": "", **arguments})).problem(400, "invalid_input")


def _ids(response: Response) -> list[str]:
    return [shop["id"].text() for shop in response.json()["results"].each()]


def _total(response: Response) -> int:
    return response.json()["total_count"].whole()


def _expect_found(response: Response, shop: KnownShop) -> None:
    if shop.id not in _ids(response):
        raise response.broken(f"the shop {shop.id} among the results")


def _words(shop: KnownShop) -> list[str]:
    return [word.lower() for word in shop.name.split() if _WORD.fullmatch(word)]


def _worded(service: ServiceUnderTest) -> tuple[KnownShop, str]:
    """A shop whose name has a plain word, and that word."""
    for shop in service.subjects.shops:
        for word in _words(shop):
            return shop, word
    raise NothingToSeeError("a shop with a word of five plain letters in its name")


def _market(service: ServiceUnderTest) -> tuple[str, KnownShop]:
    """A country that some shop sells in, and a shop that sells elsewhere only."""
    stated = [shop for shop in service.subjects.shops if shop.countries and _WORLDWIDE not in shop.countries]
    for country in (country for shop in stated for country in shop.countries or ()):
        for shop in stated:
            if country not in (shop.countries or ()):
                return country, shop
    raise NothingToSeeError("two shops with different markets")


async def _words_of_two(service: ServiceUnderTest) -> tuple[str, str]:
    """Words of two shops that match few enough shops to compare them, and not the same shops."""
    worded = [(shop, words[0]) for shop in service.subjects.shops if (words := _words(shop))]
    for (_, one), (_, other) in pairwise(worded[:_TRIED]):
        first = await _found(service, query=one, limit=_FULL)
        second = await _found(service, query=other, limit=_FULL)
        if max(_total(first), _total(second)) <= _FULL and set(_ids(first)) - set(_ids(second)):
            return one, other
    raise NothingToSeeError("two shops with a word of their own each")
