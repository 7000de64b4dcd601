"""Servers that are wrong about offers or the audit of a merge."""

from typing import Final

from starlette.types import ASGIApp

from tests.people.check.breaking import (
    Answered,
    Breakage,
    Changed,
    Document,
    answering,
    argument,
    hearing,
    put,
    rewriting,
)

_RESOLVE: Final = "/tool/resolve_checkout_url"
_MONETIZE: Final = "/tool/monetize_offer"
_CONFLICT: Final = "/tool/resolve_conflict"


def _without_candidates(document: Document) -> None:
    document.pop("candidates", None)


def _merging(app: ASGIApp) -> ASGIApp:
    audited: set[str] = set()

    def after(answered: Answered) -> None:
        arguments = answered.asked.arguments
        if answered.asked.path == _CONFLICT and answered.status == 200:
            audited.add(answered.document["from"]["domain"])
        if answered.asked.path == "/tool/get_shop" and arguments.get("shop_domain") in audited:
            answered.document = {**answered.document, "name": "Merged"}

    return Changed(app, after=after)


BREAKAGES: Final = (
    Breakage("I38", "numbers its offers", rewriting("/tool/find_shop", put("results.*.offers.*.offer_id", 17))),
    Breakage("I64", "names no programme", rewriting(_MONETIZE, put("monetization", None))),
    Breakage(
        "I64",
        "goes through the network although it should not",
        hearing(_MONETIZE, argument("affiliate", bool, lambda _: True)),
    ),
    Breakage(
        "I64", "takes a word for a boolean", hearing(_MONETIZE, argument("affiliate", str, lambda word: word == "yes"))
    ),
    Breakage("I65", "leads to http", rewriting(_RESOLVE, put("checkout_url", "http://lumen-larch.internal/cart"))),
    Breakage("I65", "leads to a number", rewriting(_RESOLVE, put("checkout_url", "https://192.0.2.7/cart"))),
    Breakage(
        "I65", "leads by credentials", rewriting(_RESOLVE, put("checkout_url", "https://shop@elsewhere.example/cart"))
    ),
    Breakage(
        "I65", "takes a word for a boolean", hearing(_RESOLVE, argument("affiliate", str, lambda word: word == "yes"))
    ),
    Breakage("I66", "has a verdict of its own", rewriting(_CONFLICT, put("verdict", "merged"))),
    Breakage("I66", "looks for no candidates", rewriting(_CONFLICT, _without_candidates)),
    Breakage("I66", "merges", _merging),
    Breakage(
        "I66",
        "knows every shop",
        answering(_CONFLICT, lambda answered: answered.be(200, {"from": {}, "candidates": []}), 404),
    ),
)
