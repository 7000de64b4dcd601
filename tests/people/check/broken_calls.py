"""Servers that are wrong about calls over REST, their errors, tokens, quotas, request ids, caching or origins."""

from typing import Any, Final

from tests.people.check.breaking import (
    ANY,
    Answered,
    Asked,
    Breakage,
    Change,
    Document,
    Wrap,
    answering,
    asked_otherwise,
    drop,
    header,
    hearing,
    in_place,
    objects,
    put,
    rewriting,
    status,
    unheard,
    where,
)
from tests.people.check.broken_mcp import TOKEN, saying

_OPENAPI: Final = "/openapi.json"
FIND: Final = "/tool/find_shop"
NO_PATH: Final = "/no-such-path"
PROBLEM: Final = b"application/problem+json"
MAX_BODY: Final = 65_536


def _with_slugs_enumerated(document: Document) -> None:
    for one in objects(document):
        match one:
            case {"properties": {"query": _, "category": dict() as category}}:
                category["enum"] = ["books", "toys"]


def _without_older_name(arguments: Document) -> Document:
    # As if the field were none of the tool's.
    return {"unheard_of" if name == "shop_id_or_domain" else name: value for name, value in arguments.items()}


def to_bodies(change: Change, having: bytes) -> Wrap:
    """A server that changes its answers of find_shop to bodies that hold these bytes."""
    return where(lambda answered: answered.asked.path == FIND and having in answered.asked.body, change)


def problem(status: int, code: str) -> Change:
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


_TRUST: Final = "/tool/get_trust"
_NO_META: Final = header(b"www-authenticate", b'Bearer resource_metadata="https://auth.example"')
LIST: Final = "/tool/list_categories"
SUGGEST: Final = "/suggest"
ALLOW: Final = b"access-control-allow-origin"


def to_callers(path: str, change: Change, *, wrong: bool = False) -> Wrap:
    """A server that changes its answers on a path to callers without a token, or to those with a wrong one."""

    def is_meant(answered: Answered) -> bool:
        sent = [value for name, value in answered.asked.headers if name == TOKEN]
        # Tokens of this service begin otherwise.
        is_caller = any(token.startswith(b"none_") for token in sent) if wrong else not sent
        return answered.asked.path == path and is_caller

    return where(is_meant, change)


_JUDGED: Final = problem(400, "invalid_input")


def _closed(answered: Answered) -> None:
    problem(401, "token_required")(answered)
    answered.set_header(b"www-authenticate", b"ApiKey")


def _like_anybody(answered: Answered) -> None:
    answered.set_header(b"ratelimit-policy", b'"reads";q=100000;w=60')
    answered.set_header(b"ratelimit", b'"reads";r=99;t=1')


def _named_in_body(answered: Answered) -> None:
    answered.document = {"status": "ok", "request": dict(answered.headers)[b"x-request-id"].decode()}


def _echoed(answered: Answered) -> None:
    origin = dict(answered.asked.headers).get(b"origin")
    if origin is not None:
        answered.headers.append((ALLOW, origin))


def _always_unchanged(asked: Asked) -> None:
    if any(name == b"if-none-match" for name, _ in asked.headers):
        asked.headers = [(name, value) for name, value in asked.headers if name != b"if-none-match"]
        asked.headers.append((b"if-none-match", b"*"))


