"""Servers that are wrong about coupons, reports, shipping, policies or trust.

A report that is taken wrongly goes on as another one.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from starlette.types import ASGIApp

from tests.people.check.breaking import (
    Answered,
    Asked,
    Breakage,
    Change,
    Changed,
    Document,
    answering,
    argument,
    asking,
    default,
    drop,
    hearing,
    in_place,
    more,
    objects,
    put,
    rewriting,
    turn,
    without,
)
from tests.people.check.broken_shops import HIDDEN, REPORTS_REVIEW

_COUPONS: Final = "/tool/list_coupons"
_CODE: Final = "/tool/report_code"
_ISSUE: Final = "/tool/report_issue"


def _without_ends(document: Document) -> None:
    for coupon in document["results"]:
        if coupon["validUntil"] is None:
            del coupon["validUntil"]


def _no_note_for_nothing(document: Document) -> None:
    if not document["results"]:
        document["note"] = ""


def _free_shipping(**fields: Any) -> Callable[[Document], None]:  # noqa: ANN401 - any JSON value
    def change(document: Document) -> None:
        for coupon in document["results"]:
            if coupon["discount"] and coupon["discount"]["kind"] == "free_shipping":
                coupon.update(fields)

    return change


def _empty_for_unknown(answered: Answered) -> None:
    withheld = {"expired": 0, "verified_rejected": 0, "reserved_test_domain": 0, "policy": 0}
    answered.be(200, {"results": [], "total_count": 0, "withheld": withheld, "note": "0 codes found."})


def _one_less(answered: Answered) -> None:
    """A code that the list of all shops shows is withheld when its shop is asked for."""
    document = answered.document
    if answered.asked.arguments:
        answered.document = {**document, "results": document["results"][1:]}


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
    numbers = count()

    def change(arguments: Document) -> Document:
        code = str(arguments.get("code", ""))
        return {**arguments, "code": f"{code}-{next(numbers)}"} if code.startswith("CHECK-") else arguments

    return change


def _refusing(reason: str) -> Change:
    return asking("reason", reason, lambda answered: answered.be(400, {"status": 400, "code": "invalid_input"}))


def _any_subject(arguments: Document) -> Document:
    if arguments.get("subject_type") == "shop" and arguments.get("reason") == "shipping_cost":
        return {**arguments, "reason": "unreachable"}
    return arguments


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


def _undescribed(document: Document) -> None:
    for one in objects(document["paths"][_TRUST]):
        if isinstance(one.get("description"), str):
            one["description"] = "Something."


def _not_found(answered: Answered) -> None:
    if not answered.document["signals"] and answered.asked.arguments.get("shop_domain", "").startswith("none"):
        answered.be(404, {"status": 404, "code": "shop_not_found"})


BREAKAGES: Final[tuple[Breakage, ...]] = (
    ("I16", "says in a word when a code ends", rewriting(_COUPONS, put("results.*.validUntil", "tomorrow"))),
    ("I16", "leaves out an end that there is not", rewriting(_COUPONS, _without_ends)),
    ("I17", "has tested nothing that it calls verified", rewriting(_COUPONS, put("results.*.lastVerifiedAt", None))),
    ("I17", "has tested in the future", rewriting(_COUPONS, put("results.*.lastVerifiedAt", "2199-01-01T00:00:00Z"))),
    ("I18", "does not count what a policy withholds", rewriting(_COUPONS, drop("withheld.policy"))),
    ("I18", "counts in text", rewriting(_COUPONS, turn("withheld.expired", str))),
    ("I19", "states no numbers", rewriting(_COUPONS, put("note", "Some codes were found."))),
    ("I19", "has no note for an empty list", rewriting(_COUPONS, _no_note_for_nothing)),
    ("I20", "does not count expired codes", rewriting(_COUPONS, put("withheld.expired", 0))),
    ("I39", "shows a proof", rewriting(_COUPONS, put("results.*.proofUrl", "https://proofs.example/1.png"))),
    ("I39", "has a status of its own", rewriting(_COUPONS, put("results.*.verificationStatus", "probably_fine"))),
    ("I40", "shows a rejected code", rewriting(_COUPONS, _free_shipping(verificationStatus="verified_rejected"))),
    ("I41", "shows an expired code", rewriting(_COUPONS, _free_shipping(validUntil="2001-01-01T00:00:00Z"))),
    (
        "I41",
        "shows a code of a reserved domain",
        rewriting(_COUPONS, _free_shipping(shop={"id": "shop_t", "domain": "t.test", "name": "T"})),
    ),
    ("I56", "needs a shop", answering(_COUPONS, lambda answered: answered.be(400, {"code": "invalid_input"}))),
    ("I56", "withholds a code when its shop is asked for", answering(_COUPONS, _one_less)),
    ("I57", "gives an empty list for an unknown shop", answering(_COUPONS, _empty_for_unknown, 404)),
    ("I57", "says that a shop is under review", answering(_COUPONS, REPORTS_REVIEW, 404)),
    ("I8", "takes a reported code off the list", _hiding_codes),
    ("I36", "takes a comment", hearing(_CODE, without("comment"))),
    ("I37", "queues the same report twice", hearing(_CODE, _counting_each())),
    ("I37", "queues nothing", rewriting("/api/ops/state", put("consumers.rechecks.depth", 0))),
    ("I61", "needs no reason", hearing(_CODE, default("reason", "invalid"))),
    ("I61", "needs no code", hearing(_CODE, default("code", "ANY"))),
    (
        "I61",
        "takes a shop's reason for a code's",
        hearing(_CODE, argument("reason", str, lambda reason: reason.replace("unreachable", "invalid"))),
    ),
    ("I61", "knows three reasons", answering(_CODE, _refusing("min_order_missing"))),
    ("I62", "answers with a verdict", rewriting(_CODE, put("verdict", "invalid"))),
    ("I62", "says something else", rewriting(_ISSUE, put("status", "thank you"))),
    ("I63", "needs no subject", hearing(_ISSUE, default("subject_type", "shop"))),
    ("I63", "takes a fact's reason for a shop's", hearing(_ISSUE, _any_subject)),
    ("I63", "knows eight reasons", answering(_ISSUE, _refusing("evidence_broken"))),
    ("I7", "makes up a delivery time", rewriting(_SHIPPING, _with("delivery_time", {"min_days": 3}, collected=False))),
    ("I7", "makes up a destination", rewriting(_SHIPPING, _with("destinations", ["DE"], collected=False))),
    ("I25", "names a carrier", rewriting(_SHIPPING, _with("carrier", "Snail", collected=True))),
    ("I25", "names a price", rewriting(_SHIPPING, _with("shipping_price", {"amount": "3.90"}, collected=True))),
    ("I25", "knows no threshold", rewriting(_SHIPPING, drop("free_shipping_threshold"))),
    ("I26", "says in a word when it looked", rewriting(_SHIPPING, _with("checked_at", "lately", collected=True))),
    ("I26", "has a source of its own", rewriting(_SHIPPING, _with("source", "hearsay", collected=True))),
    ("I27", "says collected in a word", rewriting(_SHIPPING, turn("collected", str))),
    ("I27", "reads a gap as a refusal", rewriting(_SHIPPING, _verdict("no", collected=False))),
    ("I28", "ships everywhere", rewriting(_SHIPPING, _verdict("yes", collected=True))),
    ("I28", "ships nowhere", rewriting(_SHIPPING, _verdict("no", collected=True))),
    ("I28", "has a verdict of its own", rewriting(_SHIPPING, _verdict("maybe", collected=True))),
    ("I28", "has a verdict about no country", rewriting(_SHIPPING, put("ships_to", "unknown"))),
    ("A7", "refuses a territory of a named state", rewriting(_SHIPPING, _no_to_unsettled)),
    ("I59", "takes any word for a country", hearing(_SHIPPING, argument("country", str, lambda _: "DE"))),
    ("I59", "needs no shop", answering(_SHIPPING, lambda answered: answered.be(200, {"collected": False}), 400)),
    ("F8", "does not say where it was read", rewriting(_POLICIES, drop("returns.source"))),
    ("F8", "fills in fees", rewriting(_POLICIES, put("returns.fees", "free by law"))),
    ("F8", "has a shipping of its own", rewriting(_POLICIES, put("shipping.collected", "maybe"))),
    ("F8", "says that a shop is under review", answering(_POLICIES, REPORTS_REVIEW, 404)),
    (
        "I29",
        "has a kind of its own",
        rewriting(_TRUST, turn("signals.*.kind", lambda kind: "customer_opinion" if kind == "registrar" else kind)),
    ),
    ("I29", "delivers a signal twice", rewriting(_TRUST, turn("signals", lambda signals: signals + signals[:1]))),
    ("I30", "has null for a source", rewriting(_TRUST, put("signals.*.source", None))),
    ("I30", "does not say when it looked", rewriting(_TRUST, drop("signals.*.checked_at"))),
    ("I31", "has a score", rewriting(_TRUST, put("trust_score", "high"))),
    ("I31", "has stars", rewriting(_TRUST, put("signals.*.stars", "four"))),
    ("I31", "has a share", rewriting(_TRUST, put("signal_coverage.completeness", 0.71))),
    ("I32", "never says that nothing was measured", rewriting(_TRUST, put("status", "signals_collected"))),
    ("I33", "counts one too many", rewriting(_TRUST, turn("signal_coverage.present", more))),
    ("I33", "knows six kinds", rewriting(_TRUST, put("signal_coverage.total", 6))),
    ("I34", "has a reason of its own", rewriting(_TRUST, put("signal_coverage.missing.*.reason", "shop_refused"))),
    ("I34", "does not say what is missing", rewriting(_TRUST, put("signal_coverage.missing", []))),
    ("I35", "does not say what the coverage is for", rewriting(_OPENAPI, _undescribed)),
    (
        "I60",
        "is different for a shop under review",
        answering(
            _TRUST, asking("shop_domain", HIDDEN, in_place(put("signal_coverage.missing.0.reason", "pipeline_gap")))
        ),
    ),
    ("I60", "says that a shop is unknown", answering(_TRUST, _not_found)),
)
