"""Tool calls over REST: names, description, what is invalid or not found, the shape and the order of errors."""

import re
from typing import Final

from shop_directory.conformance.exchange import Part, Request, Response, fields_of
from shop_directory.conformance.rule import UNKNOWN_ID, Call, each, exactly, expect_shape, rule
from shop_directory.conformance.service_under_test import FULL, JSON, Arguments, ServiceUnderTest, expect_equal

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
BEYOND: Final = ("get_shops", "get_shop_policies")
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
_HOSTILE_QUERIES: Final = ("q=%zz", "q=%00", "q=" + "a" * 257, "q=a&limit=" + "9" * 400)
_INVALID: Final = "invalid_input"
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
    ("POST", "/tool/find_shop?limit=1", JSON, b"x", 400, _INVALID),
)
_BLANK: Final[Arguments] = {"query": "", "limit": FULL}
_DESCRIBED: Final = {"post": {"responses": dict.fromkeys(("200", "400", "404"), Part.names)}}
_OF_SHOP: Final = ("get_shop", "list_coupons", "get_shipping_policy")


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
    rule("I83", "An unknown shop, offer or path is 404.")(
        *(Call(tool, {"shop_domain": UNKNOWN_ID}, 404, "shop_not_found") for tool in _OF_SHOP),
        Call("resolve_checkout_url", {"offer_id": UNKNOWN_ID}, 404, "offer_not_found"),
        _unknown_path,
    ),
    rule("E6", "Input that is broken, hostile or too large is 400 or 413, never a server error.")(
        *(Call("find_shop", body, 400, _INVALID) for body in _HOSTILE),
        *(Call(f"GET /suggest?{query}", status=400, code=_INVALID) for query in _HOSTILE_QUERIES),
        Call("find_shop", _OVER, 413, "body_too_large"),
        Call("find_shop", b'{"query":"\\t\\n"}'),
    ),
)


