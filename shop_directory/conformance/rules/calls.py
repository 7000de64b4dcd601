"""Tool calls over REST and their errors, and what goes with requests and responses: tokens, quotas, caching, CORS."""

import re
from typing import Final

from shop_directory.conformance.exchange import Part, Request, Response, fields_of, require
from shop_directory.conformance.rule import (
    ANONYMOUS,
    SHOP_ID,
    UNKNOWN_DOMAIN,
    UNKNOWN_ID,
    WITH_UNKNOWN_TOKEN,
    Call,
    Need,
    each,
    expect_shape,
    holding,
    naming,
    rule,
)
from shop_directory.conformance.rules import mcp
from shop_directory.conformance.rules.mcp import Era
from shop_directory.conformance.service_under_test import (
    FULL,
    JSON,
    NEED_A_TOKEN,
    NO_TOOL,
    TOOLS,
    Arguments,
    ServiceUnderTest,
    expect_equal,
)

# Not part of the interface: a service may have it.
BEYOND: Final = ("get_shops", "get_shop_policies")
_PREFIX: Final = "/tool/"
_VERSION: Final = re.compile(r"v?\d+(\.\d+)*", re.IGNORECASE)
_OVER: Final = b'{"query":"' + b"x" * 65_536 + b'"}'
_HOSTILE: Final = (
    b"",
    b"{",
    b"[]",
    b'{"query":"a","limit":NaN}',
    b'{"query":"a","query":"b"}',
    b'{"query":"\\ud800"}',
    b'{"query":"\xff"}',
    b'{"query":"\\u0000"}',
    b'{"query":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"query":"a","limit":' + b"9" * 5_000 + b"}",
)
_HOSTILE_QUERIES: Final = ("q=%zz", "q=%00", "q=" + "a" * 257, "q=a&limit=" + "9" * 400)
_INVALID: Final = "invalid_input"
_NOT_ALLOWED: Final = "method_not_allowed"
_WRONG_TYPE: Final = "unsupported_media_type"
_AS_JSON: Final = (("content-type", JSON),)
_AS_TEXT: Final = (("content-type", "text/plain"),)
_AS_PATCH: Final = (("content-type", "application/json-patch+json"),)
_BLANK: Final[Arguments] = {"query": "", "limit": FULL}
_DESCRIBED: Final = {"post": {"responses": dict.fromkeys(("200", "400", "404"), Part.names)}}
_OF_SHOP: Final = ("get_shop", "list_coupons", "get_shipping_policy")
# An unknown field would be 400 if the input were validated first.
_WRONG_FIELD: Final = {"no_such_field": True}
_REFUSED: Final = 401
# A list of strings with parameters in the syntax of structured fields (RFC 9651); the rules read the first one.
_MEMBER: Final = r'"([a-zA-Z0-9_ -]+)"((?:; *[a-z*][a-z0-9_.*-]*=(?:\d{1,15}|"[^"\\]*"))+)'
_POLICY: Final = re.compile(rf"{_MEMBER}(?:[ \t]*,[ \t]*{_MEMBER})*")
_INTEGER: Final = re.compile(r"; *([a-z]+)=(\d+)")
_ELSEWHERE: Final = ("origin", "https://elsewhere.example")
_ALLOW: Final = "access-control-allow-origin"
_STAMP: Final = ("x-generation", "x-data-as-of")
_REQUEST_ID: Final = "x-request-id"
_WITH_COUNTRY: Final = {
    **naming("contry"),
    "detail": holding(lambda detail: "country" in detail.text(), "the names of the allowed fields"),
}


def _only_post(problem: Part) -> None:
    """A refusal that names POST as the allowed method."""
    response = problem.response
    response.must_state(response.header("allow") == "POST", "allow", "the header allow: POST")


def _problem(problem: Part) -> None:
    """A problem document, which is sent as one."""
    response, media_type = problem.response, "application/problem+json"
    response.must_state(response.header("content-type") == media_type, "content-type", f"content-type {media_type}")
    expect_shape(problem, dict.fromkeys(("type", "title", "detail"), Part.text))
    problem["status"].expect(response.status)


async def _unknown_path(service: ServiceUnderTest) -> None:
    (await service.get(f"/{service.unknown_id}")).expect_status(404)


