"""Shops, categories and offers: views, references, lists, merges, and shops under review, which look unknown."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from shop_directory.conformance.exchange import NothingToSeeError, Part, Response, RuleBrokenError, require
from shop_directory.conformance.rule import Call, Need, absent, each, expect_like_unknown, holding, rule
from shop_directory.conformance.rules import mcp
from shop_directory.conformance.rules.facts import KINDS
from shop_directory.conformance.rules.mcp import Era
from shop_directory.conformance.service_under_test import (
    FULL,
    NO_TOOL,
    PROBED,
    Arguments,
    KnownCategory,
    ServiceUnderTest,
    expect_equal,
)

_SAMPLE: Final = 3
_TREE: Final = frozenset({"parent", "parent_slug", "parents", "children", "ancestors", "path", "level", "depth"})
_BY_SHOP: Final = ("get_shop", "list_coupons", "get_shipping_policy", "get_trust")
_READ: Final = "resources/read"
# They belong to one response, or depend on how many there were before.
_VOLATILE: Final = frozenset({"date", "x-request-id", "ratelimit"})
_REQUEST_ID: Final = re.compile(rb'("x-request-id"\s*:\s*")[^"]*"')
# A host name and no IP address: its last label has a letter.
_HOST: Final = re.compile(r"[^:]*[a-z][^:.]*")
_VERDICTS: Final = ("likely_same", "likely_different", "insufficient_evidence")
# A tool, and its arguments that name a shop.
About = tuple[str, Callable[[str], Arguments]]
_READS: Final[tuple[About, ...]] = (
    ("get_shop", lambda shop: {"shop_domain": shop}),
    ("get_shop", lambda shop: {"shop_id_or_domain": shop}),
    ("list_coupons", lambda shop: {"shop_domain": shop}),
    ("get_shipping_policy", lambda shop: {"shop_domain": shop, "country": "DE"}),
    ("get_shop_policies", lambda shop: {"shop_domain": shop, "country": "DE"}),
    ("get_trust", lambda shop: {"shop_domain": shop}),
    ("resolve_conflict", lambda shop: {"from_shop_id": shop}),
)
_REPORTS: Final[tuple[About, ...]] = (
    ("report_code", lambda shop: {"shop_domain": shop, "code": "NOSUCHCODE", "reason": "invalid"}),
    ("report_issue", lambda shop: {"shop_domain": shop, "subject_type": "shop", "reason": "unreachable"}),
)


async def _views(service: ServiceUnderTest) -> list[Part]:
    """Shops of the responses of find_shop and get_shop."""
    page = await service.read("find_shop", {"query": "", "limit": FULL})
    with_offers = [shop for shop in service.subjects.shops if shop.offers][:1]
    without_offers = [shop for shop in service.subjects.shops if not shop.offers][:1]
    alone = [await _view(service, shop.domain) for shop in (*with_offers, *without_offers)]
    return require([*page["results"].each(), *alone], "a shop in the catalogue")


ROWS: Final = (
    rule("I15", "A category that no public shop carries is not listed.")(
        Call("list_categories", shape={"results": each({"count": holding(Part.whole, "at least one shop")})})
    ),
    rule("I55", "get_shop answers shop_not_found, identically, for an unknown shop and for one under review.")(
        absent("get_shop")
    ),
    rule("I9", "The shop view has id, name, domain and category (a slug) as strings.", of=_views)(
        dict.fromkeys(("id", "name", "domain", "category"), Part.text)
    ),
    rule("I11", "offers is always an array, empty while there are none.", of=_views)({"offers": Part.each}),
    rule(
        "R1.bounds", "A reference that is blank or over 2,048 characters is 400; an impossible host is an unknown shop."
    )(
        Call("get_shop", {"shop_domain": " "}, 400, "invalid_input"),
        Call("get_shop", {"shop_domain": "a" * 2049}, 400, "invalid_input"),
        Call("get_shop", {"shop_domain": f"{'a' * 300}.example"}, 404, "shop_not_found"),
    ),
)


@rule("F21", "logo_url, where a shop has one, is an https URL.", of=_views)
def _logo(shop: Part) -> None:
    if "logo_url" in shop:
        shop["logo_url"].must(shop["logo_url"].text().startswith("https://"), "an https URL")


@rule(
    "I6",
    "No response has a shop under review, and the responses for it are those for an unknown shop.",
    Need.UNDER_REVIEW,
)
async def _under_review(service: ServiceUnderTest) -> None:
    await expect_like_unknown(service, *service.allowed(*_BY_SHOP))
    for subject in service.under_review:
        for shop in (await service.read("find_shop", {"query": subject, "limit": FULL}))["results"].each():
            shop.must(not _is(shop, subject), f"no shop {subject}")


@rule("I10", "A shop id is accepted wherever a domain is.")
async def _id_or_domain(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop
    for tool in service.allowed(*_BY_SHOP):
        by_domain, by_id = [await service.about_shop(tool, reference) for reference in (shop.domain, shop.id)]
        by_id.expect_status(200)
        expect_equal(by_domain, by_id, f"the same response of {tool} by id and by domain")


@rule("I12", "A category is a slug and a display name in a flat list, without parent or child.")
async def _flat(service: ServiceUnderTest) -> None:
    for category in (await _categories(service)).each():
        category["slug"].text()
        category["category"].text()
        for name in category.names():
            is_flat = name not in _TREE and not isinstance(category.value[name], dict | list)
            category.must(is_flat, f"a flat category, without {name}")


@rule("I14", "A shop of several categories counts in each of them.")
async def _in_each(service: ServiceUnderTest) -> None:
    several = [shop for shop in service.subjects.shops if len(shop.categories) > 1]
    shop = require(several, "a shop of several categories")[0]
    categories = await _categories(service)
    listed = [category["slug"].text() for category in categories.each()]
    for slug in shop.categories[:_SAMPLE]:
        categories.response.must(slug in listed, f"the category {slug} of the shop {shop.id}")
        page = await service.read("find_shop", {"query": shop.domain, "category": slug})
        is_found = shop.id in [found["id"].value for found in page["results"].each()]
        page.response.must(is_found, f"the shop {shop.id}, which carries {slug}")


@rule("I52", "list_categories takes an empty object and returns every category with its number of public shops.")
async def _every_category(service: ServiceUnderTest) -> None:
    document = await service.read("list_categories")
    listed = {category["slug"].text(): category["count"].whole() for category in document["results"].each()}
    document["total_count"].expect(len(listed))
    for shop in service.subjects.shops:
        for slug in shop.categories:
            document.must(slug in listed, f"the category {slug} of the shop {shop.id}")
    for category in _sample(service):
        page = await service.read("find_shop", {"query": "", "category": category.slug, "limit": 1})
        page["total_count"].expect(listed[category.slug])


@rule("I53", "find_shop accepts exactly the slugs of list_categories.")
async def _exactly_the_slugs(service: ServiceUnderTest) -> None:
    known = {category.slug for category in service.subjects.categories}
    for category in _sample(service):
        await service.read("find_shop", {"query": "", "category": category.slug, "limit": 1})
        for other in (category.slug[:-1], f"{category.slug}-", category.slug.swapcase()):
            if other and other not in known:
                (await service.tool("find_shop", {"query": "", "category": other, "limit": 1})).problem(400)


@rule("I54", "get_shop needs shop_domain and returns the public shop view.")
async def _get_shop(service: ServiceUnderTest) -> None:
    (await service.tool("get_shop", {})).problem(400)
    shop = service.subjects.shop
    view = await _view(service, shop.domain)
    for name, value in (("id", shop.id), ("name", shop.name), ("domain", shop.domain)):
        view[name].expect(value)


@rule("A14", "get_shops, where it exists, has one entry for each reference in order, null for an unknown shop.")
async def _get_shops(service: ServiceUnderTest) -> None:
    first = service.subjects.shop
    known = [(shop.domain, shop.id) for shop in service.subjects.shops[:_SAMPLE]]
    unknown = [(subject, None) for subject in (service.unknown_domain, *service.under_review)]
    pairs = [*unknown, *known, (first.id, first.id), *known[:1]]
    response = await service.tool("get_shops", {"shop_domains": [reference for reference, _ in pairs]})
    require(response.status not in NO_TOOL, "the tool get_shops, which the interface does not require")
    answer = response.json()
    entries = [(one["shop_domain"].value, one["shop"]) for one in answer["results"].each()]
    found = [(reference, shop.value and shop["id"].value) for reference, shop in entries]
    answer["results"].must(found == pairs, f"{len(pairs)} entries, one for each reference, null for an unknown one")
    answer["found"].expect(len(pairs) - len(unknown))
    for wrong in ([], [" "], ["a"] * (FULL + 1)):
        (await service.tool("get_shops", {"shop_domains": wrong})).problem(400, "invalid_input")


@rule(
    "F17", "list_coupons and get_shipping_policy, where they take shop_domains, answer each as alone, null if unknown."
)
async def _several_shops(service: ServiceUnderTest) -> None:
    known = [reference for shop in service.subjects.shops[:_SAMPLE] for reference in (shop.domain, shop.id)]
    asked = [service.unknown_domain, *service.under_review[:_SAMPLE], *known, *known[:1]]
    for tool, name in (("list_coupons", "coupons"), ("get_shipping_policy", "shipping")):
        response = await service.tool(tool, {"shop_domains": asked})
        is_taken = response.status != HTTPStatus.BAD_REQUEST
        require(is_taken, f"the field shop_domains of {tool}, which the interface does not require")
        answer = response.json()
        alone = [await service.about_shop(tool, reference) for reference in asked]
        expected = [one.json().value if one.status == HTTPStatus.OK else None for one in alone]
        entries = [(one["shop_domain"].value, one[name].value) for one in answer["shops"].each()]
        is_same = entries == list(zip(asked, expected, strict=True))
        answer["shops"].must(is_same, f"{len(asked)} entries, each as {tool} answers about its reference alone")
        answer["found"].expect(len([*known, *known[:1]]))
        for wrong in ({"shop_domains": []}, {"shop_domains": asked, "shop_domain": asked[0]}):
            (await service.tool(tool, wrong)).problem(400, "invalid_input")


@rule(
    "R1",
    "All spellings of a host, pasted URLs and links included, are the same shop; a sub-domain is told from its parent; "
    "ids are case-sensitive.",
)
async def _references(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop
    plain = await _shop(service, shop.domain)
    plain.json()
    pasted = f"https://www.{shop.domain}/sale?from=check#top"
    spellings = (shop.domain.upper(), f" {shop.domain}\r\n", f"{shop.domain}.", f"http://{shop.domain}", pasted)
    for spelling in (*spellings, f"<{pasted}>", f'"{shop.domain}",', f"[Shop no. 1]({pasted})"):
        expect_equal(plain, await _shop(service, spelling), "the same shop by every spelling of its domain")
    below = await _shop(service, f"no-such-part.{shop.domain}")
    below.problem(404, "shop_not_found")
    advice = "the same sentence about every sub-domain, which says that its parent is not looked up"
    expect_equal(await _shop(service, f"no-such-part.{service.unknown_domain}"), below, advice)
    below.must(below.body != (await _shop(service, service.unknown_domain)).body, advice)
    if (other := shop.id.swapcase()) not in {shop.id, *(one.id for one in service.subjects.shops)}:
        (await _shop(service, other)).problem(404, "shop_not_found")


@rule("R2", "shop_domain and shop_id_or_domain are one field; two values that differ are 400.")
async def _one_field(service: ServiceUnderTest) -> None:
    domain = service.subjects.shop.domain
    same = {"shop_domain": domain, "shop_id_or_domain": f"https://{domain}/"}
    expect_equal(await _shop(service, domain), await service.tool("get_shop", same), "the same shop as by one of them")
    different = {**same, "shop_id_or_domain": service.unknown_domain}
    (await service.tool("get_shop", different)).problem(400, "invalid_input")


@rule("M11", "Categories are listed by count, largest first, then by slug.")
async def _order_of_categories(service: ServiceUnderTest) -> None:
    results = await _categories(service)
    order = [(-category["count"].whole(), category["slug"].text()) for category in results.each()]
    results.must(order == sorted(order), "the largest first, those of equal count by slug")


@rule("A1.offers", "A shop has at most 3 offers in find_shop and 100 in get_shop, and the number of all its offers.")
async def _number_of_offers(service: ServiceUnderTest) -> None:
    page = await service.read("find_shop", {"query": "", "limit": FULL})
    alone = await _view(service, service.subjects.shop.domain)
    for shop, most in (*((shop, 3) for shop in page["results"].each()), (alone, 100)):
        shown, total = len(shop["offers"].values()), shop["offers_total"].whole()
        shop["offers"].must(shown == min(total, most), f"{min(total, most)} of {total} offers")


@rule(
    "V2",
    "Responses for a shop under review are those for an unknown one over every transport, to the byte.",
    Need.UNDER_REVIEW,
)
async def _hidden_shops_are_unknown(service: ServiceUnderTest) -> None:
    calls = [(tool, about) for tool, about in _READS if service.allowed(tool)]
    if service.token and service.subjects.shops:
        known = service.subjects.shops[0].id
        calls.append(("resolve_conflict", lambda shop: {"from_shop_id": known, "to_shop_id": shop}))
    for hidden in service.under_review:
        for call in calls:
            for era in (None, *Era):
                await _expect_unknown(service, era, call, hidden)
        for era in Era:
            await _expect_unknown(service, era, (_READ, lambda shop: {"uri": f"shop://{shop}"}), hidden)
        # Neither search results nor suggestions show the shop.
        page = await service.read("find_shop", {"query": hidden})
        # The interface does not require did_you_mean: a service may have it.
        for name in ("results", *({"did_you_mean"} & set(page.names()))):
            is_shown = any(_is(shop, hidden) for shop in page[name].each())
            page.response.must(not is_shown, f"{name} without the shop under review")
        suggestions = await service.suggest(hidden)
        is_suggested = any(_is(shop, hidden) for shop in suggestions.json()["shops"].each())
        suggestions.must(not is_suggested, "suggestions without the shop under review")


@rule(
    "A9",
    "A report on a shop under review is refused like one on an unknown shop.",
    Need.UNDER_REVIEW,
    Need.TOKEN,
    Need.WRITE,
)
async def _hidden_shops_take_no_reports(service: ServiceUnderTest) -> None:
    for hidden in service.under_review:
        for call in _REPORTS:
            # Two of the three transports: reports have the smallest quota.
            for era in (None, Era.PER_REQUEST):
                await _expect_unknown(service, era, call, hidden)


def _is(shop: Part, reference: str) -> bool:
    return reference in (shop["id"].value, shop["domain"].value)


async def _categories(service: ServiceUnderTest) -> Part:
    return (await service.read("list_categories"))["results"]


def _sample(service: ServiceUnderTest) -> tuple[KnownCategory, ...]:
    """The largest category, the smallest, and one from the middle of the list."""
    categories = require(service.subjects.categories, "a category in the catalogue")
    return tuple({one.slug: one for one in (categories[0], categories[len(categories) // 2], categories[-1])}.values())


async def _shop(service: ServiceUnderTest, reference: str) -> Response:
    return await service.about_shop("get_shop", reference)


async def _view(service: ServiceUnderTest, reference: str) -> Part:
    return (await _shop(service, reference)).json()


async def _expect_unknown(service: ServiceUnderTest, era: Era | None, call: About, hidden: str) -> None:
    """As `_compare_with_unknown`, twice if they differ: a generation may have been published in between."""
    try:
        await _compare_with_unknown(service, era, call, hidden)
    except RuleBrokenError:
        await _compare_with_unknown(service.fresh, era, call, hidden)


async def _compare_with_unknown(service: ServiceUnderTest, era: Era | None, call: About, hidden: str) -> None:
    """Raise unless the responses are equal but for what differs between those for two unknown shops."""
    references = (service.unknown_like(hidden), service.unknown_like(hidden, "x"), hidden)
    one, other, answer = [await _response(service, era, call, reference) for reference in references]
    noise = _VOLATILE | {name for name, _ in set(one.headers) ^ set(other.headers)}
    differing = sorted({name for name, _ in set(answer.headers) ^ set(one.headers)} - noise)
    actual = f"{answer.shown}; headers that differ: {', '.join(differing) or 'none'}"
    is_same = _without_noise(answer, noise) == _without_noise(one, noise)
    answer.must(is_same, f"the response for an unknown shop: {one.shown}", actual)


def _without_noise(response: Response, noise: frozenset[str]) -> tuple[int, list[tuple[str, str]], bytes]:
    """A response without what differs between two equal requests; the header names stay."""
    headers = [(name, "-" if name in noise else value) for name, value in response.headers]
    return response.status, headers, _REQUEST_ID.sub(rb'\1-"', response.body)


async def _response(service: ServiceUnderTest, era: Era | None, call: About, reference: str) -> Response:
    tool, about = call
    if era is None:
        return await service.tool(tool, about(reference))
    if tool == _READ:
        return (await mcp.request(service, era, _READ, about(reference))).response
    return (await mcp.call(service, era, tool, about(reference))).response


@rule("I38", "An offer is identified by its offer_id, a string.")
async def _offer_id(service: ServiceUnderTest) -> None:
    page = await service.read("find_shop", {"query": "", "limit": FULL})
    with_offers = [shop for shop in page["results"].each() if shop.value.get("offers")]
    found = [offer["offer_id"].text() for shop in with_offers for offer in shop["offers"].each()]
    offer_id = require(found, "an offer among the first shops")[0]
    await _resolved(service, "resolve_checkout_url", offer_id)


@rule(
    "I64", "monetize_offer needs offer_id, takes a boolean affiliate and returns a monetised checkout URL.", Need.TOKEN
)
async def _monetize(service: ServiceUnderTest) -> None:
    await _expect_arguments(service, "monetize_offer")
    document = await _first_resolved(service, "monetize_offer", {}, applied=True)
    _expect_url(document)
    document["monetization"]["network"].text()
    document["monetization"]["program_id"].text()
    plain = await service.read("monetize_offer", {"offer_id": document["offer_id"].text(), "affiliate": False})
    plain["affiliate"]["applied"].expect(value=False)
    plain["monetization"].expect(None)


@rule("I65", "resolve_checkout_url needs offer_id, takes a boolean affiliate and returns a validated checkout URL.")
async def _resolve(service: ServiceUnderTest) -> None:
    await _expect_arguments(service, "resolve_checkout_url")
    document = await _first_resolved(service, "resolve_checkout_url", {})
    _expect_url(document)
    document["affiliate"]["applied"].expect(value=False)
    _expect_url(await _first_resolved(service, "resolve_checkout_url", {"affiliate": True}))


@rule(
    "I66",
    "resolve_conflict needs from_shop_id, takes to_shop_id, audits the merge and writes nothing.",
    Need.TOKEN,
    alone=True,
)
async def _conflict(service: ServiceUnderTest) -> None:
    (await service.tool("resolve_conflict", {})).problem(400)
    require(len(service.subjects.shops) > 1, "two shops in the catalogue")
    one, other = service.subjects.shops[:2]
    before = await service.about_shop("get_shop", one.domain)
    pair = await service.read("resolve_conflict", {"from_shop_id": one.id, "to_shop_id": other.id})
    pair["from"]["id"].expect(one.id)
    pair["to"]["id"].expect(other.id)
    pair["evidence"].each()
    pair["verdict"].one_of(*_VERDICTS)
    (await service.read("resolve_conflict", {"from_shop_id": one.id}))["candidates"].each()
    (await service.tool("resolve_conflict", {"from_shop_id": service.unknown_id})).problem(404, "shop_not_found")
    after = await service.fresh.about_shop("get_shop", one.domain)
    expect_equal(before, after, "the same shop after the audit as before")


@rule(
    "M11.other_lists",
    "Coupons are listed verified ones first, the latest tested first; trust signals by their kinds; merge candidates "
    "by verdict, then agreeing evidence.",
)
async def _other_orders(service: ServiceUnderTest) -> None:
    with_codes = list(service.subjects.codes)
    for shop_id in with_codes[:PROBED]:
        results = (await service.read("list_coupons", {"shop_domain": shop_id}))["results"]
        tested = [(one["verificationStatus"].text(), one["lastVerifiedAt"].value or "") for one in results.each()]
        in_order = tested == sorted(tested, reverse=True)
        results.must(in_order, "verified_applied first, and within each status the latest tested first")
    for shop in service.subjects.shops[:PROBED] if service.token else ():
        signals = (await service.read("get_trust", {"shop_domain": shop.domain}))["signals"]
        kinds = [kind for signal in signals.each() if (kind := signal["kind"].text()) in KINDS]
        signals.must(kinds == sorted(kinds, key=KINDS.index), f"the order {', '.join(KINDS)}")
        candidates = (await service.read("resolve_conflict", {"from_shop_id": shop.id}))["candidates"]
        ranks = [(_VERDICTS.index(one["verdict"].one_of(*_VERDICTS)), -_agreeing(one)) for one in candidates.each()]
        expected = f"the order {', '.join(_VERDICTS)}, and within each most agreeing evidence first"
        candidates.must(ranks == sorted(ranks), expected)
    require(with_codes, "a usable coupon")


def _agreeing(audit: Part) -> int:
    return sum(evidence["agrees"].flag() for evidence in audit["evidence"].each())


async def _expect_arguments(service: ServiceUnderTest, tool: str) -> None:
    (await service.tool(tool, {})).problem(400)
    (await service.tool(tool, {"offer_id": service.unknown_id})).problem(404, "offer_not_found")
    (await service.tool(tool, {"offer_id": service.unknown_id, "affiliate": "yes"})).problem(400)


async def _resolved(service: ServiceUnderTest, tool: str, offer_id: str, **affiliate: bool) -> Part | None:
    """The response for an offer; None where the offer has no valid URL."""
    response = await service.tool(tool, {"offer_id": offer_id, **affiliate})
    if response.status != 200:  # noqa: PLR2004 - of HTTP
        response.problem(404, "no_valid_checkout_url")
        return None
    return response.json()


async def _first_resolved(
    service: ServiceUnderTest, tool: str, affiliate: dict[str, bool], *, applied: bool | None = None
) -> Part:
    """The response for the first offer with a valid URL, which goes through a programme if `applied`."""
    offers = [offer_id for shop in service.subjects.shops for offer_id in shop.offers[:1]]
    for offer_id in offers[:PROBED]:
        document = await _resolved(service, tool, offer_id, **affiliate)
        if document is not None:
            document["offer_id"].expect(offer_id)
            if applied in {None, document["affiliate"]["applied"].flag()}:
                return document
    raise NothingToSeeError(f"a usable offer{' of a shop with a programme' if applied else ''} among the first ones")


def _expect_url(document: Part) -> None:
    url = document["checkout_url"]
    try:
        found = urlsplit(url.text())
        is_safe = found.scheme == "https" and found.username is None and found.port in {None, 443}
    except ValueError:
        raise url.broken("a URL") from None
    is_named = _HOST.fullmatch(found.hostname or "")
    url.must(is_safe and is_named, "an https URL with a host's name, without credentials, on the usual port")
