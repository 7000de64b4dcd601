"""Servers whose report tools are wrong in one way. What they take wrongly they hand on as something that is taken."""

from collections.abc import Callable
from itertools import count
from typing import Final

from starlette.types import ASGIApp

from tests.people.check.breaking import Answered, Asked, Breakage, Changed, Document, answering, hearing, rewriting
from tests.people.check.changes import default, put

_CODE: Final = "/tool/report_code"
_ISSUE: Final = "/tool/report_issue"


def _hiding_codes(app: ASGIApp) -> ASGIApp:
    """A server on which a reported code is gone immediately; each run is against a new one."""
    reported: set[str] = set()

    def before(asked: Asked) -> None:
        if asked.path == _CODE:
            reported.add(asked.arguments.get("code", ""))

    def after(answered: Answered) -> None:
        if answered.asked.path == "/tool/list_coupons" and answered.status == 200:
            document = answered.document
            document["results"] = [coupon for coupon in document["results"] if coupon["code"] not in reported]
            answered.document = document

    return Changed(app, before, after)


def _counting_each() -> Callable[[Document], Document]:
    """A server for which no two reports are the same."""
    numbers = count()

    def change(arguments: Document) -> Document:
        code = str(arguments.get("code", ""))
        return {**arguments, "code": f"{code}-{next(numbers)}"} if code.startswith("CHECK-") else arguments

    return change


def _queueing_nothing(answered: Answered) -> None:
    if "consumers" in answered.document:
        document = answered.document
        document["consumers"]["rechecks"]["depth"] = 0
        answered.document = document


def _with_comment(arguments: Document) -> Document:
    return {name: value for name, value in arguments.items() if name != "comment"}


def _any_reason(arguments: Document) -> Document:
    """A reason of shops is one of codes too."""
    return {**arguments, "reason": "invalid"} if arguments.get("reason") == "unreachable" else arguments


def _refusing(reason: str) -> Callable[[Answered], None]:
    """A reason that is not known."""

    def change(answered: Answered) -> None:
        if answered.asked.arguments.get("reason") == reason:
            answered.be(400, {"status": 400, "code": "invalid_input"})

    return change


def _any_subject(arguments: Document) -> Document:
    """A reason of facts is one of shops too."""
    if arguments.get("subject_type") == "shop" and arguments.get("reason") == "shipping_cost":
        return {**arguments, "reason": "unreachable"}
    return arguments


BREAKAGES: Final = (
    Breakage("I8", "takes a reported code off the list", _hiding_codes),
    Breakage("I36", "takes a comment", hearing(_CODE, _with_comment)),
    Breakage("I37", "queues the same report twice", hearing(_CODE, _counting_each())),
    Breakage("I37", "queues nothing", answering("/api/ops/state", _queueing_nothing)),
    Breakage("I61", "needs no reason", hearing(_CODE, default("reason", "invalid"))),
    Breakage("I61", "needs no code", hearing(_CODE, default("code", "ANY"))),
    Breakage("I61", "takes a shop's reason for a code's", hearing(_CODE, _any_reason)),
    Breakage("I61", "knows three reasons", answering(_CODE, _refusing("min_order_missing"))),
    Breakage("I62", "answers with a verdict", rewriting(_CODE, put("verdict", "invalid")), also=("I8", "I37")),
    Breakage("I62", "says something else", rewriting(_ISSUE, put("status", "thank you")), also=("I8",)),
    Breakage("I63", "needs no subject", hearing(_ISSUE, default("subject_type", "shop"))),
    Breakage("I63", "takes a fact's reason for a shop's", hearing(_ISSUE, _any_subject)),
    Breakage("I63", "knows eight reasons", answering(_ISSUE, _refusing("evidence_broken"))),
)
