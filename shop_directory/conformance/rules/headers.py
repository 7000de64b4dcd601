"""What goes with requests and responses: tokens, quotas, request ids, the generation of the data, caching and CORS."""

import re
from typing import Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Part, Request, Response, require
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import ANONYMOUS, SHOP_ID, UNKNOWN_ID, WITH_UNKNOWN_TOKEN, Call, Need, rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import JSON, NEED_A_TOKEN, ServiceUnderTest

_REFUSED: Final = 401
# A list of strings with parameters in the syntax of structured fields (RFC 9651); the rules read the first one.
_MEMBER: Final = r'"([a-zA-Z0-9_ -]+)"((?:; *[a-z*][a-z0-9_.*-]*=(?:\d{1,15}|"[^"\\]*"))+)'
_POLICY: Final = re.compile(rf"{_MEMBER}(?:[ \t]*,[ \t]*{_MEMBER})*")
_INTEGER: Final = re.compile(r"; *([a-z]+)=(\d+)")
_ELSEWHERE: Final = ("origin", "https://elsewhere.example")
_ALLOW: Final = "access-control-allow-origin"
_CATEGORIES: Final = "/tool/list_categories"
_STAMP: Final = ("x-generation", "x-data-as-of")
_REQUEST_ID: Final = "x-request-id"
_UNCHANGED: Final = 304
# An unknown field would be 400 if the input were validated first.
_WRONG_FIELD: Final = {"no_such_field": True}


ROWS: Final = (
    rule("I79", "find_shop, list_categories, get_shop and /suggest work without a token.")(
        Call("find_shop", {"query": ""}, caller=ANONYMOUS),
        Call("list_categories", caller=ANONYMOUS),
        Call("get_shop", {"shop_domain": SHOP_ID}, caller=ANONYMOUS),
        Call("GET /suggest?q="),
    ),
    rule("I79.more_reads", "list_coupons, get_shipping_policy and resolve_checkout_url work without a token.")(
        Call("list_coupons", {"shop_domain": SHOP_ID}, caller=ANONYMOUS),
        Call("get_shipping_policy", {"shop_domain": SHOP_ID}, caller=ANONYMOUS),
        Call("resolve_checkout_url", {"offer_id": UNKNOWN_ID}, 404, "offer_not_found", caller=ANONYMOUS),
    ),
    rule(
        "I80", "get_trust, reports, monetize_offer and resolve_conflict are 401 without a valid token, before the tool."
    )(
        *(Call(tool, _WRONG_FIELD, _REFUSED, caller=ANONYMOUS) for tool in NEED_A_TOKEN),
        *(Call(tool, _WRONG_FIELD, _REFUSED, caller=WITH_UNKNOWN_TOKEN) for tool in NEED_A_TOKEN),
    ),
    rule("Q1", "Where no token is needed, an invalid one counts as none.")(
        Call("list_categories", caller=WITH_UNKNOWN_TOKEN), Call("GET /suggest?q=", caller=WITH_UNKNOWN_TOKEN)
    ),
)


@rule("I78", "A token travels in the header x-api-token and raises the quotas.", Need.TOKEN)
async def _raises_the_quotas(service: ServiceUnderTest) -> None:
    rates = []
    for caller in (service.anonymous, service):
        response = await caller.tool("list_categories", {})
        _, quota = _quota(response, "ratelimit-policy")
        require({"q", "w"} <= quota.keys() and quota["w"], "a response with the header RateLimit-Policy")
        rates.append(quota["q"] / quota["w"])
    expected = f"a quota above the one without a token, {rates[0]:g} a second"
    response.must(rates[1] > rates[0], expected, f"{rates[1]:g} a second")


@rule("E1.credentials", "A 401 carries WWW-Authenticate without resource metadata, and says how to send a token.")
async def _says_how_to_send_a_token(service: ServiceUnderTest) -> None:
    for caller, code in ((service.anonymous, "token_required"), (service.with_unknown_token, "token_invalid")):
        response = await caller.tool("get_trust", _WRONG_FIELD)
        detail = response.problem(_REFUSED, code)["detail"]
        challenge = response.header("www-authenticate") or ""
        is_plain = challenge and "resource_metadata" not in challenge
        response.must_state(is_plain, "www-authenticate", "www-authenticate without resource_metadata")
        detail.must("x-api-token" in detail.text(), "a text that names the header x-api-token")


@rule("E2.credentials", "A call over MCP without a valid token is refused before the tool: 401 with a JSON-RPC error.")
async def _closed_over_mcp(service: ServiceUnderTest) -> None:
    for era in Era:
        for name in NEED_A_TOKEN if era is Era.HANDSHAKE else NEED_A_TOKEN[:1]:
            message = await mcp.call(service.anonymous, era, name, _WRONG_FIELD)
            message.error(_REFUSED)["data"]["code"].expect("token_required")
        message = await mcp.call(service.with_unknown_token, era, NEED_A_TOKEN[0], _WRONG_FIELD)
        message.error(_REFUSED)["data"]["code"].expect("token_invalid")


