"""Servers that are wrong in how tools are called and described, or about errors over REST."""

from collections.abc import Callable
from typing import Any, Final

from starlette.types import ASGIApp

from tests.people.check.breaking import (
    Answered,
    Asked,
    Breakage,
    Changed,
    Document,
    answering,
    drop,
    header,
    hearing,
    in_place,
    put,
    rewriting,
    status,
)

_OPENAPI: Final = "/openapi.json"
FIND: Final = "/tool/find_shop"
NO_PATH: Final = "/no-such-path"
PROBLEM: Final = b"application/problem+json"
MAX_BODY: Final = 65_536


def _with_slugs_enumerated(document: Document) -> None:
    waiting: list[object] = [document]
    while waiting:
        match waiting.pop():
            case {"properties": {"query": _, "category": dict() as category}}:
                category["enum"] = ["books", "toys"]
            case dict() as found:
                waiting += found.values()
            case list() as found:
                waiting += found


def _without_older_name(arguments: Document) -> Document:
    # As if the field were none of the tool's.
    return {"unheard_of" if name == "shop_id_or_domain" else name: value for name, value in arguments.items()}


def to_bodies(change: Callable[[Answered], None], *having: bytes, path: str = FIND) -> Callable[[ASGIApp], ASGIApp]:
    """A server that changes its answers to bodies that hold all of these bytes."""

    def after(answered: Answered) -> None:
        if answered.asked.path == path and all(part in answered.asked.body for part in having):
            change(answered)

    return lambda app: Changed(app, after=after)


def problem(status: int, code: str) -> Callable[[Answered], None]:
    document: dict[str, Any] = {
        "type": f"urn:{code}",
        "title": code,
        "status": status,
        "detail": "x-api-token, country",
        "code": code,
        "errors": [{"field": "query", "message": "is wrong"}],
    }
    return lambda answered: answered.be(status, document, PROBLEM)


def _empty_page(answered: Answered) -> None:
    answered.be(200, {"results": [], "total_count": 0, "truncated": False})


def _any_size(asked: Asked) -> None:
    if asked.path == FIND and len(asked.body) > MAX_BODY:
        asked.body = b'{"query":""}'


def _size_first(answered: Answered) -> None:
    if len(answered.asked.body) > MAX_BODY:
        problem(413, "body_too_large")(answered)


def _method_first(answered: Answered) -> None:
    if answered.asked.method == "GET":
        problem(405, "method_not_allowed")(answered)


def _body_first(answered: Answered) -> None:
    if (b"content-type", b"text/plain") in answered.asked.headers:
        problem(415, "unsupported_media_type")(answered)


def _unknown_dropped(asked: Asked) -> None:
    if b"contry" in asked.body:
        asked.body = b'{"query":""}'


def _unknown_dropped_later(asked: Asked) -> None:
    if asked.path == "/tool/get_shop":
        asked.body = asked.body.replace(b',"no_such_field":true', b"")


BREAKAGES: Final = (
    Breakage("I1", "describes ten tools", rewriting(_OPENAPI, drop("paths./tool/get_trust"))),
    Breakage(
        "I1", "has a tool more", rewriting(_OPENAPI, lambda found: found["paths"].update({"/tool/rate_shop": {}}))
    ),
    Breakage("I2", "answers in plain text", answering("/tool/list_categories", header(b"content-type", b"text/plain"))),
    Breakage("I13", "enumerates the slugs of today", rewriting(_OPENAPI, _with_slugs_enumerated)),
    Breakage(
        "I42",
        "describes a tool without 404",
        rewriting(_OPENAPI, drop("paths./tool/resolve_conflict.post.responses.404")),
    ),
    Breakage("I43", "does not know the older name", hearing("/tool/get_shipping_policy", _without_older_name)),
    Breakage("I82", "answers an invalid offer with 422", answering("/tool/resolve_checkout_url", status(422), 400)),
    Breakage("I83", "answers an unknown offer with 410", answering("/tool/resolve_checkout_url", status(410), 404)),
    Breakage(
        "I83", "answers an unknown shop with an empty page", answering("/tool/get_shipping_policy", _empty_page, 404)
    ),
    Breakage("R3", "drops a field that it does not know", lambda app: Changed(app, before=_unknown_dropped)),
    Breakage("R3", "does not name the field", to_bodies(in_place(put("errors.*.field", "input")), b"contry")),
    Breakage("R3", "takes null for a value", to_bodies(problem(400, "invalid_input"), b"null")),
    Breakage("R5", "reports the method before the route", answering("/tool/no_such_tool", _method_first, 404)),
    Breakage("R5", "looks at the size before the type", answering(FIND, _size_first, 415)),
    Breakage("R5", "looks the shop up before it reads all", lambda app: Changed(app, before=_unknown_dropped_later)),
    Breakage("R5.credentials", "looks at the body before the token", answering("/tool/get_trust", _body_first, 401)),
    Breakage("E1", "sends errors as plain JSON", answering(NO_PATH, header(b"content-type", b"application/json"), 404)),
    Breakage("E1", "says another status in the body", rewriting(NO_PATH, put("status", 500), 404)),
    Breakage("E1", "has no title", rewriting(NO_PATH, drop("title"), 404)),
    Breakage("E1", "lets the framework's 422 show", to_bodies(problem(422, "invalid_input"), b'{"query":5}')),
    Breakage("E1", "does not say which fields", to_bodies(in_place(put("errors", [])), b'{"query":5}')),
    Breakage("E6", "fails on a number that is none", to_bodies(problem(500, "internal_error"), b"NaN")),
    Breakage("E6", "takes the last of two fields", to_bodies(_empty_page, b'"query":"a","query":"b"')),
    Breakage("E6", "fails on deep nesting", to_bodies(problem(500, "internal_error"), b"[" * 5_000)),
    Breakage("E6", "takes a control character", to_bodies(_empty_page, b"\\u0000")),
    Breakage("E6", "takes a body of any size", lambda app: Changed(app, before=_any_size)),
    Breakage("E6", "refuses a tab in a query", to_bodies(problem(400, "invalid_input"), b"\\t")),
)
