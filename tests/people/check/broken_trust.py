"""Servers whose get_trust is wrong in one way."""

from typing import Final

from tests.people.check.breaking import Answered, Breakage, Document, answering, rewriting
from tests.people.check.changes import drop, more, put, turn
from tests.people.check.stage import UNDER_REVIEW

_TRUST: Final = "/tool/get_trust"
_OPENAPI: Final = "/openapi.json"


def _another_kind(document: Document) -> None:
    for signal in document["signals"]:
        if signal["kind"] == "registrar":
            signal["kind"] = "customer_opinion"


def _twice(document: Document) -> None:
    document["signals"] += document["signals"][:1]


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
    Breakage("I29", "has a kind of its own", rewriting(_TRUST, _another_kind), also=("I34",)),
    Breakage("I29", "delivers a signal twice", rewriting(_TRUST, _twice), also=("I33", "I34", "M11.other_lists")),
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
    Breakage("I60", "is different for a shop under review", answering(_TRUST, _reports_review), also=("I6", "V2")),
    Breakage("I60", "says that a shop is unknown", answering(_TRUST, _not_found), also=("I6", "I32", "V2")),
)
