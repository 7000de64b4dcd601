"""The rules of errors over REST: one shape, one order of faults, hostile input refused and never a fault."""

import re
from typing import Final

from shop_directory.conformance.exchange import Ask, Reply
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import JSON, Visit

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


@rule("R3", "An unknown field is 400 that names it and the allowed ones; null or an empty string is absence.")
async def _names_unknown_fields(visit: Visit) -> None:
    problem = (await visit.tool("find_shop", {"query": "", "contry": "DE"})).problem(400, "invalid_input")
    if "contry" not in [error["field"].value for error in problem["errors"].each()]:
        raise problem["errors"].broken("an error on the field contry")
    if "country" not in problem["detail"].text():
        raise problem["detail"].broken("the names of the allowed fields")
    absent = {"query": "", "country": None, "category": "", "offset": None}
    (await visit.tool("find_shop", absent)).expect_status(200)


@rule("R5", "Of several faults the first counts: route 404, 405, 415, 413, 400, then the tool's own answer.")
async def _judges_in_order(visit: Visit) -> None:
    (await _sent(visit, "GET", "/tool/no_such_tool", "text/plain", b"")).problem(404, "not_found")
    reply = await _sent(visit, "GET", "/tool/find_shop", "text/plain", b"")
    reply.problem(405, "method_not_allowed")
    if reply.header("allow") != "POST":
        raise reply.broken("the header allow: POST", f"allow: {reply.header('allow')}")
    (await _sent(visit, "POST", "/tool/find_shop", "text/plain", _OVER)).problem(415, "unsupported_media_type")
    (await _sent(visit, "POST", "/tool/find_shop", JSON, _OVER[1:])).problem(413, "body_too_large")
    unknown = {"shop_domain": visit.unknown_domain, "no_such_field": True}
    (await visit.tool("get_shop", unknown)).problem(400, "invalid_input")


@rule("R5.credentials", "A missing token is told after 405, and before the body is looked at.")
async def _judges_credentials_first(visit: Visit) -> None:
    nobody = visit.with_token(None)
    (await _sent(nobody, "GET", "/tool/get_trust", "text/plain", b"")).problem(405, "method_not_allowed")
    (await _sent(nobody, "POST", "/tool/get_trust", "text/plain", _OVER)).problem(401, "token_required")


@rule("E1", "Every error over REST is a problem document with type, title, status, detail and code; 422 never shows.")
async def _has_one_shape(visit: Visit) -> None:
    invalid = await visit.tool("find_shop", {"query": 5})
    replies = (
        (await visit.get("/no-such-path"), 404, "not_found"),
        (await visit.get("/tool/find_shop"), 405, "method_not_allowed"),
        (await _sent(visit, "POST", "/tool/find_shop", "text/plain", b"{}"), 415, "unsupported_media_type"),
        (await visit.tool("get_shop", {"shop_domain": visit.unknown_domain}), 404, "shop_not_found"),
        (await visit.tool("find_shop", {"query": "", "category": visit.unknown_id}), 400, "unknown_category"),
        (await visit.get("/suggest?q=%ff"), 400, "invalid_input"),
        (await visit.with_token(None).tool("get_trust", {"no_such_field": True}), 401, "token_required"),
        (invalid, 400, "invalid_input"),
    )
    for reply, status, code in replies:
        _expect_shape(reply, status, code)
    errors = invalid.document()["errors"]
    for error in errors.each():
        error["field"].text()
        error["message"].text()
    if not errors.values():
        raise errors.broken("the fields that are wrong")


@rule("E6", "Input that is broken, hostile or too large is 400 or 413, never a fault of the server.")
async def _withstands_hostile_input(visit: Visit) -> None:
    for body in _HOSTILE:
        (await visit.tool("find_shop", body)).problem(400, "invalid_input")
    for query in ("q=%zz", "q=%00", "q=" + "a" * 257, "q=a&limit=" + "9" * 400):
        (await visit.get(f"/suggest?{query}")).problem(400, "invalid_input")
    (await visit.tool("find_shop", _OVER)).problem(413, "body_too_large")
    (await visit.tool("find_shop", b'{"query":"\\t\\n"}')).expect_status(200)


@rule("I85", "No path has a version in it.")
async def _has_no_versions_in_paths(visit: Visit) -> None:
    paths = (await visit.get("/openapi.json")).answer()["paths"]
    for path in paths.keys():  # noqa: SIM118 - a part is no dict
        if any(_VERSION.fullmatch(segment) for segment in path.split("/")):
            raise paths.broken(f"paths without a version, not {path}")


async def _sent(visit: Visit, method: str, path: str, media_type: str, body: bytes) -> Reply:
    return await visit.ask(Ask(method, path, body, (("content-type", media_type), *visit.token_header)))


def _expect_shape(reply: Reply, status: int, code: str) -> None:
    problem = reply.problem(status, code)
    if reply.header("content-type") != _PROBLEM:
        raise reply.broken(f"content-type {_PROBLEM}", f"content-type {reply.header('content-type')}")
    for name in ("type", "title", "detail"):
        problem[name].text()
    problem["status"].expect(status)