BREAKAGES: Final[tuple[Breakage, ...]] = (
    ("I1", "describes ten tools", rewriting(_OPENAPI, drop("paths./tool/get_trust"))),
    ("I1", "has a tool more", rewriting(_OPENAPI, lambda found: found["paths"].update({"/tool/rate_shop": {}}))),
    ("I2", "answers in plain text", answering("/tool/list_categories", header(b"content-type", b"text/plain"))),
    ("I13", "enumerates the slugs of today", rewriting(_OPENAPI, _with_slugs_enumerated)),
    (
        "I42",
        "describes a tool without 404",
        rewriting(_OPENAPI, drop("paths./tool/resolve_conflict.post.responses.404")),
    ),
    ("I43", "does not know the older name", hearing("/tool/get_shipping_policy", _without_older_name)),
    ("I82", "answers an invalid offer with 422", answering("/tool/resolve_checkout_url", status(422), 400)),
    ("I83", "answers an unknown offer with 410", answering("/tool/resolve_checkout_url", status(410), 404)),
    ("I83", "answers an unknown shop with an empty page", answering("/tool/get_shipping_policy", _empty_page, 404)),
    ("R3", "drops a field that it does not know", asked_otherwise(_unknown_dropped)),
    ("R3", "does not name the field", to_bodies(in_place(put("errors.*.field", "input")), b"contry")),
    ("R3", "takes null for a value", to_bodies(problem(400, "invalid_input"), b"null")),
    ("R5", "reports the method before the route", answering("/tool/no_such_tool", _method_first, 404)),
    ("R5", "looks at the size before the type", answering(FIND, _size_first, 415)),
    ("R5", "looks the shop up before it reads all", asked_otherwise(_unknown_dropped_later)),
    ("R5.credentials", "looks at the body before the token", answering("/tool/get_trust", _body_first, 401)),
    ("E1", "sends errors as plain JSON", answering(NO_PATH, header(b"content-type", b"application/json"), 404)),
    ("E1", "says another status in the body", rewriting(NO_PATH, put("status", 500), 404)),
    ("E1", "has no title", rewriting(NO_PATH, drop("title"), 404)),
    ("E1", "lets the framework's 422 show", to_bodies(problem(422, "invalid_input"), b'{"query":5}')),
    ("E1", "does not say which fields", to_bodies(in_place(put("errors", [])), b'{"query":5}')),
    ("E6", "fails on a number that is none", to_bodies(problem(500, "internal_error"), b"NaN")),
    ("E6", "takes the last of two fields", to_bodies(_empty_page, b'"query":"a","query":"b"')),
    ("E6", "fails on deep nesting", to_bodies(problem(500, "internal_error"), b"[" * 5_000)),
    ("E6", "takes a control character", to_bodies(_empty_page, b"\\u0000")),
    ("E6", "takes a body of any size", asked_otherwise(_any_size)),
    ("E6", "refuses a tab in a query", to_bodies(problem(400, "invalid_input"), b"\\t")),
    ("I78", "gives a token's owner no more", answering("/tool/list_categories", _like_anybody)),
    ("I79", "asks for a token to read", to_callers("/tool/get_shop", _closed)),
    ("I79.more_reads", "asks for a token to list coupons", to_callers("/tool/list_coupons", _closed)),
    ("I79.more_reads", "asks for a token to check out", to_callers("/tool/resolve_checkout_url", _closed)),
    ("Q1", "refuses a wrong token where none is needed", to_callers("/tool/list_categories", _closed, wrong=True)),
    ("I80", "judges the input first", to_callers("/tool/monetize_offer", _JUDGED)),
    ("I80", "takes any token", to_callers("/tool/resolve_conflict", _JUDGED, wrong=True)),
    ("E1.credentials", "sends no challenge", answering(_TRUST, header(b"www-authenticate", None), 401)),
    ("E1.credentials", "sends clients to an OAuth server", answering(_TRUST, _NO_META, 401)),
    ("E1.credentials", "does not say how to send one", rewriting(_TRUST, put("detail", "You may not do this."), 401)),
    ("E2.credentials", "refuses with status 200", saying(status(200), tool="monetize_offer", status=401)),
    (
        "E2.credentials",
        "refuses without the problem",
        saying(in_place(drop("error.data")), tool="get_trust", status=401),
    ),
    ("Q2", "sends no remainder", answering("/suggest", header(b"ratelimit", None))),
    ("Q2", "sends it in its own words", answering("/suggest", header(b"ratelimit", b"limit=9, left=7"))),
    ("Q2", "has more left than it has", answering("/suggest", header(b"ratelimit", b'"suggest";r=999999;t=1'))),
    ("E5.request_id", "has no request id", answering("/health", header(b"x-request-id", None))),
    ("E5.request_id", "gives all the same", answering(ANY, header(b"x-request-id", b"1" * 32), None)),
    ("E5.request_id", "puts it into the body", answering("/health", _named_in_body)),
    (
        "E5.request_id",
        "does not send it over MCP",
        saying(in_place(drop("result._meta.x-request-id")), tool="list_categories"),
    ),
    ("C1.http", "lets suggestions be cached", answering(SUGGEST, header(b"cache-control", b"public, max-age=60"))),
    ("C1.http", "has no tag", answering(SUGGEST, header(b"etag", None), None)),
    ("C1.http", "never says unchanged", unheard(b"if-none-match")),
    ("C1.http", "always says unchanged", asked_otherwise(_always_unchanged)),
    ("C1.http", "lets answers be cached", answering(LIST, header(b"cache-control", b"max-age=3"))),
    ("C1.http", "lets errors be cached", answering(SUGGEST, header(b"cache-control", b"max-age=3"), 400)),
    ("C2", "does not send the generation", answering(LIST, header(b"x-generation", None))),
    ("C2", "sends the time in no zone", answering(ANY, header(b"x-data-as-of", b"2026-11-21 09:30"))),
    ("C2", "answers from two generations", answering(SUGGEST, header(b"x-generation", b"another"))),
    ("C2", "does not send it over MCP", saying(in_place(drop("result._meta.x-generation")), tool="list_categories")),
    ("C3", "keeps suggestions to itself", answering(SUGGEST, header(ALLOW, None))),
    ("C3", "opens everything to any page", answering(LIST, header(ALLOW, b"*"))),
    ("C3", "opens everything to who asks", answering("/health", _echoed)),
)