ROWS: Final = (
    rule("I2", "A tool is called by POST /tool/<name> with a JSON object, and answers in JSON.")(
        Call("list_categories", shape={}),
        Call("find_shop", _BLANK, shape={}),
        Call("list_categories", b"[]", 400, shape={}),
    ),
    rule("I42", "The OpenAPI document describes the statuses 200, 400 and 404 of each tool.")(
        Call("GET /openapi.json", shape={"paths": {_PREFIX + tool: _DESCRIBED for tool in TOOLS}})
    ),
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
    rule("I83", "An unknown shop, offer or path is 404.")(
        *(Call(tool, {"shop_domain": UNKNOWN_ID}, 404, "shop_not_found") for tool in _OF_SHOP),
        Call("resolve_checkout_url", {"offer_id": UNKNOWN_ID}, 404, "offer_not_found"),
        _unknown_path,
    ),
    rule("R3", "An unknown field is 400 that names it and the allowed ones; null and an empty string count as absent.")(
        Call("find_shop", {"query": "", "contry": "DE"}, 400, _INVALID, _WITH_COUNTRY),
        # A tool takes nothing in the query string.
        Call("find_shop?limit=1", {"query": ""}, 400, _INVALID, naming("limit")),
        Call("find_shop", {"query": "", "country": None, "category": "", "offset": None}),
    ),
    # Most of these requests have faults that come later in the order too.
    rule("R5", "Faults are found in this order: route 404, 405, 415, 413, 400, then errors of the tool.")(
        Call("GET /tool/no_such_tool", b"", 404, "not_found", headers=_AS_TEXT),
        Call("POST /tool/find_shop/", b"{}", 404, "not_found", headers=_AS_JSON),
        Call("GET /tool/find_shop", b"", 405, _NOT_ALLOWED, _only_post, headers=_AS_TEXT),
        Call("PUT /tool/find_shop", b"", 405, _NOT_ALLOWED, _only_post, headers=_AS_TEXT),
        Call("POST /suggest", b"{}", 405, _NOT_ALLOWED, headers=_AS_JSON),
        Call("POST /tool/find_shop", _OVER, 415, _WRONG_TYPE, headers=_AS_TEXT),
        Call("POST /tool/find_shop?limit=1", b"{}", 415, _WRONG_TYPE, headers=_AS_PATCH),
        Call("POST /tool/find_shop?limit=1", _OVER[1:], 413, "body_too_large", headers=_AS_JSON),
        Call("POST /tool/find_shop?limit=1", b"x", 400, _INVALID, headers=_AS_JSON),
        Call("get_shop", {"shop_domain": UNKNOWN_DOMAIN, **_WRONG_FIELD}, 400, _INVALID),
    ),
    rule("R5.credentials", "A missing token is found after 405 and before the body is read.")(
        Call("GET /tool/get_trust", b"", 405, _NOT_ALLOWED, headers=_AS_TEXT),
        Call("POST /tool/get_trust", _OVER, _REFUSED, "token_required", headers=_AS_TEXT),
    ),
    rule(
        "E1",
        "Every error over REST is a problem document with type, title, status, detail and code; 422 is never used.",
    )(
        Call("GET /no-such-path", b"", 404, "not_found", _problem),
        Call("GET /tool/find_shop", b"", 405, _NOT_ALLOWED, _problem),
        Call("POST /tool/find_shop", b"{}", 415, _WRONG_TYPE, _problem, headers=_AS_TEXT),
        Call("get_shop", {"shop_domain": UNKNOWN_DOMAIN}, 404, "shop_not_found", _problem),
        Call("find_shop", {"query": "", "category": UNKNOWN_ID}, 400, "unknown_category", _problem),
        Call("GET /suggest?q=%ff", b"", 400, _INVALID, _problem),
        Call("get_trust", _WRONG_FIELD, _REFUSED, "token_required", _problem, ANONYMOUS),
        Call("find_shop", {"query": 5}, 400, _INVALID, _problem),
        Call("find_shop", {"query": 5}, 400, _INVALID, naming("query")),
        Call("find_shop", {"query": 5}, 400, shape={"errors": each({"field": Part.text, "message": Part.text})}),
    ),
    rule("E6", "Input that is broken, hostile or too large is 400 or 413, never a server error.")(
        *(Call("find_shop", body, 400, _INVALID) for body in _HOSTILE),
        *(Call(f"GET /suggest?{query}", status=400, code=_INVALID) for query in _HOSTILE_QUERIES),
        Call("find_shop", _OVER, 413, "body_too_large"),
        Call("find_shop", b'{"query":"\\t\\n"}'),
    ),
    rule("Q1", "Where no token is needed, an invalid one counts as none.")(
        Call("list_categories", caller=WITH_UNKNOWN_TOKEN), Call("GET /suggest?q=", caller=WITH_UNKNOWN_TOKEN)
    ),
)


