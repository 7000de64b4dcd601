"""The rules of tokens and quotas: who is asked for a token, how a refusal reads, and what is told of the quota."""

import re
from typing import Any, Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Reply
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import Visit

_NEED_A_TOKEN: Final = ("get_trust", "report_code", "report_issue", "monetize_offer", "resolve_conflict")
_REFUSED: Final = 401
# A list of strings with parameters, as structured fields (RFC 9651) write it; the first one is what counts here.
_MEMBER: Final = r'"([a-zA-Z0-9_ -]+)"((?:; *[a-z*][a-z0-9_.*-]*=(?:\d{1,15}|"[^"\\]*"))+)'
_POLICY: Final = re.compile(rf"{_MEMBER}(?:[ \t]*,[ \t]*{_MEMBER})*")
_WHOLE: Final = re.compile(r"; *([a-z]+)=(\d+)")


@rule("I78", "A token travels in the header x-api-token and raises the quotas.", Need.TOKEN)
async def _raises_the_quotas(visit: Visit) -> None:
    rates = []
    for caller in (visit.with_token(None), visit):
        reply = await caller.tool("list_categories", {})
        told = _told(reply, "ratelimit-policy")
        if told is None or not {"q", "w"} <= told.keys() or told["w"] == 0:
            raise NothingToSeeError("an answer that tells its quota")
        rates.append(told["q"] / told["w"])
    if rates[1] <= rates[0]:
        raise reply.broken(f"a quota above the one without a token, {rates[0]:g} a second", f"{rates[1]:g} a second")


@rule("I79", "find_shop, list_categories, get_shop and /suggest work without a token.")
async def _reads_are_open(visit: Visit) -> None:
    nobody = visit.with_token(None)
    (await nobody.tool("find_shop", {"query": ""})).expect_status(200)
    (await nobody.tool("list_categories", {})).expect_status(200)
    (await nobody.tool("get_shop", {"shop_domain": visit.seen.shop().id})).expect_status(200)
    (await nobody.get("/suggest?q=")).expect_status(200)


@rule("I79.more_reads", "list_coupons, get_shipping_policy and resolve_checkout_url work without a token.")
async def _more_reads_are_open(visit: Visit) -> None:
    nobody, shop = visit.with_token(None), visit.seen.shop().id
    for tool in ("list_coupons", "get_shipping_policy"):
        (await nobody.tool(tool, {"shop_domain": shop})).expect_status(200)
    (await nobody.tool("resolve_checkout_url", {"offer_id": visit.unknown_id})).problem(404, "offer_not_found")


@rule("Q1", "Where no token is needed, a wrong one counts as none.")
async def _wrong_tokens_are_none(visit: Visit) -> None:
    stranger = visit.with_token(visit.unknown_id)
    (await stranger.tool("list_categories", {})).expect_status(200)
    (await visit.get("/suggest?q=", *stranger.token_header)).expect_status(200)


@rule("I80", "get_trust, reports, monetize_offer and resolve_conflict are 401 without a valid token, before the tool.")
async def _closed_without_a_token(visit: Visit) -> None:
    for token in (None, visit.unknown_id):
        for tool in _NEED_A_TOKEN:
            # The input is not judged: an unknown field would be 400.
            (await visit.with_token(token).tool(tool, {"no_such_field": True})).expect_status(_REFUSED)


@rule("E1.credentials", "A 401 carries WWW-Authenticate without resource metadata, and says how to send a token.")
async def _tells_how_to_send_a_token(visit: Visit) -> None:
    for token, code in ((None, "token_required"), (visit.unknown_id, "token_invalid")):
        reply = await visit.with_token(token).tool("get_trust", {"no_such_field": True})
        problem = reply.problem(_REFUSED, code)
        challenge = reply.header("www-authenticate") or ""
        if not challenge or "resource_metadata" in challenge:
            shown = f"www-authenticate: {challenge or 'missing'}"
            raise reply.broken("www-authenticate without resource_metadata", shown)
        if "x-api-token" not in problem["detail"].text():
            raise problem["detail"].broken("words on the header x-api-token")


@rule("E2.credentials", "A call over MCP without a valid token is refused before the tool: 401 with a JSON-RPC error.")
async def _closed_over_mcp(visit: Visit) -> None:
    arguments: dict[str, Any] = {"no_such_field": True}
    for era in Era:
        for tool in _NEED_A_TOKEN if era is Era.HANDSHAKE else _NEED_A_TOKEN[:1]:
            message = await mcp.call(visit.with_token(None), era, tool, arguments)
            message.error(_REFUSED)["data"]["code"].expect("token_required")
        message = await mcp.call(visit.with_token(visit.unknown_id), era, _NEED_A_TOKEN[0], arguments)
        message.error(_REFUSED)["data"]["code"].expect("token_invalid")


@rule("Q2", "Answers that count tell the quota in RateLimit-Policy and what is left of it in RateLimit.")
async def _tells_the_quota(visit: Visit) -> None:
    replies = [
        await visit.tool("list_categories", {}),
        await visit.tool("get_shop", {"shop_domain": visit.unknown_id}),
        await visit.get("/suggest?q="),
        (await mcp.request(visit, Era.PER_REQUEST, "tools/list")).reply,
    ]
    for reply in replies:
        policy, left = _told(reply, "ratelimit-policy"), _told(reply, "ratelimit")
        if policy is None or not {"q", "w"} <= policy.keys():
            raise reply.broken('ratelimit-policy such as "reads";q=120;w=60', _shown(reply, "ratelimit-policy"))
        if left is None or not {"r", "t"} <= left.keys():
            raise reply.broken('ratelimit such as "reads";r=119;t=1', _shown(reply, "ratelimit"))
        if left["r"] > policy["q"] or _name(reply, "ratelimit-policy") != _name(reply, "ratelimit"):
            raise reply.broken("what is left of the same quota, no more than it", _shown(reply, "ratelimit"))


def _told(reply: Reply, header: str) -> dict[str, int] | None:
    """The whole numbers of a quota header; None where it is missing or malformed."""
    found = _POLICY.fullmatch(reply.header(header) or "")
    return None if found is None else {name: int(value) for name, value in _WHOLE.findall(found[2])}


def _name(reply: Reply, header: str) -> str | None:
    found = _POLICY.fullmatch(reply.header(header) or "")
    return None if found is None else found[1]


def _shown(reply: Reply, header: str) -> str:
    return f"{header}: {reply.header(header) or 'missing'}"
