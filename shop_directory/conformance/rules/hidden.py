"""The rules of shops under review: at every door they are what a shop is that nobody has ever heard of.

The operator names such shops. Their answers are held against those for two made-up references: what differs between
these two, as a proxy's own ids do, is noise; everything else must be equal to the byte.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Reply
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import Visit, steadily

Arguments = Mapping[str, Any]
About = Callable[[str], Arguments]
Transport = Callable[..., Awaitable[Reply]]

_TO_REPORT: Final = (Need.UNDER_REVIEW, Need.TOKEN, Need.WRITE)
# They tell of this one answer, or of how many there were before.
_EACH_TIME: Final = frozenset({"date", "x-request-id", "ratelimit"})
_REQUEST_ID: Final = re.compile(rb'("x-request-id"\s*:\s*")[^"]*"')


@rule("V2", "A shop under review has the answers of an unknown one at every door, to the byte.", Need.UNDER_REVIEW)
async def _hidden_shops_are_unknown(visit: Visit) -> None:
    for hidden in visit.under_review:
        for tool, about in _calls(visit):
            for transport in (_by_rest, _by_handshake, _by_request):
                await _expect_unknown(visit, transport, tool, about, hidden)
        await _expect_not_found(visit, hidden)


@rule("A9", "A report on a shop under review is refused like one on an unknown shop.", *_TO_REPORT)
async def _hidden_shops_take_no_reports(visit: Visit) -> None:
    calls: tuple[tuple[str, About], ...] = (
        ("report_code", lambda shop: {"shop_domain": shop, "code": "NOSUCHCODE", "reason": "invalid"}),
        ("report_issue", lambda shop: {"shop_domain": shop, "subject_type": "shop", "reason": "unreachable"}),
    )
    for hidden in visit.under_review:
        for tool, about in calls:
            # Two doors of the three: reports have the smallest quota of all.
            for transport in (_by_rest, _by_request):
                await _expect_unknown(visit, transport, tool, about, hidden)


def _calls(visit: Visit) -> Iterator[tuple[str, About]]:
    """What somebody may ask to find out whether a shop is there."""
    yield "get_shop", lambda shop: {"shop_domain": shop}
    yield "get_shop", lambda shop: {"shop_id_or_domain": shop}
    yield "list_coupons", lambda shop: {"shop_domain": shop}
    yield "get_shipping_policy", lambda shop: {"shop_domain": shop, "country": "DE"}
    if visit.token is None:
        return
    yield "get_trust", lambda shop: {"shop_domain": shop}
    yield "resolve_conflict", lambda shop: {"from_shop_id": shop}
    if visit.seen.shops:
        known = visit.seen.shops[0].id
        yield "resolve_conflict", lambda shop: {"from_shop_id": known, "to_shop_id": shop}


async def _expect_unknown(visit: Visit, transport: Transport, tool: str, about: About, hidden: str) -> None:
    async def compare(*, fresh: bool) -> None:
        references = (visit.unknown_id, visit.unknown_domain, hidden)
        one, other, answer = [await transport(visit, tool, about(shop), fresh=fresh) for shop in references]
        noise = _EACH_TIME | {name for name, _ in set(one.headers) ^ set(other.headers)}
        if _settled(answer, noise) != _settled(one, noise):
            differing = sorted({name for name, _ in set(answer.headers) ^ set(one.headers)} - noise)
            came = f"{answer.shown}; headers that differ: {', '.join(differing) or 'none'}"
            raise answer.broken(f"the answer for an unknown shop: {one.shown}", came)

    await steadily(compare)


async def _expect_not_found(visit: Visit, hidden: str) -> None:
    """Neither a search nor suggestions show it."""
    found = await visit.tool("find_shop", {"query": hidden})
    page = found.answer()
    # The second list is beyond the interface: a service may have it or not.
    for name in ("results", *({"did_you_mean"} & set(page.keys()))):
        if any(hidden in (shop["id"].value, shop["domain"].value) for shop in page[name].each()):
            raise found.broken(f"{name} without the shop under review")
    typed = await suggested(visit, hidden)
    if any(hidden in (shop["id"].value, shop["domain"].value) for shop in typed.answer()["shops"].each()):
        raise typed.broken("suggestions without the shop under review")


def _settled(reply: Reply, noise: frozenset[str]) -> tuple[int, list[tuple[str, str]], bytes]:
    """An answer without what differs between any two equal requests; the names of its headers stay."""
    headers = [(name, "-" if name in noise else value) for name, value in reply.headers]
    return reply.status, headers, _REQUEST_ID.sub(rb'\1-"', reply.body)


async def _by_rest(visit: Visit, tool: str, arguments: Arguments, *, fresh: bool) -> Reply:
    return await visit.tool(tool, arguments, fresh=fresh)


async def _by_handshake(visit: Visit, tool: str, arguments: Arguments, *, fresh: bool) -> Reply:
    return (await mcp.call(visit, Era.HANDSHAKE, tool, arguments, fresh=fresh)).reply


async def _by_request(visit: Visit, tool: str, arguments: Arguments, *, fresh: bool) -> Reply:
    return (await mcp.call(visit, Era.PER_REQUEST, tool, arguments, fresh=fresh)).reply
