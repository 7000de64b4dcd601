"""Servers whose report tools are wrong in one way. What they take wrongly they hand on as something that is taken."""

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from starlette.types import ASGIApp

from tests.people.check.at_all_transports import answering, hearing, rewriting
from tests.people.check.breaking import Answered, Asked, Breakage, Changed, Document

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


def _default(name: str, value: Any) -> Callable[[Document], Document]:  # noqa: ANN401 - any JSON value
    """A field that may be left out."""
    return lambda arguments: {name: value, **arguments}


def _any_reason(arguments: Document) -> Document:
    """A reason of shops is one of codes too."""
    return {**arguments, "reason": "invalid"} if arguments.get("reason") == "unreachable" else arguments


def _three_reasons(answered: Answered) -> None:
    if answered.asked.arguments.get("reason") == "min_order_missing":
        answered.be(400, {"status": 400, "code": "invalid_input"})


def _verdict(document: Document) -> None:
    document["verdict"] = "invalid"


def _thanks(document: Document) -> None:
    document["status"] = "thank you"


def _any_subject(arguments: Document) -> Document:
    """A reason of facts is one of shops too."""
    if arguments.get("subject_type") == "shop" and arguments.get("reason") == "shipping_cost":
        return {**arguments, "reason": "unreachable"}
    return arguments


def _eight_reasons(answered: Answered) -> None:
    if answered.asked.arguments.get("reason") == "evidence_broken":
        answered.be(400, {"status": 400, "code": "invalid_input"})


BREAKAGES: Final = (
    Breakage("I8", "takes a reported code off the list", _hiding_codes),
    Breakage("I36", "takes a comment", hearing(_CODE, _with_comment)),
    Breakage("I37", "queues the same report twice", hearing(_CODE, _counting_each())),
    Breakage("I37", "queues nothing", answering("/api/ops/state", _queueing_nothing)),
    Breakage("I61", "needs no reason", hearing(_CODE, _default("reason", "invalid"))),
    Breakage("I61", "needs no code", hearing(_CODE, _default("code", "ANY"))),
    Breakage("I61", "takes a shop's reason for a code's", hearing(_CODE, _any_reason)),
    Breakage("I61", "knows three reasons", answering(_CODE, _three_reasons)),
    Breakage("I62", "answers with a verdict", rewriting(_CODE, _verdict), also=("I8", "I37")),
    Breakage("I62", "says something else", rewriting(_ISSUE, _thanks), also=("I8",)),
    Breakage("I63", "needs no subject", hearing(_ISSUE, _default("subject_type", "shop"))),
    Breakage("I63", "takes a fact's reason for a shop's", hearing(_ISSUE, _any_subject)),
    Breakage("I63", "knows eight reasons", answering(_ISSUE, _eight_reasons)),
)