@rule("Q2", "Responses that count have the quota in RateLimit-Policy and its remainder in RateLimit.")
async def _has_quota_headers(service: ServiceUnderTest) -> None:
    for response in (
        await service.tool("list_categories", {}),
        await service.about_shop("get_shop", service.unknown_id),
        await service.get("/suggest?q="),
        (await mcp.request(service, Era.PER_REQUEST, "tools/list")).response,
    ):
        (name, policy), (other, remaining) = _quota(response, "ratelimit-policy"), _quota(response, "ratelimit")
        expected = 'ratelimit-policy such as "reads";q=120;w=60'
        response.must_state({"q", "w"} <= policy.keys(), "ratelimit-policy", expected)
        response.must_state({"r", "t"} <= remaining.keys(), "ratelimit", 'ratelimit such as "reads";r=119;t=1')
        is_within = name == other and remaining["r"] <= policy["q"]
        response.must_state(is_within, "ratelimit", "the remainder of the same quota, no more than the quota")


@rule(
    "E5.request_id", "Every response has a unique request id in a header, over MCP in _meta too, never in a REST body."
)
async def _has_a_request_id(service: ServiceUnderTest) -> None:
    request_ids: set[str] = set()
    for response in (
        await service.tool("list_categories", {}),
        await service.about_shop("get_shop", service.unknown_domain),
        await suggested(service, ""),
        await service.get("/health"),
        await service.get("/no-such-path"),
    ):
        request_id = response.header(_REQUEST_ID) or ""
        is_unique = request_id and request_id not in request_ids
        response.must_state(is_unique, _REQUEST_ID, f"a unique {_REQUEST_ID}")
        response.must(request_id.encode() not in response.body, "a body without its request id")
        request_ids.add(request_id)
    for era in Era:
        (await mcp.call(service, era, "list_categories")).result()["_meta"][_REQUEST_ID].text()


@rule(
    "C1.http",
    "/suggest has an ETag, public and max-age=3, and answers 304 to a matching If-None-Match; all else is no-store.",
)
async def _may_be_cached(service: ServiceUnderTest) -> None:
    first = await suggested(service, "a")
    _expect_public(first)
    tag = first.header("etag") or ""
    again = await service.get("/suggest?q=a", ("if-none-match", tag))
    again.expect_status(_UNCHANGED)
    _expect_public(again)
    is_same = not again.body and again.header("etag") == tag
    again.must(is_same, f"no body, and the etag {tag}", f"etag: {again.header('etag')}, {again.shown}")
    (await service.get("/suggest?q=a", ("if-none-match", '"another"'))).expect_status(200)
    for response in (
        await service.tool("list_categories", {}),
        await service.about_shop("get_shop", service.unknown_domain),
        (await mcp.call(service, Era.HANDSHAKE, "list_categories")).response,
        *[await service.get(path) for path in ("/suggest?q=%ff", "/health", "/ready", "/version", "/no-such-path")],
    ):
        response.must_state("no-store" in _directives(response), "cache-control", "cache-control: no-store")


@rule("C2", "Responses from the catalogue state its generation and time, in headers, or in _meta over MCP.")
async def _states_its_data(service: ServiceUnderTest) -> None:
    responses = [await service.tool("list_categories", {}), await suggested(service, "")]
    stamps = [_stamp(response) for response in responses]
    for era in Era:
        message = await mcp.call(service, era, "list_categories")
        meta = message.result()["_meta"]
        responses.append(message.response)
        stamps.append(tuple(meta[name].text() for name in _STAMP))
    for response, stamp in zip(responses, stamps, strict=True):
        Part(response, "x-data-as-of", stamp[1]).time()
        expected = f"the same generation and time over every transport: {stamps[0]}"
        response.must(stamp == stamps[0], expected, f"{stamp}")


@rule("C3", "Pages of any origin may read /suggest; everything else only those of configured origins.")
async def _cors_headers(service: ServiceUnderTest) -> None:
    for request, allowed in (
        (Request("GET", "/suggest?q=", headers=(_ELSEWHERE,)), "*"),
        (Request("GET", "/suggest", headers=(_ELSEWHERE,)), "*"),
        (Request("OPTIONS", "/suggest?q=a", headers=(_ELSEWHERE, ("access-control-request-method", "GET"))), "*"),
        (Request("POST", _CATEGORIES, b"{}", (("content-type", JSON), _ELSEWHERE)), None),
        (Request("OPTIONS", _CATEGORIES, headers=(_ELSEWHERE, ("access-control-request-method", "POST"))), None),
        (Request("GET", "/health", headers=(_ELSEWHERE,)), None),
    ):
        response = await service.send(request)
        expected = f"{_ALLOW}: *" if allowed else f"no {_ALLOW} for a page of {_ELSEWHERE[1]}"
        response.must_state(response.header(_ALLOW) == allowed, _ALLOW, expected)


def _quota(response: Response, header: str) -> tuple[str, dict[str, int]]:
    """The name and the integer parameters of a quota header; empty where it is missing or malformed."""
    found = _POLICY.fullmatch(response.header(header) or "")
    return ("", {}) if found is None else (found[1], {name: int(value) for name, value in _INTEGER.findall(found[2])})


def _stamp(response: Response) -> tuple[str, ...]:
    values = tuple(response.header(name) or "" for name in _STAMP)
    response.must(all(values), f"the headers {' and '.join(_STAMP)}", f"{dict(zip(_STAMP, values, strict=True))}")
    return values


def _expect_public(response: Response) -> None:
    tag, stated = response.header("etag") or "", response.header("cache-control") or "missing"
    is_public = _directives(response) == {"public", "max-age=3"} and tag.startswith('"')
    actual = f"etag: {tag}, cache-control: {stated}"
    response.must(is_public, "a strong etag and cache-control: public, max-age=3", actual)


def _directives(response: Response) -> set[str]:
    return {part.strip().lower() for part in (response.header("cache-control") or "").split(",")}
