"""find_shop: pages, totals, filters, words. Subjects are words of shops that the visit has seen."""

import re
from itertools import pairwise
from typing import Any, Final

from shop_directory.conformance.exchange import Reply
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import Visit
from shop_directory.conformance.subjects import SeenShop

_FULL: Final = 100
_DEFAULT: Final = 50
_TRIED: Final = 6
_WORLDWIDE: Final = "WORLDWIDE"
# Long enough that a word is found as itself and not as a piece of the joined form of two.
_WORD: Final = re.compile("[A-Za-z]{5,}")


@rule("I21", "find_shop returns at most limit shops, and in total_count all matches before that cut.")
async def _limit_and_total(visit: Visit) -> None:
    reply = await _found(visit, query="", limit=_FULL)
    total, shops = _total(reply), _ids(reply)
    if len(shops) != min(total, _FULL):
        raise reply.broken("as many results as there are matches, at most limit", f"{len(shops)} of {total}")
    short = await _found(visit, query="", limit=2)
    if len(_ids(short)) > 2:  # noqa: PLR2004 - the limit that was asked for
        raise short.broken("at most 2 results", f"{len(_ids(short))} results")
    short.answer()["total_count"].expect(total)
    if total < 3:  # noqa: PLR2004 - a cut at two must leave something
        raise NothingToSeeError("three shops in the catalogue")


@rule("I22", "truncated is true exactly when matches lie beyond the page.")
async def _truncated(visit: Visit) -> None:
    category = visit.seen.category(at_least=3)
    scope = {"query": "", "category": category.slug}
    total = _total(await _found(visit, **scope, limit=_FULL))
    for limit, offset in ((1, 0), (_FULL, 0), (1, max(total - 1, 0)), (1, total)):
        reply = await _found(visit, **scope, limit=limit, offset=offset)
        reply.answer()["truncated"].expect(offset + len(_ids(reply)) < total)
    whole = await _found(visit, query="", limit=_FULL)
    whole.answer()["truncated"].expect(_total(whole) > len(_ids(whole)))


@rule("I23", "ignored_terms names the words that are found nowhere and were left out, and only those.")
async def _ignored_terms(visit: Visit) -> None:
    _, word = _worded(visit)
    nowhere = visit.unknown_id.replace("_", "")
    alone = await _found(visit, query=word)
    alone.answer()["ignored_terms"].expect([])
    narrower = await _found(visit, query=f"{word} {nowhere}")
    narrower.answer()["ignored_terms"].expect([nowhere])
    if (_total(narrower), _ids(narrower)) != (_total(alone), _ids(alone)):
        raise narrower.broken(f"the shops that {word} alone finds, as the other word was left out")
    lost = await _found(visit, query=nowhere)
    lost.answer()["ignored_terms"].expect([nowhere])
    lost.answer()["total_count"].expect(0)


@rule("I24", "category_truncated tells whether words resolved to more categories than are searched.")
async def _category_truncated(visit: Visit) -> None:
    _, word = _worded(visit)
    (await _found(visit, query=word)).answer()["category_truncated"].flag()
    # A blank query has no word that could resolve to too many.
    (await _found(visit, query="", limit=_FULL)).answer()["category_truncated"].expect(value=False)


@rule("I44", "find_shop needs query, which may be a part of a name or domain; left out it is 400.")
async def _query(visit: Visit) -> None:
    (await visit.tool("find_shop", {})).problem(400)
    (await visit.tool("find_shop", {"query": None})).problem(400)
    shop = visit.seen.shop()
    _expect_found(await _found(visit, query=shop.domain), shop)
    named, word = _worded(visit)
    for part in (word, word[:-1]):
        reply = await _found(visit, query=part, limit=_FULL)
        if _total(reply) <= _FULL:
            _expect_found(reply, named)


@rule("I45", "An empty query is valid and browses, by category when one is given.")
async def _blank_query(visit: Visit) -> None:
    whole = await _found(visit, query="", limit=_FULL)
    if not _ids(whole):
        raise NothingToSeeError("a shop in the catalogue")
    category = visit.seen.category()
    reply = await _found(visit, query="", category=category.slug, limit=_FULL)
    if not _ids(reply):
        raise reply.broken(f"the {category.count} shops of the category")


@rule("I46", "find_shop takes an ISO 3166-1 alpha-2 country, and keeps shops that sell there or don't say.")
async def _country(visit: Visit) -> None:
    (await visit.tool("find_shop", {"query": "", "country": "ZZ"})).problem(400)
    (await visit.tool("find_shop", {"query": "", "country": "Germany"})).problem(400)
    country, elsewhere = _market(visit)
    reply = await _found(visit, query="", country=country, limit=_FULL)
    for shop in reply.answer()["results"].each():
        markets = shop["countries"]
        if not markets.is_null and not {country, _WORLDWIDE} & set(markets.texts()):
            raise markets.broken(f"{country}, {_WORLDWIDE} or no markets at all")
    outside = await _found(visit, query=elsewhere.domain, country=country)
    if elsewhere.id in _ids(outside):
        raise outside.broken(f"no shop that sells elsewhere only, such as {elsewhere.id}")


@rule("I47", "find_shop's limit is 50 unless given, and 100 at most.")
async def _limit(visit: Visit) -> None:
    (await visit.tool("find_shop", {"query": "", "limit": _FULL + 1})).problem(400)
    (await visit.tool("find_shop", {"query": "", "limit": 0})).problem(400)
    reply = await _found(visit, query="")
    total, shown = _total(reply), len(_ids(reply))
    if shown != min(total, _DEFAULT):
        raise reply.broken(f"{min(total, _DEFAULT)} shops", f"{shown} shops")
    if total <= _DEFAULT:
        raise NothingToSeeError(f"more than {_DEFAULT} shops in the catalogue")


