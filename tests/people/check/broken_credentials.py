"""Servers that are wrong in one way about tokens or quotas."""

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp

from tests.people.check.breaking import Answered, Breakage, Changed, answering, in_place, rewriting
from tests.people.check.broken_mcp import TOKEN, saying
from tests.people.check.changes import drop, header, put, status


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


_TRUST: Final = "/tool/get_trust"
_NO_META: Final = header(b"www-authenticate", b'Bearer resource_metadata="https://auth.example"')

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
)  # fmt: skip
