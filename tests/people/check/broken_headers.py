"""Servers that are wrong in one way about what goes with an answer: request ids, caching, generations, origins."""

from typing import Final

from tests.people.check.breaking import ANY, Answered, Asked, Breakage, Changed, answering, in_place
from tests.people.check.broken_mcp import saying
from tests.people.check.changes import drop, header

LIST: Final = "/tool/list_categories"
SUGGEST: Final = "/suggest"
ALLOW: Final = b"access-control-allow-origin"


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
)
