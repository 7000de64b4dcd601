"""Tokens and quotas: which calls need a token, how a refusal reads, and the headers of a quota."""

import re
from typing import Any, Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Response
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import ServiceUnderTest

_NEED_A_TOKEN: Final = ("get_trust", "report_code", "report_issue", "monetize_offer", "resolve_conflict")
_REFUSED: Final = 401
# A list of strings with parameters in the syntax of structured fields (RFC 9651); the rules read the first one.
_MEMBER: Final = r'"([a-zA-Z0-9_ -]+)"((?:; *[a-z*][a-z0-9_.*-]*=(?:\d{1,15}|"[^"\\]*"))+)'
_POLICY: Final = re.compile(rf"{_MEMBER}(?:[ \t]*,[ \t]*{_MEMBER})*")
_INTEGER: Final = re.compile(r"; *([a-z]+)=(\d+)")


@rule("I78", "A token travels in the header x-api-token and raises the quotas.", Need.TOKEN)
async def _raises_the_quotas(service: ServiceUnderTest) -> None:
    rates = []
    for caller in (service.with_token(None), service):
        response = await caller.tool("list_categories", {})
        quota = _parameters(response, "ratelimit-policy")
        if quota is None or not {"q", "w"} <= quota.keys() or quota["w"] == 0:
            raise NothingToSeeError("a response with the header RateLimit-Policy")
        rates.append(quota["q"] / quota["w"])
    if rates[1] <= rates[0]:
        raise response.broken(f"a quota above the one without a token, {rates[0]:g} a second", f"{rates[1]:g} a second")


@rule("I79", "find_shop, list_categories, get_shop and /suggest work without a token.")
async def _reads_are_open(service: ServiceUnderTest) -> None:
    anonymous = service.with_token(None)
    (await anonymous.tool("find_shop", {"query": ""})).expect_status(200)
    (await anonymous.tool("list_categories", {})).expect_status(200)
    (await anonymous.tool("get_shop", {"shop_domain": service.subjects.shop().id})).expect_status(200)
    (await anonymous.get("/suggest?q=")).expect_status(200)


@rule("I79.more_reads", "list_coupons, get_shipping_policy and resolve_checkout_url work without a token.")
async def _more_reads_are_open(service: ServiceUnderTest) -> None:
    anonymous, shop = service.with_token(None), service.subjects.shop().id
    for tool in ("list_coupons", "get_shipping_policy"):
        (await anonymous.tool(tool, {"shop_domain": shop})).expect_status(200)
    (await anonymous.tool("resolve_checkout_url", {"offer_id": service.unknown_id})).problem(404, "offer_not_found")


@rule("Q1", "Where no token is needed, an invalid one counts as none.")
async def _invalid_tokens_are_ignored(service: ServiceUnderTest) -> None:
    unknown_caller = service.with_token(service.unknown_id)
    (await unknown_caller.tool("list_categories", {})).expect_status(200)
    (await service.get("/suggest?q=", *unknown_caller.token_header)).expect_status(200)


@rule("I80", "get_trust, reports, monetize_offer and resolve_conflict are 401 without a valid token, before the tool.")
async def _closed_without_a_token(service: ServiceUnderTest) -> None:
    for token in (None, service.unknown_id):
        for tool in _NEED_A_TOKEN:
            # An unknown field would be 400 if the input were validated first.
            (await service.with_token(token).tool(tool, {"no_such_field": True})).expect_status(_REFUSED)


@rule("E1.credentials", "A 401 carries WWW-Authenticate without resource metadata, and says how to send a token.")
async def _says_how_to_send_a_token(service: ServiceUnderTest) -> None:
    for token, code in ((None, "token_required"), (service.unknown_id, "token_invalid")):
        response = await service.with_token(token).tool("get_trust", {"no_such_field": True})
        problem = response.problem(_REFUSED, code)
        challenge = response.header("www-authenticate") or ""
        if not challenge or "resource_metadata" in challenge:
            shown = f"www-authenticate: {challenge or 'missing'}"
            raise response.broken("www-authenticate without resource_metadata", shown)
        if "x-api-token" not in problem["detail"].text():
            raise problem["detail"].broken("a text that names the header x-api-token")


@rule("E2.credentials", "A call over MCP without a valid token is refused before the tool: 401 with a JSON-RPC error.")
async def _closed_over_mcp(service: ServiceUnderTest) -> None:
    arguments: dict[str, Any] = {"no_such_field": True}
    for era in Era:
        for tool in _NEED_A_TOKEN if era is Era.HANDSHAKE else _NEED_A_TOKEN[:1]:
            message = await mcp.call(service.with_token(None), era, tool, arguments)
            message.error(_REFUSED)["data"]["code"].expect("token_required")
        message = await mcp.call(service.with_token(service.unknown_id), era, _NEED_A_TOKEN[0], arguments)
        message.error(_REFUSED)["data"]["code"].expect("token_invalid")


@rule("Q2", "Responses that count have the quota in RateLimit-Policy and its remainder in RateLimit.")
async def _has_quota_headers(service: ServiceUnderTest) -> None:
    responses = [
        await service.tool("list_categories", {}),
        await service.tool("get_shop", {"shop_domain": service.unknown_id}),
        await service.get("/suggest?q="),
        (await mcp.request(service, Era.PER_REQUEST, "tools/list")).response,
    ]
    for response in responses:
        policy, remaining = _parameters(response, "ratelimit-policy"), _parameters(response, "ratelimit")
        if policy is None or not {"q", "w"} <= policy.keys():
            raise response.broken('ratelimit-policy such as "reads";q=120;w=60', _shown(response, "ratelimit-policy"))
        if remaining is None or not {"r", "t"} <= remaining.keys():
            raise response.broken('ratelimit such as "reads";r=119;t=1', _shown(response, "ratelimit"))
        if remaining["r"] > policy["q"] or _name(response, "ratelimit-policy") != _name(response, "ratelimit"):
            raise response.broken(
                "the remainder of the same quota, no more than the quota", _shown(response, "ratelimit")
            )


def _parameters(response: Response, header: str) -> dict[str, int] | None:
    """The integer parameters of a quota header; None where it is missing or malformed."""
    found = _POLICY.fullmatch(response.header(header) or "")
    return None if found is None else {name: int(value) for name, value in _INTEGER.findall(found[2])}


def _name(response: Response, header: str) -> str | None:
    found = _POLICY.fullmatch(response.header(header) or "")
    return None if found is None else found[1]


def _shown(response: Response, header: str) -> str:
    return f"{header}: {response.header(header) or 'missing'}"