@rule("I1", f"There are the eleven tools of the interface, and no other tool except {', '.join(BEYOND)}.")
async def _eleven_tools(service: ServiceUnderTest) -> None:
    named = sorted(await service.described_tools())
    as_said = [name for name in named if name not in BEYOND] == sorted(TOOLS)
    (await service.openapi()).response.must(
        as_said, f"the tools {', '.join(sorted(TOOLS))}", f"the tools {', '.join(named)}"
    )
    for name in TOOLS:
        # Without a token and without arguments: nothing can be written by it.
        response = await service.anonymous.tool(name, {})
        response.must(response.status not in NO_TOOL, "a tool of this name")
    (await service.tool("no_such_tool", {})).expect_status(404)


@rule("I13", "Slugs come from the catalogue: the OpenAPI document enumerates none.")
async def _slugs_are_not_enumerated(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    document = described.json()
    # The categories of returns in get_shop_policies are not slugs.
    paths = {path: of for path, of in document["paths"].value.items() if path.removeprefix(_PREFIX) not in BEYOND}
    for key, properties in fields_of({**document.value, "paths": paths}):
        for name, schema in properties.items() if key == "properties" and isinstance(properties, dict) else ():
            if name in {"category", "slug"} and isinstance(schema, dict) and schema.keys() & {"enum", "const"}:
                raise described.broken(f"a schema of {name} without an enumeration", str(schema))


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


@rule("I43", "Every tool takes shop_id_or_domain as another name of shop_domain.")
async def _alias_of_shop_domain(service: ServiceUnderTest) -> None:
    domain = service.subjects.shop.domain
    for tool in service.allowed(*_OF_SHOP, "get_trust"):
        by_alias = await service.tool(tool, {"shop_id_or_domain": domain})
        by_alias.expect_status(200)
        expected = f"the same answer of {tool} for either name of the field"
        expect_equal(await service.about_shop(tool, domain), by_alias, expected)
    without_shop: dict[str, Arguments] = {"find_shop": _BLANK, "list_categories": {}}
    for tool, arguments in without_shop.items():
        for ignored in (domain, " ", "x" * 5_000):
            response = await service.tool(tool, {**arguments, "shop_id_or_domain": ignored})
            expect_equal(await service.tool(tool, arguments), response, f"that {tool} takes the field and ignores it")


@rule("I82", "Invalid input, such as a required field left out or an unknown category, is 400.")
async def _invalid_is_400(service: ServiceUnderTest) -> None:
    free = ("find_shop", "get_shop", "get_shipping_policy", "resolve_checkout_url")
    for tool in service.allowed(*free, "get_trust", "monetize_offer", "resolve_conflict"):
        (await service.tool(tool, {})).problem(400, _INVALID)
    (await service.tool("find_shop", {"query": "", "limit": "many"})).problem(400, _INVALID)
    (await service.tool("find_shop", {"query": "", "category": service.unknown_id})).problem(400, "unknown_category")


@rule("I85", "No path has a version in it.")
async def _has_no_versions_in_paths(service: ServiceUnderTest) -> None:
    paths = (await service.openapi())["paths"]
    for path in paths.names():
        versions = [segment for segment in path.split("/") if _VERSION.fullmatch(segment)]
        paths.must(not versions, f"paths without a version, not {path}")


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
        await service.suggest(""),
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
    first = await service.suggest("a")
    _expect_public(first)
    tag = first.header("etag") or ""
    again = await service.get("/suggest?q=a", ("if-none-match", tag))
    again.expect_status(304)
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
    responses = [await service.tool("list_categories", {}), await service.suggest("")]
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
    for method, path, allowed in (
        ("GET", "/suggest?q=", "*"),
        ("GET", "/suggest", "*"),
        ("OPTIONS", "/suggest?q=a", "*"),
        ("POST", "/tool/list_categories", None),
        ("OPTIONS", "/tool/list_categories", None),
        ("GET", "/health", None),
    ):
        preflight = ("access-control-request-method", "GET" if allowed else "POST")
        body = b"{}" if method == "POST" else b""
        response = await service.send(Request(method, path, body, (*_AS_JSON, _ELSEWHERE, preflight)))
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
