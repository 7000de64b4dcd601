"""Servers whose probes, description or operations endpoints are wrong in one way."""

from typing import Final

from tests.people.check.breaking import (
    Answered,
    Asked,
    Breakage,
    Wrap,
    answering,
    asked_otherwise,
    body,
    drop,
    header,
    put,
    rewriting,
    spelling,
    status,
)
from tests.people.check.stage import COMMIT, OPS_KEY

STATE: Final = "/api/ops/state"
RESOURCES: Final = "/metrics/resources"
KEY: Final = b"x-ops-key"
UNAVAILABLE: Final = {"available": False, "reason": None, "live": None, "previous": None}


def _key_given(*paths: str, only_wrong: bool = False) -> Wrap:
    def before(asked: Asked) -> None:
        others = [(name, value) for name, value in asked.headers if name != KEY]
        if asked.path in paths and (not only_wrong or len(others) < len(asked.headers)):
            asked.headers = [*others, (KEY, OPS_KEY.encode())]

    return asked_otherwise(before)


def _not_ready(answered: Answered) -> None:
    answered.be(503, {"code": "not_ready", "status": 503}, b"application/problem+json")


def _no_accounts(text: bytes) -> bytes:
    return b"\n".join(line for line in text.split(b"\n") if b"{" not in line)


BREAKAGES: Final[tuple[Breakage, ...]] = (
    ("I73", "has nothing to say of its health", answering("/health", status(204))),
    ("I73", "is never ready", answering("/ready", _not_ready)),
    ("I74", "shortens the commit", rewriting("/version", put("commit", COMMIT[:7]))),
    ("I74", "sends the time of an unnamed zone", rewriting("/version", put("builtAt", "2026-11-21T09:30:00"))),
    ("I74", "does not say which service it is", rewriting("/version", drop("service"))),
    ("I75", "says something else of an unknown build", answering("/version", _not_ready)),
    (
        "I75",
        "answers nulls for an unknown build",
        rewriting("/version", lambda version: version.update(commit=None, builtAt=None)),
    ),
    ("I76", "counts no shops", rewriting(STATE, put("shops.live.counts", {}))),
    ("I76", "does not say how fresh it is", rewriting(STATE, put("shops.live.built_at", None))),
    ("I76", "sends no flags", rewriting(STATE, put("flags", {}))),
    ("I76", "leaves a consumer out", rewriting(STATE, drop("consumers.follower"))),
    ("I76", "sends no sizes", rewriting(STATE, put("catalogue.sizes", None))),
    ("I76", "is away without a reason", rewriting(STATE, put("shops", UNAVAILABLE))),
    ("I77", "says that it is JSON", answering(RESOURCES, header(b"content-type", b"application/json"))),
    ("I77", "shows no account", answering(RESOURCES, spelling(_no_accounts))),
    ("I77", "is not an exposition", answering(RESOURCES, spelling(lambda text: text + b'broken{provider="\n'))),
    ("I77", "has a line without end", answering(RESOURCES, spelling(lambda text: text + b'a{b="' + b'",a="' * 200000))),
    ("I77", "is empty", answering(RESOURCES, body(b""))),
    ("I81", "does not look at the key", _key_given(STATE, RESOURCES)),
    ("I81", "takes any key", _key_given(STATE, RESOURCES, only_wrong=True)),
    ("I81", "guards one endpoint of the two", _key_given(RESOURCES)),
    ("I84", "is OpenAPI of another version", rewriting("/openapi.json", put("openapi", "3.0.3"))),
    ("I84", "is another version", rewriting("/openapi.json", put("info.version", "0.2.0"))),
    (
        "I85",
        "has a version in a path",
        rewriting("/openapi.json", lambda document: document["paths"].update({"/v1/health": {}})),
    ),
    ("O1", "tells of no optional token", rewriting("/openapi.json", drop("paths./tool/get_shop.post.security"))),
    ("O1", "lists no checks", rewriting("/ready", put("checks", []))),
)
