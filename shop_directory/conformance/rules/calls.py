"""Tool calls over REST: names, description, what is invalid or not found, the shape and the order of errors."""

import re
from typing import Any, Final

from shop_directory.conformance.exchange import Request, Response, fields_of
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import JSON, ServiceUnderTest, expect_equal

TOOLS: Final = (
    "find_shop",
    "list_categories",
    "get_shop",
    "list_coupons",
    "get_shipping_policy",
    "get_trust",
    "report_code",
    "report_issue",
    "monetize_offer",
    "resolve_checkout_url",
    "resolve_conflict",
)
# Not part of the interface: a service may have it.
BEYOND: Final = ("get_shops",)
_PREFIX: Final = "/tool/"
_NOT_THERE: Final = frozenset({404, 405, 501})
_PROBLEM: Final = "application/problem+json"
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
_NOT_ALLOWED: Final = "method_not_allowed"
# Most of these requests have faults that come later in the order too.
_FAULTS: Final = (
    ("GET", "/tool/no_such_tool", "text/plain", b"", 404, "not_found"),
    ("POST", "/tool/find_shop/", JSON, b"{}", 404, "not_found"),
    ("GET", "/tool/find_shop", "text/plain", b"", 405, _NOT_ALLOWED),
    ("PUT", "/tool/find_shop", "text/plain", b"", 405, _NOT_ALLOWED),
    ("POST", "/suggest", JSON, b"{}", 405, _NOT_ALLOWED),
    ("POST", "/tool/find_shop", "text/plain", _OVER, 415, "unsupported_media_type"),
    ("POST", "/tool/find_shop?limit=1", "application/json-patch+json", b"{}", 415, "unsupported_media_type"),
    ("POST", "/tool/find_shop?limit=1", JSON, _OVER[1:], 413, "body_too_large"),
    ("POST", "/tool/find_shop?limit=1", JSON, b"x", 400, "invalid_input"),
)


