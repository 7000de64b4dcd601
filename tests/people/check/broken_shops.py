"""Servers that are wrong about shops, references, categories, offers or merges, or show a shop under review."""

from typing import Any, Final

from starlette.types import ASGIApp

from tests.people.check.breaking import (
    Answered,
    Breakage,
    Change,
    Changed,
    Document,
    Wrap,
    answering,
    argument,
    drop,
    header,
    hearing,
    in_place,
    more,
    put,
    rewriting,
    turn,
    where,
)
from tests.people.check.broken_mcp import in_text
from tests.people.check.stage import UNDER_REVIEW

_FIND: Final = "/tool/find_shop"
_GET: Final = "/tool/get_shop"
_GET_MANY: Final = "/tool/get_shops"
_CATEGORIES: Final = "/tool/list_categories"
_HIDDEN_SHOP: Final[dict[str, Any]] = {
    "id": UNDER_REVIEW[1],
    "name": "Quillomere",
    "aliases": [],
    "domain": UNDER_REVIEW[0],
    "category": "books",
    "categories": ["books"],
    "countries": None,
    "offers": [],
    "offers_total": 0,
}
HIDDEN: Final = UNDER_REVIEW[0]


def _shows_hidden(answered: Answered) -> None:
    if answered.asked.arguments.get("query") == UNDER_REVIEW[0]:
        answered.document = {**answered.document, "results": [_HIDDEN_SHOP], "total_count": 1}


def _lists_of_unknown(document: Document) -> None:
    for entry in document.get("shops", ()):
        entry["coupons"] = entry["coupons"] or {"results": [], "total_count": 0}


def reports_review(answered: Answered) -> None:
    if answered.asked.arguments.get("shop_domain") == UNDER_REVIEW[0]:
        answered.document = {**answered.document, "detail": "This shop is under review."}


def _echoes(answered: Answered) -> None:
    detail = f"There is no shop {answered.asked.arguments.get('shop_domain')}."
    answered.document = {**answered.document, "detail": detail}


def _without_empty_offers(document: Document) -> None:
    for shop in document["results"]:
        if not shop["offers"]:
            del shop["offers"]


def _by_domain_only(answered: Answered) -> None:
    if answered.asked.arguments.get("shop_domain", "").startswith("shop_"):
        answered.be(404, {"status": 404, "code": "shop_not_found"})


def _without_the_largest(document: Document) -> None:
    del document["results"][0]
    document["total_count"] -= 1


def _primary_only(answered: Answered) -> None:
    document, slug = answered.document, answered.asked.arguments.get("category")
    document["results"] = [shop for shop in document["results"] if slug in {None, shop["category"]}]
    answered.document = document


def _refuses_a_slug(answered: Answered) -> None:
    if answered.asked.arguments.get("category") == "music":
        answered.be(400, {"status": 400, "code": "unknown_category"})


def of_hidden(path: str, change: Change, *, having: str = "") -> Wrap:
    """A server that changes its answers to requests that name a shop under review."""

    def is_meant(answered: Answered) -> bool:
        asked = answered.asked.body.decode("utf-8", "replace") + answered.asked.query.decode()
        return answered.asked.path == path and HIDDEN in asked and having in asked

    return where(is_meant, change)


def _a_header(answered: Answered) -> None:
    answered.headers.append((b"x-cache", b"hit"))


def _other_words(answered: Answered) -> None:
    answered.body = answered.body.replace(b"directory", b"public directory")


def _a_byte(answered: Answered) -> None:
    answered.body += b"\n"


def _taken(answered: Answered) -> None:
    answered.be(200, {"status": "wird gemeldet, Pruefung laeuft"})


def _suggested(answer: Document) -> None:
    answer["shops"].append({"id": "shop_x", "name": "X", "domain": HIDDEN, "category": "books", "score": 0.0})


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


