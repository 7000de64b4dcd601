"""Servers whose get_shipping_policy is wrong in one way."""

from collections.abc import Callable
from typing import Any, Final

from tests.people.check.breaking import Answered, Breakage, Document, answering, hearing, rewriting
from tests.people.check.changes import drop, put

_SHIPPING: Final = "/tool/get_shipping_policy"


def _with(name: str, value: Any, *, collected: bool) -> Callable[[Document], None]:  # noqa: ANN401
    """Statements where something or nothing was gathered have this too."""

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


def _as_text(document: Document) -> None:
    document["collected"] = "yes" if document["collected"] else "no"


def _any_country(arguments: Document) -> Document:
    country = str(arguments.get("country", "DE"))
    return arguments if len(country) == 2 else {**arguments, "country": "DE"}


def _not_needed(answered: Answered) -> None:
    if not answered.asked.arguments:
        answered.be(200, {"collected": False})


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
    Breakage("I27", "says collected in a word", rewriting(_SHIPPING, _as_text)),
    Breakage("I27", "reads a gap as a refusal", rewriting(_SHIPPING, _verdict("no", collected=False))),
    Breakage("I28", "ships everywhere", rewriting(_SHIPPING, _verdict("yes", collected=True)), also=("A7",)),
    Breakage("I28", "ships nowhere", rewriting(_SHIPPING, _verdict("no", collected=True)), also=("A7",)),
    Breakage("I28", "has a verdict of its own", rewriting(_SHIPPING, _verdict("maybe", collected=True)), also=("A7",)),
    Breakage("I28", "has a verdict about no country", rewriting(_SHIPPING, put("ships_to", "unknown")), also=("A7",)),
    Breakage("A7", "refuses a territory of a named state", rewriting(_SHIPPING, _no_to_unsettled)),
    Breakage("I59", "takes any word for a country", hearing(_SHIPPING, _any_country)),
    Breakage("I59", "needs no shop", answering(_SHIPPING, _not_needed, 400), also=("I82",)),
)