@rule("I1", f"There are the eleven tools of the interface, and no other tool except {', '.join(BEYOND)}.")
async def _eleven_tools(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    named = sorted(rest_tools(described.json()))
    as_said = [name for name in named if name not in BEYOND] == sorted(TOOLS)
    described.must(as_said, f"the tools {', '.join(sorted(TOOLS))}", f"the tools {', '.join(named)}")
    for name in TOOLS:
        # Without a token and without arguments: nothing can be written by it.
        response = await service.anonymous.tool(name, {})
        response.must(response.status not in _NOT_THERE, "a tool of this name")
    (await service.tool("no_such_tool", {})).expect_status(404)


@rule("I13", "Slugs come from the catalogue: the OpenAPI document enumerates none.")
async def _slugs_are_not_enumerated(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    document = described.json()
    # The categories of returns in get_shop_policies are no slugs.
    paths = {path: of for path, of in document["paths"].value.items() if path.removeprefix(_PREFIX) not in BEYOND}
    for key, properties in fields_of({**document.value, "paths": paths}):
        for name, schema in properties.items() if key == "properties" and isinstance(properties, dict) else ():
            if name in {"category", "slug"} and isinstance(schema, dict) and schema.keys() & {"enum", "const"}:
                raise described.broken(f"a schema of {name} without an enumeration", str(schema))


@rule("I43", "Every tool takes shop_id_or_domain as another name of shop_domain.")
async def _alias_of_shop_domain(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    for name in service.allowed(*_OF_SHOP, "get_trust"):
        by_shop_domain = await service.about_shop(name, shop.domain)
        by_alias = await service.tool(name, {"shop_id_or_domain": shop.domain})
        by_alias.expect_status(200)
        expect_equal(by_shop_domain, by_alias, f"the same answer of {name} for either name of the field")
    without_shop: dict[str, Arguments] = {"find_shop": _BLANK, "list_categories": {}}
    for name, arguments in without_shop.items():
        for ignored in (shop.domain, " ", "x" * 5_000):
            response = await service.tool(name, {**arguments, "shop_id_or_domain": ignored})
            expect_equal(await service.tool(name, arguments), response, f"that {name} takes the field and ignores it")


@rule("I82", "Invalid input, such as a required field left out or an unknown category, is 400.")
async def _invalid_is_400(service: ServiceUnderTest) -> None:
    free = ("find_shop", "get_shop", "get_shipping_policy", "resolve_checkout_url")
    for tool in service.allowed(*free, "get_trust", "monetize_offer", "resolve_conflict"):
        (await service.tool(tool, {})).problem(400, _INVALID)
    (await service.tool("find_shop", {"query": "", "limit": "many"})).problem(400, _INVALID)
    (await service.tool("find_shop", {"query": "", "category": service.unknown_id})).problem(400, "unknown_category")


@rule("R3", "An unknown field is 400 that names it and the allowed ones; null and an empty string count as absent.")
async def _names_unknown_fields(service: ServiceUnderTest) -> None:
    found = (await service.tool("find_shop", {"query": "", "contry": "DE"})).problem(400, _INVALID)
    found["errors"].must("contry" in named_fields(found), "an error on the field contry")
    found["detail"].must("country" in found["detail"].text(), "the names of the allowed fields")
    in_query = await _sent(service, "POST", "/tool/find_shop?limit=1", JSON, b'{"query":""}')
    fields = named_fields(in_query.problem(400, _INVALID))
    in_query.must("limit" in fields, "an error on limit, as a tool takes nothing in the query string")
    absent = {"query": "", "country": None, "category": "", "offset": None}
    (await service.tool("find_shop", absent)).expect_status(200)


@rule("R5", "Faults are found in this order: route 404, 405, 415, 413, 400, then errors of the tool.")
async def _judges_in_order(service: ServiceUnderTest) -> None:
    for method, path, media_type, body, status, code in _FAULTS:
        response = await _sent(service, method, path, media_type, body)
        response.problem(status, code)
        if code == _NOT_ALLOWED and path.startswith(_PREFIX):
            allowed = response.header("allow")
            response.must(allowed == "POST", "the header allow: POST", f"allow: {allowed}")
    unknown = {"shop_domain": service.unknown_domain, "no_such_field": True}
    (await service.tool("get_shop", unknown)).problem(400, _INVALID)


@rule("R5.credentials", "A missing token is found after 405 and before the body is read.")
async def _judges_credentials_first(service: ServiceUnderTest) -> None:
    for method, body, status, code in (("GET", b"", 405, _NOT_ALLOWED), ("POST", _OVER, 401, "token_required")):
        (await _sent(service.anonymous, method, "/tool/get_trust", "text/plain", body)).problem(status, code)


@rule("E1", "Every error over REST is a problem document with type, title, status, detail and code; 422 is never used.")
async def _has_one_shape(service: ServiceUnderTest) -> None:
    invalid = await service.tool("find_shop", {"query": 5})
    for response, status, code in (
        (await service.get("/no-such-path"), 404, "not_found"),
        (await service.get("/tool/find_shop"), 405, _NOT_ALLOWED),
        (await _sent(service, "POST", "/tool/find_shop", "text/plain", b"{}"), 415, "unsupported_media_type"),
        (await service.about_shop("get_shop", service.unknown_domain), 404, "shop_not_found"),
        (await service.tool("find_shop", {"query": "", "category": service.unknown_id}), 400, "unknown_category"),
        (await service.get("/suggest?q=%ff"), 400, _INVALID),
        (await service.anonymous.tool("get_trust", {"no_such_field": True}), 401, "token_required"),
        (invalid, 400, _INVALID),
    ):
        problem = response.problem(status, code)
        media_type = response.header("content-type")
        response.must(media_type == _PROBLEM, f"content-type {_PROBLEM}", f"content-type {media_type}")
        expect_shape(problem, {"type": Part.text, "title": Part.text, "detail": Part.text, "status": exactly(status)})
    errors = invalid.document()["errors"]
    expect_shape(errors, each({"field": Part.text, "message": Part.text}))
    errors.must(errors.values(), "the invalid fields")


@rule("I85", "No path has a version in it.")
async def _has_no_versions_in_paths(service: ServiceUnderTest) -> None:
    paths = (await service.openapi())["paths"]
    for path in paths.names():
        versions = [segment for segment in path.split("/") if _VERSION.fullmatch(segment)]
        paths.must(not versions, f"paths without a version, not {path}")


def rest_tools(openapi: Part) -> list[str]:
    """The names of the tools that an OpenAPI document describes."""
    return [path.removeprefix(_PREFIX) for path in openapi["paths"].names() if path.startswith(_PREFIX)]


def named_fields(found: Part) -> list[object]:
    """The fields that a problem names."""
    return [error["field"].value for error in found["errors"].each()]


async def _sent(service: ServiceUnderTest, method: str, path: str, media_type: str, body: bytes) -> Response:
    return await service.send(Request(method, path, body, (("content-type", media_type), *service.token_header)))
