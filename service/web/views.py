"""The views of the page as HTML from the server: a shop, a list of shops, an error, each under its own address.

The addresses are those of the scripted page, which replaces a view by its own one; without scripts they are readable as
they are. A view is made of the answers of tools, each of which counts in the quota of the caller and is limited as any
call; it carries them, so that the script does not call again. What an anonymous caller may not see is not in it. An
unknown shop and one under review are one view (V2).
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

import orjson
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index_mappings.countries import COUNTRY_CODES, WORLDWIDE
from service.calls.dispatch import Dispatcher, Outcome
from service.errors import ServiceError
from service.http.messages import (
    CONTENT_SECURITY_POLICY,
    HTML,
    READING,
    Answer,
    Endpoint,
    Headers,
    http_caller,
    problem_answer,
    stamp_headers,
)
from service.runtime.caller import Caller, Channel, Proxies
from service.suggest.responder import Refused, SuggestRequest, SuggestResponder
from service.web.languages import VARIES_BY, Language, chosen_language, language_of, remembered, without_choice
from service.web.site import Head, Site, address, is_elsewhere, sells
from shop_directory.runtime.request_context import current, new_request_context

_PAGE: Final = 25
# The most shops, and the most categories, that are suggested: as many as the script asks for.
_SUGGESTED: Final = 6
# A page shows so many codes of a shop, and says how many more there are.
_MOST_CODES: Final = 100
_OFFSET: Final = re.compile(r"[0-9]{1,9}")
# The errors of which the page says in its own words what is not there.
_ABSENT: Final = frozenset({"shop_not_found", "unknown_category"})
_SCHEMA: Final = "https://schema.org"
# A view: the name of its template, its head and its values.
_View = tuple[str, Head, dict[str, Any]]


class PageEndpoint:
    """The endpoint of the page's path: the start page, which is a constant, or the view that the query string names.

    Both are there in each language, by its tag. A language that the address chooses is remembered.
    """

    def __init__(self, starts: Mapping[str, ASGIApp], views: Mapping[str, ASGIApp]) -> None:
        self._starts = starts
        self._views = views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        tag = language_of(scope)

        async def send_in_language(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.add_vary_header(VARIES_BY)
                headers["content-language"] = tag
                if chosen := chosen_language(scope["query_string"]):
                    headers["set-cookie"] = remembered(chosen)
                message = {**message, "headers": headers.raw}
            await send(message)

        pages = self._views if asked_view(scope["query_string"]) else self._starts
        await pages[tag](scope, receive, send_in_language)


class Views:
    """Makes the views of one site."""

    def __init__(self, site: Site, dispatcher: Dispatcher, responder: SuggestResponder, trusted: Proxies) -> None:
        self._site, self._dispatcher, self._responder, self._trusted = site, dispatcher, responder, trusted
        # For all addresses of the page but the start page's.
        self.endpoint = Endpoint(READING, self._answer)

    def refused(self, error: ServiceError, headers: Headers = (), here: str = "") -> Answer:
        """The view of an error, with the status and the headers of its problem document."""
        # What the problem document of these says is meant for programs.
        language, is_absent = self._site.language, error.code in _ABSENT
        head = Head(
            language.text("not_in_directory" if is_absent else "no_answer"),
            language.text(error.code) if is_absent else error.detail,
        )
        body = self._site.render(
            "error.html", head, here=here, is_absent=is_absent, errors=() if is_absent else error.errors
        )
        answer = problem_answer(error, (*headers, (CONTENT_SECURITY_POLICY, self._site.policy)), body)
        return replace(answer, media_type=HTML)

    async def _answer(self, request: Request) -> Answer:
        caller = http_caller(request.scope, Channel.REST, self._trusted)
        query_string = request.scope["query_string"]
        asked, here = asked_view(query_string), without_choice(query_string)
        outcomes = await self._asked("get_shop" if "shop_domain" in asked else "find_shop", asked, caller)
        if (context := current()) is not None:
            context.tool = None  # the log and the metrics have the page, and not its last tool
        last = outcomes[-1]
        if last.error is not None:
            return self.refused(last.error, (*stamp_headers(last.stamp), *last.headers), here)
        view = _shop_view if "shop_domain" in asked else _list_view
        name, head, values = view(self._site.language, asked, outcomes)
        stamp = outcomes[0].stamp
        body = self._site.render(name, head, here=here, as_of="" if stamp is None else stamp.built_at, **values)
        headers = (*stamp_headers(stamp), *last.headers, (CONTENT_SECURITY_POLICY, self._site.policy))
        return Answer(200, body, HTML, headers)

    async def _asked(self, tool: str, asked: Mapping[str, Any], caller: Caller) -> list[Outcome]:
        """The outcomes of a view's calls, in order; of a failed view that of the failed call is the last one.

        They are of one generation (C2): where one is published between the calls, they are made again.
        """
        outcomes = await self._called(tool, asked, caller)
        if len({outcome.stamp.generation for outcome in outcomes if outcome.stamp is not None}) > 1:
            outcomes = await self._called(tool, asked, caller)
        return outcomes

    async def _called(self, tool: str, asked: Mapping[str, Any], caller: Caller) -> list[Outcome]:
        more: dict[str, dict[str, Any]] = {"list_categories": {"language": self._site.language.tag}}
        arguments = dict(asked)
        if tool == "get_shop":
            country = arguments.pop("country")
            more = {"list_coupons": arguments, "get_shop_policies": {**arguments, "country": country}, **more}
        first = await self._dispatcher.call(tool, arguments, caller)
        if first.error is not None:
            return [first]
        calls = [self._dispatcher.call(name, given, caller) for name, given in more.items()]
        outcomes = [first, *await asyncio.gather(*calls)]
        if tool == "find_shop" and not first.document["total_count"] and (near := await self._near(asked, caller)):
            outcomes.append(near)
        return sorted(outcomes, key=lambda outcome: outcome.error is not None)

    async def _near(self, asked: Mapping[str, Any], caller: Caller) -> Outcome | None:
        """What /suggest answers to a query without matches; None where it refuses, which is not the view's failure."""
        if not asked["query"]:
            return None
        countries = asked["countries"] or []
        given = {"q": asked["query"], "limit": _SUGGESTED, **({"country": countries[0]} if len(countries) == 1 else {})}
        context = current() or new_request_context(caller.request_id)
        request = SuggestRequest(urlencode(given).encode(), context, caller.address, caller.token)
        try:
            response = await self._responder.respond(request)
        finally:
            self._responder.flush_metrics()
        if isinstance(response, Refused) or response.cached is None:
            return None
        body = response.cached.query + response.cached.results
        stamp = response.snapshot.stamp
        return Outcome(caller.request_id, orjson.loads(body), body, stamp, None, response.quota)