@rule("I48", "offset is 0 unless given; raising it pages through all matches, each of them once.")
async def _offset(visit: Visit) -> None:
    whole = await _found(visit, query="", limit=_FULL)
    wanted = _ids(whole)
    if len(wanted) < 3:  # noqa: PLR2004 - pages need something to page through
        raise NothingToSeeError("three shops in the catalogue")
    step = -(-len(wanted) // 3)
    paged: list[str] = []
    for offset in range(0, len(wanted), step):
        reply = await _found(visit, query="", limit=step, offset=offset)
        paged += _ids(reply)
    if paged[: len(wanted)] != wanted or len(set(paged)) != len(paged):
        raise reply.broken(f"pages of {step} that hold each shop of the page of {_FULL} once, in its order")
    if _ids(await _found(visit, query="", limit=step)) != wanted[:step]:
        raise whole.broken("the first page when no offset is given")


@rule("I49", "category is an exact slug, and a shop must satisfy both it and the query.")
async def _category(visit: Visit) -> None:
    category = visit.seen.category()
    reply = await _found(visit, query="", category=category.slug, limit=_FULL)
    for shop in reply.answer()["results"].each():
        if category.slug not in shop["categories"].texts():
            raise shop["categories"].broken(category.slug)
    other = next((shop for shop in visit.seen.shops if category.slug not in shop.categories), None)
    if other is None:
        raise NothingToSeeError("a shop that does not carry every category")
    _expect_found(await _found(visit, query=other.domain, category=other.categories[0]), other)
    both = await _found(visit, query=other.domain, category=category.slug, limit=_FULL)
    if other.id in _ids(both):
        raise both.broken(f"no shop outside the category, such as {other.id}")


@rule("I50", "Every word of a query needs evidence on the same shop: in its name, domain or category.")
async def _every_word(visit: Visit) -> None:
    one, other = await _words_of_two(visit)
    reply = await _found(visit, query=f"{one} {other}", limit=_FULL)
    fitting = {word: set(_ids(await _found(visit, query=word, limit=_FULL))) for word in (one, other)}
    # Next to another word a label of the domain is evidence, too (M3 e).
    strays = {
        shop["id"].text()
        for shop in reply.answer()["results"].each()
        for word in (one, other)
        if shop["id"].text() not in fitting[word] and word not in shop["domain"].text().split(".")
    }
    if strays:
        raise reply.broken(f"only shops that {one} and {other} find both", f"also {', '.join(sorted(strays)[:5])}")


@rule("M6.word_counts", "When several words have no match, each is counted with the shops that it fits, zeros too.")
async def _word_counts(visit: Visit) -> None:
    nowhere = visit.unknown_id.replace("_", "")
    lost = await _found(visit, query=f"{nowhere} {nowhere}x {nowhere}")
    if "word_counts" not in lost.answer().keys():  # noqa: SIM118 - a part is no dict
        raise NothingToSeeError("word_counts, which are beyond the interface")
    lost.answer()["word_counts"].expect([{"word": word, "shops": 0} for word in (nowhere, f"{nowhere}x")])
    _, word = _worded(visit)
    found = await _found(visit, query=f"{word} {word}")
    if "word_counts" in found.answer().keys():  # noqa: SIM118 - as above
        raise found.broken("no word_counts, as there are matches")


@rule("I51", "A slug that no listed category has is an error, never an empty list.")
async def _unknown_category(visit: Visit) -> None:
    for query in ("", visit.seen.shop().domain):
        reply = await visit.tool("find_shop", {"query": query, "category": visit.unknown_id})
        reply.problem(400, "unknown_category")


async def _found(visit: Visit, **arguments: Any) -> Reply:  # noqa: ANN401 - arguments of find_shop
    reply = await visit.tool("find_shop", arguments)
    reply.answer()
    return reply


def _ids(reply: Reply) -> list[str]:
    return [shop["id"].text() for shop in reply.answer()["results"].each()]


def _total(reply: Reply) -> int:
    return reply.answer()["total_count"].whole()


def _expect_found(reply: Reply, shop: SeenShop) -> None:
    if shop.id not in _ids(reply):
        raise reply.broken(f"the shop {shop.id} among the results")


def _words(shop: SeenShop) -> list[str]:
    return [word.lower() for word in shop.name.split() if _WORD.fullmatch(word)]


def _worded(visit: Visit) -> tuple[SeenShop, str]:
    """A shop whose name has a plain word, and that word."""
    for shop in visit.seen.shops:
        for word in _words(shop):
            return shop, word
    raise NothingToSeeError("a shop with a word of five plain letters in its name")


def _market(visit: Visit) -> tuple[str, SeenShop]:
    """A country that some shop sells in, and a shop that sells elsewhere only."""
    stated = [shop for shop in visit.seen.shops if shop.countries and _WORLDWIDE not in shop.countries]
    for country in (country for shop in stated for country in shop.countries or ()):
        for shop in stated:
            if country not in (shop.countries or ()):
                return country, shop
    raise NothingToSeeError("two shops with different markets")


async def _words_of_two(visit: Visit) -> tuple[str, str]:
    """Words of two shops that find few enough to be compared, and not the same ones."""
    worded = [(shop, words[0]) for shop in visit.seen.shops if (words := _words(shop))]
    for (_, one), (_, other) in pairwise(worded[:_TRIED]):
        first = await _found(visit, query=one, limit=_FULL)
        second = await _found(visit, query=other, limit=_FULL)
        if max(_total(first), _total(second)) <= _FULL and set(_ids(first)) - set(_ids(second)):
            return one, other
    raise NothingToSeeError("two shops with a word of their own each")
