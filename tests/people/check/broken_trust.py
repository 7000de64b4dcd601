"""Servers whose get_trust is wrong in one way."""

from collections.abc import Callable
from typing import Any, Final

from tests.people.check.at_all_transports import answering, rewriting
from tests.people.check.breaking import Answered, Breakage, Document

_TRUST: Final = "/tool/get_trust"
_OPENAPI: Final = "/openapi.json"
_HIDDEN: Final = "quillomere.internal"


def _with(name: str, value: Any) -> Callable[[Document], None]:  # noqa: ANN401 - any JSON value
    def change(document: Document) -> None:
        document[name] = value

    return change


def _another_kind(document: Document) -> None:
    for signal in document["signals"]:
        if signal["kind"] == "registrar":
            signal["kind"] = "customer_opinion"


def _twice(document: Document) -> None:
    document["signals"] += document["signals"][:1]


def _without_source(document: Document) -> None:
    for signal in document["signals"]:
        signal["source"] = None


def _without_time(document: Document) -> None:
    for signal in document["signals"]:
        del signal["checked_at"]


def _graded(document: Document) -> None:
    for signal in document["signals"]:
        signal["stars"] = "four"


def _as_percentage(document: Document) -> None:
    document["signal_coverage"]["completeness"] = 0.71


def _never_nothing(document: Document) -> None:
    document["status"] = "signals_collected"


def _counts_wrong(document: Document) -> None:
    document["signal_coverage"]["present"] += 1


def _of_six(document: Document) -> None:
    document["signal_coverage"]["total"] = 6


def _another_reason(document: Document) -> None:
    for gap in document["signal_coverage"]["missing"]:
        gap["reason"] = "shop_refused"


def _nothing_missing(document: Document) -> None:
    document["signal_coverage"]["missing"] = []


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
    if answered.asked.arguments.get("shop_domain") == _HIDDEN:
        document = answered.document
        document["signal_coverage"]["missing"][0]["reason"] = "pipeline_gap"
        answered.document = document


def _not_found(answered: Answered) -> None:
    if not answered.document["signals"] and answered.asked.arguments.get("shop_domain", "").startswith("none"):
        answered.be(404, {"status": 404, "code": "shop_not_found"})


BREAKAGES: Final = (
    Breakage("I29", "has a kind of its own", rewriting(_TRUST, _another_kind), also=("I34",)),
    Breakage("I29", "delivers a signal twice", rewriting(_TRUST, _twice), also=("I33", "I34", "M11.other_lists")),
    Breakage("I30", "has null for a source", rewriting(_TRUST, _without_source)),
    Breakage("I30", "does not say when it looked", rewriting(_TRUST, _without_time)),
    Breakage("I31", "has a score", rewriting(_TRUST, _with("trust_score", "high"))),
    Breakage("I31", "has stars", rewriting(_TRUST, _graded)),
    Breakage("I31", "has a share", rewriting(_TRUST, _as_percentage)),
    Breakage("I32", "never says that nothing was measured", rewriting(_TRUST, _never_nothing)),
    Breakage("I33", "counts one too many", rewriting(_TRUST, _counts_wrong)),
    Breakage("I33", "knows six kinds", rewriting(_TRUST, _of_six)),
    Breakage("I34", "has a reason of its own", rewriting(_TRUST, _another_reason)),
    Breakage("I34", "does not say what is missing", rewriting(_TRUST, _nothing_missing)),
    Breakage("I35", "does not say what the coverage is for", rewriting(_OPENAPI, _undescribed)),
    Breakage("I60", "is different for a shop under review", answering(_TRUST, _reports_review), also=("I6", "V2")),
    Breakage("I60", "says that a shop is unknown", answering(_TRUST, _not_found), also=("I6", "I32", "V2")),
)
