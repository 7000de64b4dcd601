"""Servers that settle otherwise what the interface leaves open."""

from typing import Final

from tests.people.check.breaking import Answered, Breakage, Document, answering, hearing, rewriting
from tests.people.check.changes import argument, backwards, turn

_FIND: Final = "/tool/find_shop"
_GET: Final = "/tool/get_shop"


def _domains_only(arguments: Document) -> Document:
    reference = str(arguments.get("shop_domain", ""))
    return {**arguments, "shop_domain": "no-shop"} if reference.startswith("https://www.") else arguments


def _first_wins(arguments: Document) -> Document:
    if "shop_domain" in arguments:
        return {name: value for name, value in arguments.items() if name != "shop_id_or_domain"}
    return arguments


def _nothing_found(answered: Answered) -> None:
    document = answered.document
    if "category" in answered.asked.arguments and document["ignored_terms"]:
        document["results"], document["total_count"], document["truncated"] = [], 0, False
        answered.document = document


def _no_link(reference: str) -> str:
    return "no-shop" if reference.startswith("[") else reference


def _no_advice(document: Document) -> None:
    document["detail"] = "There is no such shop."


def _candidates_backwards(document: Document) -> None:
    if "candidates" in document:
        document["candidates"] = document["candidates"][::-1]


def _no_help(document: Document) -> None:
    if document["code"] == "unknown_category":
        document["detail"] = "No shop carries this category. Call list_categories for the slugs that exist."


BREAKAGES: Final = (
    Breakage("R1", "does not know a pasted URL", hearing(_GET, _domains_only)),
    Breakage("R1", "does not know a pasted link", hearing(_GET, argument("shop_domain", str, _no_link))),
    Breakage("R1", "says nothing of parents", rewriting(_GET, _no_advice, 404)),
    Breakage("R1", "takes ids in any case", hearing(_GET, argument("shop_domain", str, str.lower))),
    Breakage(
        "R1.bounds",
        "cuts long references",
        hearing(_GET, argument("shop_domain", str, lambda reference: reference[:2048])),
    ),
    Breakage("R2", "looks at the first field only", hearing(_GET, _first_wins)),
    Breakage(
        "R4", "knows UK", hearing(_FIND, argument("country", str, lambda country: "GB" if country == "UK" else country))
    ),
    Breakage("M6.nothing_left", "finds nothing in a category by an unknown word", answering(_FIND, _nothing_found)),
    Breakage(
        "M8",
        "takes a text for a number",
        hearing(_FIND, argument("limit", str, lambda limit: int(limit) if limit.isdigit() else limit)),
    ),
    Breakage(
        "M8", "cuts long queries", hearing(_FIND, argument("query", str, lambda query: query[:200])), also=("E6",)
    ),
    Breakage(
        "M8",
        "takes any offset below zero for zero",
        hearing(_FIND, argument("offset", int, lambda offset: 0 if offset == -1 else offset)),
    ),
    Breakage(
        "M11",
        "lists small categories first",
        rewriting("/tool/list_categories", turn("results", backwards)),
        also=("M10",),
    ),
    Breakage("M11.other_lists", "lists tested codes last", rewriting("/tool/list_coupons", turn("results", backwards))),
    Breakage("M11.other_lists", "lists signals from behind", rewriting("/tool/get_trust", turn("signals", backwards))),
    Breakage(
        "M11.other_lists", "lists candidates from behind", rewriting("/tool/resolve_conflict", _candidates_backwards)
    ),
    Breakage("A1.offers", "shows one offer", rewriting(_FIND, turn("results.*.offers", lambda offers: offers[:1]))),
    Breakage("E4", "proposes no slug", rewriting(_FIND, _no_help, 400)),
)