BREAKAGES: Final[tuple[Breakage, ...]] = (
    ("I6", "finds a shop under review", answering(_FIND, _shows_hidden)),
    ("I6", "says that a shop is under review", answering("/tool/get_shipping_policy", reports_review, 404)),
    ("I9", "has a number for an id", rewriting(_GET, put("id", 17))),
    ("I9", "leaves the category out", rewriting(_FIND, drop("results.*.category"))),
    ("I10", "knows domains only", answering(_GET, _by_domain_only)),
    ("I11", "has null for no offers", rewriting(_GET, turn("offers", lambda offers: offers or None))),
    ("I11", "leaves empty offers out", rewriting(_FIND, _without_empty_offers)),
    ("F21", "has a logo without protection", rewriting(_GET, put("logo_url", "http://a.internal/a.png"))),
    ("F21", "has null for no logo", rewriting(_FIND, put("results.*.logo_url", None))),
    ("I12", "has parents", rewriting(_CATEGORIES, put("results.*.parent", None))),
    ("I14", "looks at the primary category only", answering(_FIND, _primary_only)),
    (
        "I15",
        "lists a category of no shop",
        rewriting(_CATEGORIES, lambda found: found["results"].append({"count": 0})),
    ),
    ("I52", "counts a shop too many", rewriting(_CATEGORIES, turn("results.0.count", more))),
    ("I52", "leaves the largest category out", rewriting(_CATEGORIES, _without_the_largest)),
    ("I53", "takes slugs in any case", hearing(_FIND, argument("category", str, str.lower))),
    ("I53", "refuses a slug that is listed", answering(_FIND, _refuses_a_slug)),
    ("I54", "answers another name", rewriting(_GET, turn("name", str.upper))),
    ("I55", "says that a shop is under review", answering(_GET, reports_review, 404)),
    (
        "A14",
        "sorts the shops",
        rewriting(_GET_MANY, turn("results", lambda found: sorted(found, key=lambda one: not one["shop"]))),
    ),
    (
        "A14",
        "leaves unknown shops out",
        rewriting(_GET_MANY, turn("results", lambda found: [one for one in found if one["shop"]])),
    ),
    (
        "A14",
        "counts unknown shops as found",
        rewriting(_GET_MANY, lambda answer: answer.update(found=len(answer["results"]))),
    ),
    (
        "F17",
        "lists the coupons of unknown shops last",
        rewriting(
            "/tool/list_coupons", lambda answer: answer.get("shops", []).sort(key=lambda one: not one["coupons"])
        ),
    ),
    ("F17", "has an empty list for an unknown shop", rewriting("/tool/list_coupons", _lists_of_unknown)),
    ("I55", "repeats what was asked", answering(_GET, _echoes, 404)),
    ("V2", "has a header for it", of_hidden("/tool/get_shop", _a_header)),
    (
        "V2",
        "counts it otherwise",
        of_hidden("/tool/get_shipping_policy", header(b"ratelimit-policy", b'"reads";q=1;w=60')),
    ),
    ("V2", "has other words for it over MCP", of_hidden("/mcp", _other_words, having='"get_shop"')),
    ("V2", "has a byte more for it over MCP", of_hidden("/mcp", _a_byte, having='"list_coupons"')),
    (
        "V2",
        "has a note for it over MCP",
        of_hidden("/mcp", in_place(put("result._meta.seen", value=True)), having='"resolve_conflict"'),
    ),
    ("V2", "spells its trust otherwise over MCP", of_hidden("/mcp", in_text(lambda _: None), having='"get_trust"')),
    (
        "V2",
        "repeats the URI of a resource",
        of_hidden("/mcp", in_place(put("error.data", {"uri": f"shop://{HIDDEN}"})), having='"resources/read"'),
    ),
    ("V2", "suggests it", of_hidden("/suggest", in_place(_suggested))),
    (
        "V2",
        "asks whether it was meant",
        of_hidden("/tool/find_shop", in_place(put("did_you_mean", [{"id": "shop_x", "name": "X", "domain": HIDDEN}]))),
    ),
    ("A9", "takes reports on it", of_hidden("/tool/report_code", _taken)),
    ("A9", "has other words for reports on it", of_hidden("/mcp", _other_words, having='"report_issue"')),
    ("I38", "numbers its offers", rewriting("/tool/find_shop", put("results.*.offers.*.offer_id", 17))),
    ("I64", "names no programme", rewriting(_MONETIZE, put("monetization", None))),
    (
        "I64",
        "goes through the network although it should not",
        hearing(_MONETIZE, argument("affiliate", bool, lambda _: True)),
    ),
    ("I64", "takes a word for a boolean", hearing(_MONETIZE, argument("affiliate", str, lambda word: word == "yes"))),
    ("I65", "leads to http", rewriting(_RESOLVE, put("checkout_url", "http://lumen-larch.internal/cart"))),
    ("I65", "leads to a number", rewriting(_RESOLVE, put("checkout_url", "https://192.0.2.7/cart"))),
    ("I65", "leads by credentials", rewriting(_RESOLVE, put("checkout_url", "https://shop@elsewhere.example/cart"))),
    ("I65", "takes a word for a boolean", hearing(_RESOLVE, argument("affiliate", str, lambda word: word == "yes"))),
    ("I66", "has a verdict of its own", rewriting(_CONFLICT, put("verdict", "merged"))),
    ("I66", "looks for no candidates", rewriting(_CONFLICT, _without_candidates)),
    ("I66", "merges", _merging),
    (
        "I66",
        "knows every shop",
        answering(_CONFLICT, lambda answered: answered.be(200, {"from": {}, "candidates": []}), 404),
    ),
)
