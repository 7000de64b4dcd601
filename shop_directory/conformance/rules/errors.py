"""Errors over REST: their shape, the order in which faults are found, and hostile input."""

import re
from typing import Final

from shop_directory.conformance.exchange import Request, Response
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import JSON, ServiceUnderTest

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


@rule("R3", "An unknown field is 400 that names it and the allowed ones; null and an empty string count as absent.")
async def _names_unknown_fields(service: ServiceUnderTest) -> None:
    problem = (await service.tool("find_shop", {"query": "", "contry": "DE"})).problem(400, "invalid_input")
    if "contry" not in [error["field"].value for error in problem["errors"].each()]:
        raise problem["errors"].broken("an error on the field contry")
    if "country" not in problem["detail"].text():
        raise problem["detail"].broken("the names of the allowed fields")
    absent = {"query": "", "country": None, "category": "", "offset": None}
    (await service.tool("find_shop", absent)).expect_status(200)


@rule("R5", "Faults are found in this order: route 404, 405, 415, 413, 400, then errors of the tool.")
async def _judges_in_order(service: ServiceUnderTest) -> None:
    (await _sent(service, "GET", "/tool/no_such_tool", "text/plain", b"")).problem(404, "not_found")
    response = await _sent(service, "GET", "/tool/find_shop", "text/plain", b"")
    response.problem(405, "method_not_allowed")
    if response.header("allow") != "POST":
        raise response.broken("the header allow: POST", f"allow: {response.header('allow')}")
    (await _sent(service, "POST", "/tool/find_shop", "text/plain", _OVER)).problem(415, "unsupported_media_type")
    (await _sent(service, "POST", "/tool/find_shop", JSON, _OVER[1:])).problem(413, "body_too_large")
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


async def _sent(service: ServiceUnderTest, method: str, path: str, media_type: str, body: bytes) -> Response:
    return await service.send(Request(method, path, body, (("content-type", media_type), *service.token_header)))


def _expect_shape(response: Response, status: int, code: str) -> None:
    problem = response.problem(status, code)
    if response.header("content-type") != _PROBLEM:
        raise response.broken(f"content-type {_PROBLEM}", f"content-type {response.header('content-type')}")
    for name in ("type", "title", "detail"):
        problem[name].text()
    problem["status"].expect(status)
