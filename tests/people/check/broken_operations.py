"""Servers whose probes, description or operations endpoints are wrong in one way."""

from collections.abc import Callable
from typing import Final

from tests.people.check.breaking import (
    Answered,
    Asked,
    Breakage,
    Change,
    Wrap,
    answering,
    asked_otherwise,
    body,
    drop,
    header,
    put,
    rewriting,
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


def _text(change: Callable[[bytes], bytes]) -> Change:
    def changed(answered: Answered) -> None:
        answered.body = change(answered.body)

    return changed


def _not_ready(answered: Answered) -> None:
    answered.be(503, {"code": "not_ready", "status": 503}, b"application/problem+json")


def _no_accounts(text: bytes) -> bytes:
    return b"\n".join(line for line in text.split(b"\n") if b"{" not in line)


BREAKAGES: Final = (
    Breakage("I73", "has nothing to say of its health", answering("/health", status(204))),
    Breakage("I73", "is never ready", answering("/ready", _not_ready)),
    Breakage("I74", "shortens the commit", rewriting("/version", put("commit", COMMIT[:7]))),
    Breakage("I74", "sends the time of an unnamed zone", rewriting("/version", put("builtAt", "2026-11-21T09:30:00"))),
    Breakage("I74", "does not say which service it is", rewriting("/version", drop("service"))),
    Breakage("I75", "says something else of an unknown build", answering("/version", _not_ready)),
    Breakage(
        "I75",
        "answers nulls for an unknown build",
        rewriting("/version", lambda version: version.update(commit=None, builtAt=None)),
    ),
    Breakage("I76", "counts no shops", rewriting(STATE, put("shops.live.counts", {}))),
    Breakage("I76", "does not say how fresh it is", rewriting(STATE, put("shops.live.built_at", None))),
    Breakage("I76", "sends no flags", rewriting(STATE, put("flags", {}))),
    Breakage("I76", "leaves a consumer out", rewriting(STATE, drop("consumers.follower"))),
    Breakage("I76", "sends no sizes", rewriting(STATE, put("catalogue.sizes", None))),
    Breakage("I76", "is away without a reason", rewriting(STATE, put("shops", UNAVAILABLE))),
    Breakage("I77", "says that it is JSON", answering(RESOURCES, header(b"content-type", b"application/json"))),
    Breakage("I77", "shows no account", answering(RESOURCES, _text(_no_accounts))),
    Breakage("I77", "is no exposition", answering(RESOURCES, _text(lambda text: text + b'broken{provider="\n'))),
    Breakage(
        "I77", "has a line without end", answering(RESOURCES, _text(lambda text: text + b'a{b="' + b'",a="' * 200000))
    ),
    Breakage("I77", "is empty", answering(RESOURCES, body(b""))),
    Breakage("I81", "does not look at the key", _key_given(STATE, RESOURCES)),
    Breakage("I81", "takes any key", _key_given(STATE, RESOURCES, only_wrong=True)),
    Breakage("I81", "guards one endpoint of the two", _key_given(RESOURCES)),
    Breakage("I84", "is OpenAPI of another version", rewriting("/openapi.json", put("openapi", "3.0.3"))),
    Breakage("I84", "is another version", rewriting("/openapi.json", put("info.version", "0.2.0"))),
    Breakage(
        "I85",
        "has a version in a path",
        rewriting("/openapi.json", lambda document: document["paths"].update({"/v1/health": {}})),
    ),
    Breakage(
        "O1", "tells of no optional token", rewriting("/openapi.json", drop("paths./tool/get_shop.post.security"))
    ),
    Breakage("O1", "lists no checks", rewriting("/ready", put("checks", []))),
)