def asked_view(query_string: bytes) -> dict[str, Any]:
    """The arguments of find_shop, or those about a shop, that the query string of an address has; none: the start page.

    It is read as the script of the page reads it (`address.js`), and the tools refuse wrong values in it.
    """
    given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    texts = {name: list(dict.fromkeys(filter(None, map(str.strip, values)))) for name, values in given.items()}
    first = {name: values[0] for name, values in given.items()}
    countries = [code.upper() for code in texts.get("country", ())]
    if first.get("shop"):
        known = countries[0] if len(countries) == 1 and countries[0] in COUNTRY_CODES else None
        return {"shop_domain": first["shop"], "country": known}
    categories = texts.get("category", [])
    if "q" not in given and not categories:
        return {}
    ships_to = next(iter(texts.get("ships_to", ())), "").upper()
    offset = first.get("offset") or "0"
    return {
        "query": first.get("q", "").strip(),
        "limit": _PAGE,
        "offset": int(offset) if _OFFSET.fullmatch(offset) else offset,
        "categories": categories or None,
        "countries": countries or None,
        "ships_to": ships_to or None,
        "include_unsettled": bool(ships_to) and first.get("include_unsettled") == "true",
        "has_code": first.get("has_code") == "true",
        "facets": ["category", "country"],
    }


def _shop_view(language: Language, asked: Mapping[str, Any], outcomes: Sequence[Outcome]) -> _View:
    shop, coupons, policies, categories = (outcome.document for outcome in outcomes)
    names = _names(categories)
    carried = [(slug, names.get(slug, slug)) for slug in shop["categories"]]
    codes = len(coupons["results"])
    description = " ".join(
        (
            f"{shop['name']} ({shop['domain']}): {', '.join(name for _, name in carried)}.",
            *([f"{sells(language, shop['countries'])}."] if shop["countries"] else []),
            *([language.text("codes_known_total", count=codes)] if codes else []),
        )
    )
    path = f"/{address(shop=shop['domain'])}"
    head = Head(shop["name"], description, path, shop.get("logo_url"), {"@context": _SCHEMA, **_linked_shop(shop)})
    # Codes that are not for the visitor's country come last.
    listed = sorted(coupons["results"], key=lambda coupon: is_elsewhere(coupon, asked["country"]))
    answers = {
        "get_shop": shop,
        "list_coupons": coupons,
        "get_shop_policies": policies,
        "list_categories": categories,
    }
    values = {
        "answers": answers,
        "shop": shop,
        "categories": carried,
        "coupons": {**coupons, "results": listed[:_MOST_CODES]},
        "more_codes": max(0, codes - _MOST_CODES),
        "policies": policies,
        "country": asked["country"],
    }
    return "shop.html", head, values