@rule("I1", "There are the eleven tools of the interface, and no other tool except get_shops.")
async def _eleven_tools(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    paths = described.json()["paths"].keys()
    named = sorted(path.removeprefix(_PREFIX) for path in paths if path.startswith(_PREFIX))
    if [name for name in named if name not in BEYOND] != sorted(TOOLS):
        raise described.broken(f"the tools {', '.join(sorted(TOOLS))}", f"the tools {', '.join(named)}")
    for tool in TOOLS:
        # Without a token and without arguments: nothing can be written by it.
        response = await service.with_token(None).tool(tool, {})
        if response.status in _NOT_THERE:
            raise response.broken("a tool of this name")
    (await service.tool("no_such_tool", {})).expect_status(404)


@rule("I2", "A tool is called by POST /tool/<name> with a JSON object, and answers in JSON.")
async def _json_both_ways(service: ServiceUnderTest) -> None:
    (await service.tool("list_categories", {})).json()
    (await service.tool("find_shop", {"query": "", "limit": 100})).json()
    (await service.tool("list_categories", b"[]")).problem(400)


@rule("I13", "Slugs come from the catalogue: the OpenAPI document enumerates none.")
async def _slugs_are_not_enumerated(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    for key, properties in fields_of(described.json().value):
        for name, schema in properties.items() if key == "properties" and isinstance(properties, dict) else ():
            if name in {"category", "slug"} and isinstance(schema, dict) and schema.keys() & {"enum", "const"}:
                raise described.broken(f"a schema of {name} without an enumeration", str(schema))


@rule("I42", "The OpenAPI document describes the statuses 200, 400 and 404 of each tool.")
async def _statuses_are_described(service: ServiceUnderTest) -> None:
    paths = (await service.get("/openapi.json")).json()["paths"]
    for tool in TOOLS:
        responses = paths[_PREFIX + tool]["post"]["responses"]
        for status in ("200", "400", "404"):
            responses[status].keys()


@rule("I43", "Every tool takes shop_id_or_domain as another name of shop_domain.")
async def _alias_of_shop_domain(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    for tool in _with_token(service, ("get_shop", "list_coupons", "get_shipping_policy"), ("get_trust",)):
        by_shop_domain = await service.tool(tool, {"shop_domain": shop.domain})
        by_alias = await service.tool(tool, {"shop_id_or_domain": shop.domain})
        by_alias.expect_status(200)
        expect_equal(by_shop_domain, by_alias, f"the same answer of {tool} for either name of the field")
    without_shop: dict[str, dict[str, Any]] = {"find_shop": {"query": "", "limit": 100}, "list_categories": {}}
    for tool, arguments in without_shop.items():
        for ignored in (shop.domain, " ", "x" * 5_000):
            response = await service.tool(tool, {**arguments, "shop_id_or_domain": ignored})
            expect_equal(await service.tool(tool, arguments), response, f"that {tool} takes the field and ignores it")


@rule("I82", "Invalid input, such as a required field left out or an unknown category, is 400.")
async def _invalid_is_400(service: ServiceUnderTest) -> None:
    free = ("find_shop", "get_shop", "get_shipping_policy", "resolve_checkout_url")
    for tool in _with_token(service, free, ("get_trust", "monetize_offer", "resolve_conflict")):
        (await service.tool(tool, {})).problem(400, "invalid_input")
    (await service.tool("find_shop", {"query": "", "limit": "many"})).problem(400, "invalid_input")
    (await service.tool("find_shop", {"query": "", "category": service.unknown_id})).problem(400, "unknown_category")


@rule("I83", "An unknown shop, offer or path is 404.")
async def _not_found_is_404(service: ServiceUnderTest) -> None:
    for tool in ("get_shop", "list_coupons", "get_shipping_policy"):
        (await service.tool(tool, {"shop_domain": service.unknown_id})).problem(404, "shop_not_found")
    (await service.tool("resolve_checkout_url", {"offer_id": service.unknown_id})).problem(404, "offer_not_found")
    (await service.get(f"/{service.unknown_id}")).expect_status(404)


@rule("R3", "An unknown field is 400 that names it and the allowed ones; null and an empty string count as absent.")
async def _names_unknown_fields(service: ServiceUnderTest) -> None:
    problem = (await service.tool("find_shop", {"query": "", "contry": "DE"})).problem(400, "invalid_input")
    if "contry" not in [error["field"].value for error in problem["errors"].each()]:
        raise problem["errors"].broken("an error on the field contry")
    if "country" not in problem["detail"].text():
        raise problem["detail"].broken("the names of the allowed fields")
    in_query = await _sent(service, "POST", "/tool/find_shop?limit=1", JSON, b'{"query":""}')
    if "limit" not in [error["field"].value for error in in_query.problem(400, "invalid_input")["errors"].each()]:
        raise in_query.broken("an error on limit, as a tool takes nothing in the query string")
    absent = {"query": "", "country": None, "category": "", "offset": None}
    (await service.tool("find_shop", absent)).expect_status(200)


@rule("R5", "Faults are found in this order: route 404, 405, 415, 413, 400, then errors of the tool.")
async def _judges_in_order(service: ServiceUnderTest) -> None:
    for method, path, media_type, body, status, code in _FAULTS:
        response = await _sent(service, method, path, media_type, body)
        response.problem(status, code)
        if code == _NOT_ALLOWED and path.startswith(_PREFIX) and response.header("allow") != "POST":
            raise response.broken("the header allow: POST", f"allow: {response.header('allow')}")
    unknown = {"shop_domain": service.unknown_domain, "no_such_field": True}
    (await service.tool("get_shop", unknown)).problem(400, "invalid_input")


@rule("R5.credentials", "A missing token is found after 405 and before the body is read.")
async def _judges_credentials_first(service: ServiceUnderTest) -> None:
    anonymous = service.with_token(None)
    (await _sent(anonymous, "GET", "/tool/get_trust", "text/plain", b"")).problem(405, "method_not_allowed")
    (await _sent(anonymous, "POST", "/tool/get_trust", "text/plain", _OVER)).problem(401, "token_required")


@rule("E1", "Every error over REST is a problem document with type, title, status, detail and code; 422 is never used.")
async def _has_one_shape(service: ServiceUnderTest) -> None:
    invalid = await service.tool("find_shop", {"query": 5})
    responses = (
        (await service.get("/no-such-path"), 404, "not_found"),
        (await service.get("/tool/find_shop"), 405, "method_not_allowed"),
        (await _sent(service, "POST", "/tool/find_shop", "text/plain", b"{}"), 415, "unsupported_media_type"),
        (await service.tool("get_shop", {"shop_domain": service.unknown_domain}), 404, "shop_not_found"),
        (await service.tool("find_shop", {"query": "", "category": service.unknown_id}), 400, "unknown_category"),
        (await service.get("/suggest?q=%ff"), 400, "invalid_input"),
        (await service.with_token(None).tool("get_trust", {"no_such_field": True}), 401, "token_required"),
        (invalid, 400, "invalid_input"),
    )
    for response, status, code in responses:
        _expect_shape(response, status, code)
    errors = invalid.document()["errors"]
    for error in errors.each():
        error["field"].text()
        error["message"].text()
    if not errors.values():
        raise errors.broken("the invalid fields")


@rule("E6", "Input that is broken, hostile or too large is 400 or 413, never a server error.")
async def _withstands_hostile_input(service: ServiceUnderTest) -> None:
    for body in _HOSTILE:
        (await service.tool("find_shop", body)).problem(400, "invalid_input")
    for query in ("q=%zz", "q=%00", "q=" + "a" * 257, "q=a&limit=" + "9" * 400):
        (await service.get(f"/suggest?{query}")).problem(400, "invalid_input")
    (await service.tool("find_shop", _OVER)).problem(413, "body_too_large")
    (await service.tool("find_shop", b'{"query":"\\t\\n"}')).expect_status(200)


@rule("I85", "No path has a version in it.")
async def _has_no_versions_in_paths(service: ServiceUnderTest) -> None:
    paths = (await service.get("/openapi.json")).json()["paths"]
    for path in paths.keys():  # noqa: SIM118 - a part is no dict
        if any(_VERSION.fullmatch(segment) for segment in path.split("/")):
            raise paths.broken(f"paths without a version, not {path}")


def _with_token(service: ServiceUnderTest, free: tuple[str, ...], guarded: tuple[str, ...]) -> tuple[str, ...]:
    """The tools that may be called with these credentials."""
    return (*free, *guarded) if service.token else free


async def _sent(service: ServiceUnderTest, method: str, path: str, media_type: str, body: bytes) -> Response:
    return await service.send(Request(method, path, body, (("content-type", media_type), *service.token_header)))


def _expect_shape(response: Response, status: int, code: str) -> None:
    problem = response.problem(status, code)
    if response.header("content-type") != _PROBLEM:
        raise response.broken(f"content-type {_PROBLEM}", f"content-type {response.header('content-type')}")
    for name in ("type", "title", "detail"):
        problem[name].text()
    problem["status"].expect(status)
