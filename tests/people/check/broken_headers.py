"""Servers that are wrong about tokens, quotas, request ids, caching, generations or origins."""

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp

from tests.people.check.breaking import (
    ANY,
    Answered,
    Asked,
    Breakage,
    Changed,
    answering,
    drop,
    header,
    in_place,
    put,
    rewriting,
    status,
)
from tests.people.check.broken_mcp import TOKEN, saying

_TRUST: Final = "/tool/get_trust"
_NO_META: Final = header(b"www-authenticate", b'Bearer resource_metadata="https://auth.example"')
LIST: Final = "/tool/list_categories"
SUGGEST: Final = "/suggest"
ALLOW: Final = b"access-control-allow-origin"


def to_callers(
    path: str, change: Callable[[Answered], None], *, wrong: bool = False, status: int | None = None
) -> Callable[[ASGIApp], ASGIApp]:
    """A server that changes its answers on a path to callers without a token, or to those with a wrong one."""

    def after(answered: Answered) -> None:
        sent = [value for name, value in answered.asked.headers if name == TOKEN]
        # Tokens of this service begin otherwise.
        is_meant = sent[0].startswith(b"none_") if sent else not wrong
        if answered.asked.path == path and is_meant and bool(sent) == wrong and status in {None, answered.status}:
            change(answered)

    return lambda app: Changed(app, after=after)


def _closed(answered: Answered) -> None:
    problem = {
        "type": "urn:token",
        "title": "Token",
        "status": 401,
        "detail": "x-api-token is missing.",
        "code": "token_required",
    }
    answered.be(401, problem, b"application/problem+json")
    answered.set_header(b"www-authenticate", b"ApiKey")


def _judged(answered: Answered) -> None:
    problem = {"type": "urn:input", "title": "Input", "status": 400, "detail": "no_such_field", "code": "invalid_input"}
    answered.be(400, problem, b"application/problem+json")


def _like_anybody(answered: Answered) -> None:
    answered.set_header(b"ratelimit-policy", b'"reads";q=100000;w=60')
    answered.set_header(b"ratelimit", b'"reads";r=99;t=1')


def _repeated(answered: Answered) -> None:
    answered.headers.append((ALLOW, b"*"))


def _named_in_body(answered: Answered) -> None:
    answered.document = {"status": "ok", "request": dict(answered.headers)[b"x-request-id"].decode()}


def _echoed(answered: Answered) -> None:
    origin = dict(answered.asked.headers).get(b"origin")
    if origin is not None:
        answered.headers.append((ALLOW, origin))


def _never_unchanged(asked: Asked) -> None:
    asked.headers = [(name, value) for name, value in asked.headers if name != b"if-none-match"]


def _always_unchanged(asked: Asked) -> None:
    if any(name == b"if-none-match" for name, _ in asked.headers):
        asked.headers = [(name, value) for name, value in asked.headers if name != b"if-none-match"]
        asked.headers.append((b"if-none-match", b"*"))


BREAKAGES: Final = (
    Breakage("I78", "gives a token's owner no more", answering("/tool/list_categories", _like_anybody)),
    Breakage("I79", "asks for a token to read", to_callers("/tool/get_shop", _closed)),
    Breakage("I79.more_reads", "asks for a token to list coupons", to_callers("/tool/list_coupons", _closed)),
    Breakage("I79.more_reads", "asks for a token to check out", to_callers("/tool/resolve_checkout_url", _closed)),
    Breakage("Q1", "refuses a wrong token where none is needed",
             to_callers("/tool/list_categories", _closed, wrong=True)),
    Breakage("I80", "judges the input first", to_callers("/tool/monetize_offer", _judged)),
    Breakage("I80", "takes any token", to_callers("/tool/resolve_conflict", _judged, wrong=True)),
    Breakage("E1.credentials", "sends no challenge", answering(_TRUST, header(b"www-authenticate", None), 401)),
    Breakage("E1.credentials", "sends clients to an OAuth server", answering(_TRUST, _NO_META, 401)),
    Breakage("E1.credentials", "does not say how to send one",
             rewriting(_TRUST, put("detail", "You may not do this."), 401)),
    Breakage("E2.credentials", "refuses with status 200", saying(status(200), tool="monetize_offer", status=401)),
    Breakage("E2.credentials", "refuses without the problem",
             saying(in_place(drop("error.data")), tool="get_trust", status=401)),
    Breakage("Q2", "sends no remainder", answering("/suggest", header(b"ratelimit", None))),
    Breakage("Q2", "sends it in its own words", answering("/suggest", header(b"ratelimit", b"limit=9, left=7"))),
    Breakage("Q2", "has more left than it has",
             answering("/suggest", header(b"ratelimit", b'"suggest";r=999999;t=1'))),
    Breakage("E5.request_id", "has no request id", answering("/health", header(b"x-request-id", None))),
    Breakage("E5.request_id", "gives all the same", answering(ANY, header(b"x-request-id", b"1" * 32), None)),
    Breakage("E5.request_id", "puts it into the body", answering("/health", _named_in_body)),
    Breakage(
        "E5.request_id",
        "does not send it over MCP",
        saying(in_place(drop("result._meta.x-request-id")), tool="list_categories"),
    ),
    Breakage(
        "C1.http", "lets suggestions be cached", answering(SUGGEST, header(b"cache-control", b"public, max-age=60"))
    ),
    Breakage("C1.http", "has no tag", answering(SUGGEST, header(b"etag", None), None)),
    Breakage("C1.http", "never says unchanged", lambda app: Changed(app, before=_never_unchanged)),
    Breakage("C1.http", "always says unchanged", lambda app: Changed(app, before=_always_unchanged)),
    Breakage("C1.http", "lets answers be cached", answering(LIST, header(b"cache-control", b"max-age=3"))),
    Breakage("C1.http", "lets errors be cached", answering(SUGGEST, header(b"cache-control", b"max-age=3"), 400)),
    Breakage("C2", "does not send the generation", answering(LIST, header(b"x-generation", None))),
    Breakage("C2", "sends the time in no zone", answering(ANY, header(b"x-data-as-of", b"2026-11-21 09:30"))),
    Breakage("C2", "answers from two generations", answering(SUGGEST, header(b"x-generation", b"another"))),
    Breakage(
        "C2", "does not send it over MCP", saying(in_place(drop("result._meta.x-generation")), tool="list_categories")
    ),
    Breakage("C3", "keeps suggestions to itself", answering(SUGGEST, header(ALLOW, None))),
    Breakage("C3", "opens everything to any page", answering(LIST, _repeated)),
    Breakage("C3", "opens everything to who asks", answering("/health", _echoed)),
)  # fmt: skip
