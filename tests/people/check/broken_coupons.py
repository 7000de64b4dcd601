"""Servers whose list_coupons is wrong in one way."""

from collections.abc import Callable
from typing import Any, Final

from tests.people.check.breaking import Answered, Breakage, Document, answering, rewriting
from tests.people.check.broken_shops import reports_review
from tests.people.check.changes import drop, put, turn

_COUPONS: Final = "/tool/list_coupons"


def _without_ends(document: Document) -> None:
    for coupon in document["results"]:
        if coupon["validUntil"] is None:
            del coupon["validUntil"]


def _no_note_for_nothing(document: Document) -> None:
    if not document["results"]:
        document["note"] = ""


def _forgets_expired(document: Document) -> None:
    """The balance without those that have expired; the sentence says the same."""
    was = document["withheld"]["expired"]
    document["note"] = document["note"].replace(f"{was} expired", "0 expired")
    document["withheld"]["expired"] = 0


def _free_shipping(**fields: Any) -> Callable[[Document], None]:  # noqa: ANN401 - any JSON value
    """Coupons of free shipping have this, wherever they are listed."""

    def change(document: Document) -> None:
        for coupon in document["results"]:
            if coupon["discount"] and coupon["discount"]["kind"] == "free_shipping":
                coupon.update(fields)

    return change


def _state_numbers(document: Document) -> None:
    numbers = (document["total_count"], len(document["results"]), *document["withheld"].values())
    document["note"] = f"These are the numbers: {', '.join(str(number) for number in numbers)}."


def _empty_for_unknown(answered: Answered) -> None:
    withheld = {"expired": 0, "verified_rejected": 0, "reserved_test_domain": 0, "policy": 0}
    answered.be(200, {"results": [], "total_count": 0, "withheld": withheld, "note": "0 codes found."})


def _needs_a_shop(answered: Answered) -> None:
    if not answered.asked.arguments:
        answered.be(400, {"status": 400, "code": "invalid_input"})


def _one_less(answered: Answered) -> None:
    """A code that the list of all shops shows is withheld when its shop is asked for."""
    document = answered.document
    if answered.asked.arguments and document["results"]:
        document["results"].pop()
        document["withheld"]["policy"] += 1
        _state_numbers(document)
        answered.document = document


BREAKAGES: Final = (
    Breakage(
        "I16",
        "says in a word when a code ends",
        rewriting(_COUPONS, put("results.*.validUntil", "tomorrow")),
        also=("I41",),
    ),
    Breakage("I16", "leaves out an end that there is not", rewriting(_COUPONS, _without_ends), also=("I41",)),
    Breakage(
        "I17", "has tested nothing that it calls verified", rewriting(_COUPONS, put("results.*.lastVerifiedAt", None))
    ),
    Breakage(
        "I17", "has tested in the future", rewriting(_COUPONS, put("results.*.lastVerifiedAt", "2199-01-01T00:00:00Z"))
    ),
    Breakage(
        "I18",
        "does not count what a policy withholds",
        rewriting(_COUPONS, drop("withheld.policy")),
        also=("I19", "I20"),
    ),
    Breakage("I18", "counts in text", rewriting(_COUPONS, turn("withheld.expired", str)), also=("I19", "I20", "I41")),
    Breakage("I19", "states no numbers", rewriting(_COUPONS, put("note", "Some codes were found."))),
    Breakage("I19", "has no note for an empty list", rewriting(_COUPONS, _no_note_for_nothing)),
    Breakage("I20", "does not count expired codes", rewriting(_COUPONS, _forgets_expired)),
    Breakage("I39", "shows a proof", rewriting(_COUPONS, put("results.*.proofUrl", "https://proofs.example/1.png"))),
    Breakage(
        "I39", "has a status of its own", rewriting(_COUPONS, put("results.*.verificationStatus", "probably_fine"))
    ),
    Breakage(
        "I40",
        "shows a rejected code",
        rewriting(_COUPONS, _free_shipping(verificationStatus="verified_rejected")),
        also=("I39",),
    ),
    Breakage("I41", "shows an expired code", rewriting(_COUPONS, _free_shipping(validUntil="2001-01-01T00:00:00Z"))),
    Breakage(
        "I41",
        "shows a code of a reserved domain",
        rewriting(_COUPONS, _free_shipping(shop={"id": "shop_t", "domain": "t.test", "name": "T"})),
    ),
    Breakage("I56", "needs a shop", answering(_COUPONS, _needs_a_shop)),
    Breakage("I56", "withholds a code when its shop is asked for", answering(_COUPONS, _one_less)),
    Breakage(
        "I57", "gives an empty list for an unknown shop", answering(_COUPONS, _empty_for_unknown, 404), also=("I83",)
    ),
    Breakage("I57", "says that a shop is under review", answering(_COUPONS, reports_review, 404), also=("I6", "V2")),
)