def _list_view(language: Language, asked: Mapping[str, Any], outcomes: Sequence[Outcome]) -> _View:
    found, categories, *suggested = (outcome.document for outcome in outcomes)
    names = _names(categories)
    chosen = _either(language, (names.get(slug, slug) for slug in asked["categories"] or ()))
    query, total = asked["query"], found["total_count"]
    title = query or chosen or language.text("all_shops")
    if query and chosen:
        title = language.text("query_in", query=query, categories=chosen)
    shops = language.text("shops_counted", count=total)
    # The whole category or directory has its own address; searches and parts of lists have none.
    narrowed = asked["countries"] or asked["ships_to"] or asked["has_code"] or len(asked["categories"] or ()) > 1
    is_own = not query and not narrowed and not asked["offset"] and bool(chosen)
    path = f"/{address(category=asked['categories'])}" if is_own else ""
    data = None
    if is_own:
        listed = [
            {"@type": "ListItem", "position": 1 + n, "item": _linked_shop(s)} for n, s in enumerate(found["results"])
        ]
        data = {
            "@context": _SCHEMA,
            "@type": "CollectionPage",
            "name": chosen,
            "mainEntity": {"@type": "ItemList", "numberOfItems": total, "itemListElement": listed},
        }
    key = "shops_in" if chosen and not query else "shops_for_search"
    head = Head(title, language.text(key, shops=shops, categories=chosen), path, data=data)
    near, within = _nearest(found, suggested), _within(language, asked)
    given = {**found, "near": suggested[0]} if suggested else found
    values = {
        "answers": {"find_shop": given, "list_categories": categories},
        "found": found,
        "near": near,
        "within": within,
        "lead": _lead(language, shops, within) if total else _difference(language, asked, found, near, within),
        "query": query,
        # If there are several countries, none is that of the visitor.
        "country": asked["countries"][0] if len(asked["countries"] or ()) == 1 else None,
        "title": title,
        "chosen": chosen,
        "asked": asked,
        "names": names,
        "categories": categories["results"],
        "pages": _pages(language, asked, total),
        "broader": [(one, _address_of({**asked, "query": one["query"]})) for one in found.get("broader") or ()],
    }
    return "results.html", head, values


def _nearest(found: Mapping[str, Any], suggested: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The shops and categories that may be meant where nothing is found: of did_you_mean, then of what is suggested."""
    if found["total_count"]:
        return {"shops": [], "categories": []}
    shops = {shop["id"]: shop for answer in ({"shops": found["did_you_mean"]}, *suggested) for shop in answer["shops"]}
    return {
        "shops": list(shops.values()),
        "categories": [category for answer in suggested for category in answer["categories"]],
    }


def _within(language: Language, asked: Mapping[str, Any]) -> str:
    """What the filters besides the categories require of a shop; empty without any of them."""
    ships_to, countries = asked["ships_to"], asked["countries"]
    key = "within_ships_or_silent" if asked["include_unsettled"] else "within_ships"
    named = _either(language, map(language.market, countries or ()))
    parts = (
        ships_to and language.text(key, country=language.market(ships_to)),
        asked["has_code"] and language.text("within_code"),
        countries and language.text("within_countries", countries=named),
    )
    return ", ".join(filter(None, parts))


def _lead(language: Language, shops: str, within: str) -> str:
    """How many shops there are, within the filters."""
    return language.text("shops_within", shops=shops, filters=within) if within else shops


def _difference(
    language: Language, asked: Mapping[str, Any], found: Mapping[str, Any], near: Mapping[str, Any], within: str
) -> str:
    """How what is closest differs from what was asked for."""
    if within:
        return language.text("no_fit_within", filters=within)
    if found.get("broader"):
        return language.text("no_fit_all_words")
    if near["shops"]:
        return language.text("close_names")
    if near["categories"]:
        return language.text("close_categories")
    return language.text("no_fit_categories" if asked["categories"] else "no_fit")


def _either(language: Language, names: Iterable[str]) -> str:
    """Names of which one is enough."""
    return f" {language.text('or')} ".join(names)


def _names(categories: Mapping[str, Any]) -> dict[str, str]:
    return {found["slug"]: found["category"] for found in categories["results"]}


def _linked_shop(shop: Mapping[str, Any]) -> dict[str, Any]:
    """The public facts about a shop, as linked data; unknown facts are omitted."""
    linked: dict[str, Any] = {"@type": "OnlineStore", "name": shop["name"], "url": f"https://{shop['domain']}/"}
    if shop["aliases"]:
        linked["alternateName"] = list(shop["aliases"])
    if shop["countries"]:
        linked["areaServed"] = ["Worldwide" if code == WORLDWIDE else code for code in shop["countries"]]
    if "logo_url" in shop:
        linked["logo"] = shop["logo_url"]
    return linked


def _pages(language: Language, asked: Mapping[str, Any], total: int) -> list[tuple[str, str, str]]:
    """The id, the address and the text of the links to the pages before and after one, where there are shops."""
    offset = asked["offset"]
    # After the last shop, the previous page is the last one with shops.
    end = min(offset, -(-total // _PAGE) * _PAGE)
    links = []
    if end > 0:
        links.append(("previous", _address_of(asked, offset=max(0, end - _PAGE)), language.text("previous")))
    if offset + _PAGE < total:
        links.append(("next", _address_of(asked, offset=offset + _PAGE), language.text("next")))
    return links


def _address_of(asked: Mapping[str, Any], *, offset: int | None = None) -> str:
    return address(
        q=asked["query"] or (None if asked["categories"] else ""),
        category=asked["categories"],
        country=asked["countries"],
        ships_to=asked["ships_to"],
        include_unsettled="true" if asked["include_unsettled"] else None,
        has_code="true" if asked["has_code"] else None,
        offset=offset,
    )
