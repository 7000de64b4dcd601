"""Servers whose get_shipping_policy, get_shop_policies or get_trust is wrong in one way."""

from collections.abc import Callable
from typing import Any, Final

from tests.people.check.breaking import (
    Answered,
    Breakage,
    Document,
    answering,
    argument,
    drop,
    hearing,
    more,
    put,
    rewriting,
    turn,
)
from tests.people.check.broken_shops import reports_review
from tests.people.check.stage import UNDER_REVIEW

_SHIPPING: Final = "/tool/get_shipping_policy"
_POLICIES: Final = "/tool/get_shop_policies"
_TRUST: Final = "/tool/get_trust"
_OPENAPI: Final = "/openapi.json"


def _with(name: str, value: Any, *, collected: bool) -> Callable[[Document], None]:  # noqa: ANN401
    def change(document: Document) -> None:
        if document["collected"] is collected:
            document[name] = value

    return change


def _verdict(ships_to: str, *, collected: bool) -> Callable[[Document], None]:
    """Where something or nothing was gathered, this is what is said of any country."""

    def change(document: Document) -> None:
        if document["collected"] is collected and "ships_to" in document:
            document["ships_to"] = ships_to

    return change


def _no_to_unsettled(document: Document) -> None:
    if document["destinations_exhaustive"] and document.get("ships_to") == "unknown":
        document["ships_to"] = "no"


def _of_returns(change: Callable[[Document], None]) -> Callable[[Document], None]:
    """A change of the statement about returns, where there is one."""
    return lambda document: None if document["returns"] is None else change(document["returns"])


def _another_kind(document: Document) -> None:
    for signal in document["signals"]:
        if signal["kind"] == "registrar":
            signal["kind"] = "customer_opinion"


def _undescribed(document: Document) -> None:
    waiting: list[object] = [document["paths"][_TRUST]]
    while waiting:
        match waiting.pop():
            case dict() as found:
                if isinstance(found.get("description"), str):
                    found["description"] = "Something."
                waiting += found.values()
            case list() as found:
                waiting += found


def _reports_review(answered: Answered) -> None:
    if answered.asked.arguments.get("shop_domain") == UNDER_REVIEW[0]:
        document = answered.document
        document["signal_coverage"]["missing"][0]["reason"] = "pipeline_gap"
        answered.document = document


def _not_found(answered: Answered) -> None:
    if not answered.document["signals"] and answered.asked.arguments.get("shop_domain", "").startswith("none"):
        answered.be(404, {"status": 404, "code": "shop_not_found"})


BREAKAGES: Final = (
    Breakage(
        "I7", "makes up a delivery time", rewriting(_SHIPPING, _with("delivery_time", {"min_days": 3}, collected=False))
    ),
    Breakage("I7", "makes up a destination", rewriting(_SHIPPING, _with("destinations", ["DE"], collected=False))),
    Breakage("I25", "names a carrier", rewriting(_SHIPPING, _with("carrier", "Snail", collected=True))),
    Breakage("I25", "names a price", rewriting(_SHIPPING, _with("shipping_price", {"amount": "3.90"}, collected=True))),
    Breakage("I25", "knows no threshold", rewriting(_SHIPPING, drop("free_shipping_threshold"))),
    Breakage(
        "I26", "says in a word when it looked", rewriting(_SHIPPING, _with("checked_at", "lately", collected=True))
    ),
    Breakage("I26", "has a source of its own", rewriting(_SHIPPING, _with("source", "hearsay", collected=True))),
    Breakage("I27", "says collected in a word", rewriting(_SHIPPING, turn("collected", str))),
    Breakage("I27", "reads a gap as a refusal", rewriting(_SHIPPING, _verdict("no", collected=False))),
    Breakage("I28", "ships everywhere", rewriting(_SHIPPING, _verdict("yes", collected=True))),
    Breakage("I28", "ships nowhere", rewriting(_SHIPPING, _verdict("no", collected=True))),
    Breakage("I28", "has a verdict of its own", rewriting(_SHIPPING, _verdict("maybe", collected=True))),
    Breakage("I28", "has a verdict about no country", rewriting(_SHIPPING, put("ships_to", "unknown"))),
    Breakage("A7", "refuses a territory of a named state", rewriting(_SHIPPING, _no_to_unsettled)),
    Breakage("I59", "takes any word for a country", hearing(_SHIPPING, argument("country", str, lambda _: "DE"))),
    Breakage(
        "I59", "needs no shop", answering(_SHIPPING, lambda answered: answered.be(200, {"collected": False}), 400)
    ),
    Breakage("F8", "does not say where it was read", rewriting(_POLICIES, _of_returns(drop("source")))),
    Breakage("F8", "fills in fees", rewriting(_POLICIES, _of_returns(put("fees", "free by law")))),
    Breakage("F8", "has a shipping of its own", rewriting(_POLICIES, put("shipping.collected", "maybe"))),
    Breakage("F8", "says that a shop is under review", answering(_POLICIES, reports_review, 404)),
    Breakage("I29", "has a kind of its own", rewriting(_TRUST, _another_kind)),
    Breakage(
        "I29", "delivers a signal twice", rewriting(_TRUST, turn("signals", lambda signals: signals + signals[:1]))
    ),
    Breakage("I30", "has null for a source", rewriting(_TRUST, put("signals.*.source", None))),
    Breakage("I30", "does not say when it looked", rewriting(_TRUST, drop("signals.*.checked_at"))),
    Breakage("I31", "has a score", rewriting(_TRUST, put("trust_score", "high"))),
    Breakage("I31", "has stars", rewriting(_TRUST, put("signals.*.stars", "four"))),
    Breakage("I31", "has a share", rewriting(_TRUST, put("signal_coverage.completeness", 0.71))),
    Breakage("I32", "never says that nothing was measured", rewriting(_TRUST, put("status", "signals_collected"))),
    Breakage("I33", "counts one too many", rewriting(_TRUST, turn("signal_coverage.present", more))),
    Breakage("I33", "knows six kinds", rewriting(_TRUST, put("signal_coverage.total", 6))),
    Breakage(
        "I34", "has a reason of its own", rewriting(_TRUST, put("signal_coverage.missing.*.reason", "shop_refused"))
    ),
    Breakage("I34", "does not say what is missing", rewriting(_TRUST, put("signal_coverage.missing", []))),
    Breakage("I35", "does not say what the coverage is for", rewriting(_OPENAPI, _undescribed)),
    Breakage("I60", "is different for a shop under review", answering(_TRUST, _reports_review)),
    Breakage("I60", "says that a shop is unknown", answering(_TRUST, _not_found)),
)
