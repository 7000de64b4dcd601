"""What goes with requests and responses: tokens, quotas, request ids, the generation of the data, caching and CORS."""

import re
from typing import Any, Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import NothingToSeeError, Part, Request, Response
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import ServiceUnderTest, compare_with_retry

_NEED_A_TOKEN: Final = ("get_trust", "report_code", "report_issue", "monetize_offer", "resolve_conflict")
_REFUSED: Final = 401
# A list of strings with parameters in the syntax of structured fields (RFC 9651); the rules read the first one.
_MEMBER: Final = r'"([a-zA-Z0-9_ -]+)"((?:; *[a-z*][a-z0-9_.*-]*=(?:\d{1,15}|"[^"\\]*"))+)'
_POLICY: Final = re.compile(rf"{_MEMBER}(?:[ \t]*,[ \t]*{_MEMBER})*")
_INTEGER: Final = re.compile(r"; *([a-z]+)=(\d+)")
_ELSEWHERE: Final = ("origin", "https://elsewhere.example")
_ALLOW: Final = "access-control-allow-origin"
_STAMP: Final = ("x-generation", "x-data-as-of")
_REQUEST_ID: Final = "x-request-id"
_UNCHANGED: Final = 304


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
            raise response.broken_header("www-authenticate", "www-authenticate without resource_metadata")
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
            raise response.broken_header("ratelimit-policy", 'ratelimit-policy such as "reads";q=120;w=60')
        if remaining is None or not {"r", "t"} <= remaining.keys():
            raise response.broken_header("ratelimit", 'ratelimit such as "reads";r=119;t=1')
        if remaining["r"] > policy["q"] or _name(response, "ratelimit-policy") != _name(response, "ratelimit"):
            raise response.broken_header("ratelimit", "the remainder of the same quota, no more than the quota")


@rule(
    "E5.request_id", "Every response has a unique request id in a header, over MCP in _meta too, never in a REST body."
)
async def _has_a_request_id(service: ServiceUnderTest) -> None:
    responses = [
        await service.tool("list_categories", {}),
        await service.tool("get_shop", {"shop_domain": service.unknown_domain}),
        await suggested(service, ""),
        await service.get("/health"),
        await service.get("/no-such-path"),
    ]
    request_ids: set[str] = set()
    for response in responses:
        request_id = response.header(_REQUEST_ID) or ""
        if not request_id or request_id in request_ids:
            raise response.broken_header(_REQUEST_ID, f"a unique {_REQUEST_ID}")
        if request_id.encode() in response.body:
            raise response.broken("a body without its request id")
        request_ids.add(request_id)
    for era in Era:
        result = (await mcp.call(service, era, "list_categories")).result()
        result["_meta"][_REQUEST_ID].text()


@rule(
    "C1.http",
    "/suggest has an ETag, public and max-age=3, and answers 304 to a matching If-None-Match; all else is no-store.",
)
async def _may_be_cached(service: ServiceUnderTest) -> None:
    async def compare(service: ServiceUnderTest) -> None:
        first = await suggested(service, "a")
        tag = first.header("etag") or ""
        _expect_public(first)
        again = await service.get("/suggest?q=a", ("if-none-match", tag))
        again.expect_status(_UNCHANGED)
        _expect_public(again)
        if again.body or again.header("etag") != tag:
            raise again.broken(f"no body, and the etag {tag}", f"etag: {again.header('etag')}, {again.shown}")

    await compare_with_retry(service, compare)
    (await service.get("/suggest?q=a", ("if-none-match", '"another"'))).expect_status(200)
    responses = [
        await service.tool("list_categories", {}),
        await service.tool("get_shop", {"shop_domain": service.unknown_domain}),
        (await mcp.call(service, Era.HANDSHAKE, "list_categories")).response,
        *[await service.get(path) for path in ("/suggest?q=%ff", "/health", "/ready", "/version", "/no-such-path")],
    ]
    for response in responses:
        if "no-store" not in _directives(response):
            raise response.broken_header("cache-control", "cache-control: no-store")


@rule("C2", "Responses from the catalogue state its generation and time, in headers, or in _meta over MCP.")
async def _states_its_data(service: ServiceUnderTest) -> None:
    async def compare(service: ServiceUnderTest) -> None:
        responses = [await service.tool("list_categories", {}), await suggested(service, "")]
        stamps = [_stamp(response) for response in responses]
        for era in Era:
            message = await mcp.call(service, era, "list_categories")
            meta = message.result()["_meta"]
            responses.append(message.response)
            stamps.append(tuple(meta[name].text() for name in _STAMP))
        for response, stamp in zip(responses, stamps, strict=True):
            Part(response, "x-data-as-of", stamp[1]).time()
            if stamp != stamps[0]:
                raise response.broken(f"the same generation and time over every transport: {stamps[0]}", f"{stamp}")

    await compare_with_retry(service, compare)


@rule("C3", "Pages of any origin may read /suggest; everything else only those of configured origins.")
async def _cors_headers(service: ServiceUnderTest) -> None:
    preflight = Request("OPTIONS", "/suggest?q=a", headers=(_ELSEWHERE, ("access-control-request-method", "GET")))
    for response in (
        await service.get("/suggest?q=", _ELSEWHERE),
        await service.get("/suggest", _ELSEWHERE),
        await service.send(preflight),
    ):
        if response.header(_ALLOW) != "*":
            raise response.broken_header(_ALLOW, f"{_ALLOW}: *")
    requests = (
        Request("POST", "/tool/list_categories", b"{}", (("content-type", "application/json"), _ELSEWHERE)),
        Request("OPTIONS", "/tool/list_categories", headers=(_ELSEWHERE, ("access-control-request-method", "POST"))),
        Request("GET", "/health", headers=(_ELSEWHERE,)),
    )
    for request in requests:
        response = await service.send(request)
        if response.header(_ALLOW) is not None:
            raise response.broken_header(_ALLOW, f"no {_ALLOW} for a page of {_ELSEWHERE[1]}")


def _parameters(response: Response, header: str) -> dict[str, int] | None:
    """The integer parameters of a quota header; None where it is missing or malformed."""
    found = _POLICY.fullmatch(response.header(header) or "")
    return None if found is None else {name: int(value) for name, value in _INTEGER.findall(found[2])}


def _name(response: Response, header: str) -> str | None:
    found = _POLICY.fullmatch(response.header(header) or "")
    return None if found is None else found[1]


def _stamp(response: Response) -> tuple[str, ...]:
    values = tuple(response.header(name) or "" for name in _STAMP)
    if not all(values):
        raise response.broken(f"the headers {' and '.join(_STAMP)}", f"{dict(zip(_STAMP, values, strict=True))}")
    return values


def _expect_public(response: Response) -> None:
    tag, stated = response.header("etag") or "", response.header("cache-control") or "missing"
    if _directives(response) != {"public", "max-age=3"} or not tag.startswith('"'):
        raise response.broken(
            "a strong etag and cache-control: public, max-age=3", f"etag: {tag}, cache-control: {stated}"
        )


def _directives(response: Response) -> set[str]:
    return {part.strip().lower() for part in (response.header("cache-control") or "").split(",")}
