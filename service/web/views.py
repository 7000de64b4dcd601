"""The views of the page as HTML from the server: a shop, a list of shops, an error, each under its own address.

The addresses are those of the scripted page, which replaces a view by its own one. A view is made of the answers of
tools, which count in the quota of the caller; it carries them, so that the script does not call again. What an
anonymous caller may not see is not in it. An unknown shop and one under review are one view (V2).
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
from service.tools.request import MAX_SHOPS_WITH_FACTS
from service.web.languages import VARIES_BY, Language, chosen_language, language_of, remembered, without_choice
from service.web.site import Head, Site, address, is_elsewhere, sells
from shop_directory.runtime.request_context import current, new_request_context

# As many shops as one call tells the codes and the policies of.
_PAGE: Final = MAX_SHOPS_WITH_FACTS
# The most shops, and the most categories, that are suggested: as many as the script asks for.
_SUGGESTED: Final = 6
# A page shows so many codes of a shop, and says how many more there are.
_MOST_CODES: Final = 100
_OFFSET: Final = re.compile(r"[0-9]{1,9}")
# The errors of which the page says in its own words what is not there.
_ABSENT: Final = frozenset({"shop_not_found", "unknown_category"})
_SCHEMA: Final = "https://schema.org"
# The popular shops and the categories of the start page, as many as `start.js` shows.
_POPULAR: Final = 8
_TILES: Final = 16
# What the start page shows of a shop, or makes an example of.
_TILE: Final = ("id", "name", "domain", "category", "countries", "logo_url")
# The outcomes of a view's calls by tool; those of the facts of a list's rows may be missing.
_Outcomes = dict[str, Outcome]
# A view: the name of its template, its head and its values.
_View = tuple[str, Head, dict[str, Any]]


class PageEndpoint:
    """The endpoint of the page's path: the start page, or the view that the query string names.

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
        self.start = Endpoint(READING, self._start)

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

    def start_refused(self, error: ServiceError) -> Answer:
        """The start page without its content, which its script asks for again."""
        return self._page("index.html", self._start_head, (), problem=error.detail)

    @property
    def _start_head(self) -> Head:
        return Head("", self._site.language.text("description"), "/")

    def _page(self, name: str, head: Head, headers: Headers, **values: Any) -> Answer:  # noqa: ANN401 - of a template
        body = self._site.render(name, head, **values)
        return Answer(200, body, HTML, (*headers, (CONTENT_SECURITY_POLICY, self._site.policy)))

    async def _start(self, request: Request) -> Answer:
        query_string = request.scope["query_string"]
        country, here = home_country(query_string), without_choice(query_string)
        asked = {"query": "", "country": country, "limit": _POPULAR, "facets": ["country"]}
        outcomes = await self._asked(asked, request)
        last = list(outcomes.values())[-1]
        if last.error is not None:
            return self.start_refused(last.error)
        values = {**_start_values(asked, outcomes), "here": here}
        return self._view("start.html", self._start_head, outcomes, values)

    async def _answer(self, request: Request) -> Answer:
        asked, here = asked_view(request.scope["query_string"]), without_choice(request.scope["query_string"])
        outcomes = await self._asked(asked, request)
        last = list(outcomes.values())[-1]
        if last.error is not None:
            return self.refused(last.error, (*stamp_headers(last.stamp), *last.headers), here)
        view = _shop_view if "shop_domain" in asked else _list_view
        name, head, values = view(self._site.language, asked, outcomes)
        return self._view(name, head, outcomes, {**values, "here": here})

    def _view(self, name: str, head: Head, outcomes: _Outcomes, values: Mapping[str, Any]) -> Answer:
        first, *_, last = outcomes.values()
        as_of = "" if first.stamp is None else first.stamp.built_at
        return self._page(name, head, (*stamp_headers(first.stamp), *last.headers), as_of=as_of, **values)

    async def _asked(self, asked: Mapping[str, Any], request: Request) -> _Outcomes:
        """The outcomes of a view's calls by tool, in order; of a failed view that of the failed call is the last one.

        They are of one generation (C2): where one is published between the calls, they are made again.
        """
        caller = http_caller(request.scope, Channel.REST, self._trusted)
        outcomes = await self._called(asked, caller)
        if len({outcome.stamp.generation for outcome in outcomes.values() if outcome.stamp is not None}) > 1:
            outcomes = await self._called(asked, caller)
        if (context := current()) is not None:
            context.tool = None  # the log and the metrics have the page, and not its last tool
        return outcomes

    async def _called(self, asked: Mapping[str, Any], caller: Caller) -> _Outcomes:
        tool = "get_shop" if "shop_domain" in asked else "find_shop"
        arguments = {"shop_domain": asked["shop_domain"]} if tool == "get_shop" else asked
        first = await self._dispatcher.call(tool, dict(arguments), caller)
        if first.error is not None:
            return {tool: first}
        further = {"list_categories": {"language": self._site.language.tag}, **_further_calls(asked, first.document)}
        calls = [self._dispatcher.call(name, given, caller) for name, given in further.items()]
        made = zip(further, await asyncio.gather(*calls), strict=True)
        outcomes = {tool: first}
        # A list is whole without the facts of its rows.
        outcomes |= {name: done for name, done in made if done.error is None or "shop_domains" not in further[name]}
        if tool == "find_shop" and not first.document["total_count"] and (near := await self._near(asked, caller)):
            outcomes["suggest"] = near
        return dict(sorted(outcomes.items(), key=lambda one: one[1].error is not None))

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
    texts = {name: _texts(values) for name, values in given.items()}
    first = {name: values[0] for name, values in given.items()}
    countries = [code.upper() for code in texts.get("country", ())]
    if first.get("shop"):
        return {"shop_domain": first["shop"], "country": home_country(query_string)}
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


