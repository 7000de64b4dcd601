"""Shops under review: over every transport their responses are those for an unknown shop.

The operator names such shops. The responses for them are compared with those for two unknown references of their form
(id, domain or sub-domain). What differs between these two, such as an id that a proxy adds, is noise; everything else
must be equal to the byte.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Response
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import ServiceUnderTest, compare_with_retry

Arguments = Mapping[str, Any]
About = Callable[[str], Arguments]
Transport = Callable[..., Awaitable[Response]]

_TO_REPORT: Final = (Need.UNDER_REVIEW, Need.TOKEN, Need.WRITE)
# They belong to one response, or depend on how many there were before.
_VOLATILE: Final = frozenset({"date", "x-request-id", "ratelimit"})
_REQUEST_ID: Final = re.compile(rb'("x-request-id"\s*:\s*")[^"]*"')


@rule(
    "V2",
    "Responses for a shop under review are those for an unknown one over every transport, to the byte.",
    Need.UNDER_REVIEW,
)
async def _hidden_shops_are_unknown(service: ServiceUnderTest) -> None:
    for hidden in service.under_review:
        for tool, about in _calls(service):
            for transport in (_by_rest, _by_handshake, _by_request):
                await _expect_unknown(service, transport, tool, about, hidden)
        for era in Era:
            await _expect_unknown(service, partial(_read, era), "resources/read", _resource, hidden)
        await _expect_not_found(service, hidden)


@rule("A9", "A report on a shop under review is refused like one on an unknown shop.", *_TO_REPORT)
async def _hidden_shops_take_no_reports(service: ServiceUnderTest) -> None:
    calls: tuple[tuple[str, About], ...] = (
        ("report_code", lambda shop: {"shop_domain": shop, "code": "NOSUCHCODE", "reason": "invalid"}),
        ("report_issue", lambda shop: {"shop_domain": shop, "subject_type": "shop", "reason": "unreachable"}),
    )
    for hidden in service.under_review:
        for tool, about in calls:
            # Two of the three transports: reports have the smallest quota.
            for transport in (_by_rest, _by_request):
                await _expect_unknown(service, transport, tool, about, hidden)


def _calls(service: ServiceUnderTest) -> Iterator[tuple[str, About]]:
    """The calls by which a caller might find out that a shop exists."""
    yield "get_shop", lambda shop: {"shop_domain": shop}
    yield "get_shop", lambda shop: {"shop_id_or_domain": shop}
    yield "list_coupons", lambda shop: {"shop_domain": shop}
    yield "get_shipping_policy", lambda shop: {"shop_domain": shop, "country": "DE"}
    if service.token is None:
        return
    yield "get_trust", lambda shop: {"shop_domain": shop}
    yield "resolve_conflict", lambda shop: {"from_shop_id": shop}
    if service.subjects.shops:
        known = service.subjects.shops[0].id
        yield "resolve_conflict", lambda shop: {"from_shop_id": known, "to_shop_id": shop}


async def _expect_unknown(
    service: ServiceUnderTest, transport: Transport, tool: str, about: About, hidden: str
) -> None:
    async def compare(*, fresh: bool) -> None:
        references = (service.unknown_like(hidden), service.unknown_like(hidden, "x"), hidden)
        one, other, answer = [await transport(service, tool, about(shop), fresh=fresh) for shop in references]
        noise = _VOLATILE | {name for name, _ in set(one.headers) ^ set(other.headers)}
        if _without_noise(answer, noise) != _without_noise(one, noise):
            differing = sorted({name for name, _ in set(answer.headers) ^ set(one.headers)} - noise)
            actual = f"{answer.shown}; headers that differ: {', '.join(differing) or 'none'}"
            raise answer.broken(f"the response for an unknown shop: {one.shown}", actual)

    await compare_with_retry(compare)


async def _expect_not_found(service: ServiceUnderTest, hidden: str) -> None:
    """Neither search results nor suggestions show the shop."""
    found = await service.tool("find_shop", {"query": hidden})
    page = found.json()
    # The interface does not require did_you_mean: a service may have it.
    for name in ("results", *({"did_you_mean"} & set(page.keys()))):
        if any(hidden in (shop["id"].value, shop["domain"].value) for shop in page[name].each()):
            raise found.broken(f"{name} without the shop under review")
    suggestions = await suggested(service, hidden)
    if any(hidden in (shop["id"].value, shop["domain"].value) for shop in suggestions.json()["shops"].each()):
        raise suggestions.broken("suggestions without the shop under review")


def _without_noise(response: Response, noise: frozenset[str]) -> tuple[int, list[tuple[str, str]], bytes]:
    """A response without what differs between two equal requests; the header names stay."""
    headers = [(name, "-" if name in noise else value) for name, value in response.headers]
    return response.status, headers, _REQUEST_ID.sub(rb'\1-"', response.body)


def _resource(shop: str) -> Arguments:
    return {"uri": f"shop://{shop}"}


async def _read(era: Era, service: ServiceUnderTest, method: str, params: Arguments, *, fresh: bool) -> Response:
    return (await mcp.request(service, era, method, params, fresh=fresh)).response


async def _by_rest(service: ServiceUnderTest, tool: str, arguments: Arguments, *, fresh: bool) -> Response:
    return await service.tool(tool, arguments, fresh=fresh)


async def _by_handshake(service: ServiceUnderTest, tool: str, arguments: Arguments, *, fresh: bool) -> Response:
    return (await mcp.call(service, Era.HANDSHAKE, tool, arguments, fresh=fresh)).response


async def _by_request(service: ServiceUnderTest, tool: str, arguments: Arguments, *, fresh: bool) -> Response:
    return (await mcp.call(service, Era.PER_REQUEST, tool, arguments, fresh=fresh)).response