def home_country(query_string: bytes) -> str | None:
    """The country of the visitor that an address names: of several countries none is, nor one that does not exist."""
    given = _texts(parse_qs(query_string.decode("latin-1")).get("country", ()))
    codes = [code.upper() for code in given]
    return codes[0] if len(codes) == 1 and codes[0] in COUNTRY_CODES else None


def _texts(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(str.strip, values))))


def _further_calls(asked: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The arguments of the calls by tool that follow the first one of a view, besides the categories."""
    if "shop_domain" in asked:
        shop = {"shop_domain": asked["shop_domain"]}
        return {"list_coupons": shop, "get_shop_policies": {**shop, "country": asked["country"]}}
    if "offset" not in asked or not first["results"]:
        return {}
    shops = {"shop_domains": [shop["id"] for shop in first["results"]]}
    return {"list_coupons": shops, "get_shop_policies": {**shops, "country": _home_of_list(asked)}}


def _home_of_list(asked: Mapping[str, Any]) -> str | None:
    """The country to which the shops of a list shall ship; of several countries none is that of the visitor."""
    countries: Sequence[str] = asked["countries"] or ()
    home: str | None = asked["ships_to"] or (countries[0] if len(countries) == 1 else None)
    return home


def _start_values(asked: Mapping[str, Any], outcomes: _Outcomes) -> dict[str, Any]:
    found, categories = outcomes["find_shop"].document, outcomes["list_categories"].document
    shops, country = found["results"], asked["country"]
    markets = {one["value"] for one in found["facets"]["country"]["values"]} - {WORLDWIDE}
    shown = [{name: shop[name] for name in _TILE if name in shop} for shop in shops]
    return {
        "answers": {"find_shop": {"results": shown}, "list_categories": categories},
        "shops": shops,
        "categories": categories["results"],
        "most": _TILES,
        "country": country,
        # All countries would be a tenth of what the page's first load may take; other markets change nothing here.
        "homes": markets | ({country} if country else set()),
    }


def _shop_view(language: Language, asked: Mapping[str, Any], outcomes: _Outcomes) -> _View:
    answers = {tool: outcome.document for tool, outcome in outcomes.items()}
    shop, coupons, policies = (answers[tool] for tool in ("get_shop", "list_coupons", "get_shop_policies"))
    categories = answers["list_categories"]
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


def _list_view(language: Language, asked: Mapping[str, Any], outcomes: _Outcomes) -> _View:
    answers = {tool: outcome.document for tool, outcome in outcomes.items()}
    found, categories, suggested = answers["find_shop"], answers["list_categories"], answers.get("suggest")
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
    lead = language.text("shops_within", shops=shops, filters=within) if within else shops
    rows = _row_facts(answers.get("list_coupons"), answers.get("get_shop_policies"), _home_of_list(asked))
    given = {**found, "rows": rows, **({"near": suggested} if suggested else {})}
    values = {
        "answers": {"find_shop": given, "list_categories": categories},
        "found": found,
        "rows": rows,
        "near": near,
        "within": within,
        "lead": lead if total else _difference(language, asked, found, near, within),
        "query": query,
        # If there are several countries, none is that of the visitor.
        "country": asked["countries"][0] if len(asked["countries"] or ()) == 1 else None,
        "home": _home_of_list(asked),
        "title": title,
        "chosen": chosen,
        "asked": asked,
        "names": names,
        "categories": categories["results"],
        "pages": _pages(language, asked, total),
        "broader": [(one, _address_of({**asked, "query": one["query"]})) for one in found.get("broader") or ()],
    }
    return "results.html", head, values


def _row_facts(
    coupons: Mapping[str, Any] | None, policies: Mapping[str, Any] | None, country: str | None
) -> dict[str, dict[str, Any]]:
    """What rows say besides the answer of find_shop, by the shops' ids; None stands for an answer that failed.

    `worked` is whether a code worked in a real checkout that is not for other countries only, `ships_to` the verdict on
    the country (absent without one), and `returns` the period. `rows.js` does the same.
    """
    facts: dict[str, dict[str, Any]] = {}
    for entry in coupons["shops"] if coupons else ():
        if any(_worked(coupon, country) for coupon in (entry["coupons"] or {"results": ()})["results"]):
            facts.setdefault(entry["shop_domain"], {})["worked"] = True
    for entry in policies["shops"] if policies else ():
        if (stated := entry["policies"]) is None:
            continue
        shop = facts.setdefault(entry["shop_domain"], {})
        if country is not None:
            shop["ships_to"] = stated["shipping"]["ships_to"]
        if (returns := stated["returns"]) is not None:
            shop["returns"] = {"category": returns["category"], "days": returns["days"]}
    return facts


def _worked(coupon: Mapping[str, Any], country: str | None) -> bool:
    return coupon["verificationStatus"] == "verified_applied" and not is_elsewhere(coupon, country)


def _nearest(found: Mapping[str, Any], suggested: Mapping[str, Any] | None) -> dict[str, Any]:
    """The shops and categories that may be meant where nothing is found: of did_you_mean, then of what is suggested."""
    if found["total_count"]:
        return {"shops": [], "categories": []}
    close = suggested or {"shops": [], "categories": []}
    shops = {shop["id"]: shop for shop in (*found["did_you_mean"], *close["shops"])}
    return {"shops": list(shops.values()), "categories": close["categories"]}


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
