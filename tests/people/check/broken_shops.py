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
    asking,
    drop,
    header,
    hearing,
    in_place,
    more,
    put,
    rewriting,
    spelling,
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
REPORTS_REVIEW: Final = asking("shop_domain", HIDDEN, in_place(put("detail", "This shop is under review.")))
_OTHER_WORDS: Final = spelling(lambda text: text.replace(b"directory", b"public directory"))
_REFUSED: Final = {"status": 400, "code": "unknown_category"}
_SUGGESTED: Final = {"id": "shop_x", "name": "X", "domain": HIDDEN, "category": "books", "score": 0.0}


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


def of_hidden(path: str, change: Change, *, having: str = "") -> Wrap:
    """A server that changes its answers to requests that name a shop under review."""

    def is_meant(answered: Answered) -> bool:
        asked = answered.asked.body.decode("utf-8", "replace") + answered.asked.query.decode()
        return answered.asked.path == path and HIDDEN in asked and having in asked

    return where(is_meant, change)


_RESOLVE: Final = "/tool/resolve_checkout_url"
_MONETIZE: Final = "/tool/monetize_offer"
_CONFLICT: Final = "/tool/resolve_conflict"


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
    (
        "I6",
        "finds a shop under review",
        answering(_FIND, asking("query", HIDDEN, in_place(put("results", [_HIDDEN_SHOP])))),
    ),
    ("I6", "says that a shop is under review", answering("/tool/get_shipping_policy", REPORTS_REVIEW, 404)),
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
    (
        "I53",
        "refuses a slug that is listed",
        answering(_FIND, asking("category", "music", lambda answered: answered.be(400, _REFUSED))),
    ),
    ("I54", "answers another name", rewriting(_GET, turn("name", str.upper))),
    ("I55", "says that a shop is under review", answering(_GET, REPORTS_REVIEW, 404)),
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
    (
        "F17",
        "has an empty list for an unknown shop",
        rewriting(
            "/tool/list_coupons", turn("shops.*.coupons", lambda coupons: coupons or {"results": [], "total_count": 0})
        ),
    ),
    ("I55", "repeats what was asked", answering(_GET, _echoes, 404)),
    ("V2", "has a header for it", of_hidden("/tool/get_shop", header(b"x-cache", b"hit"))),
    (
        "V2",
        "counts it otherwise",
        of_hidden("/tool/get_shipping_policy", header(b"ratelimit-policy", b'"reads";q=1;w=60')),
    ),
    ("V2", "has other words for it over MCP", of_hidden("/mcp", _OTHER_WORDS, having='"get_shop"')),
    (
        "V2",
        "has a byte more for it over MCP",
        of_hidden("/mcp", spelling(lambda text: text + b"\n"), having='"list_coupons"'),
    ),
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
    ("V2", "suggests it", of_hidden("/suggest", in_place(lambda answer: answer["shops"].append(_SUGGESTED)))),
    (
        "V2",
        "asks whether it was meant",
        of_hidden("/tool/find_shop", in_place(put("did_you_mean", [{"id": "shop_x", "name": "X", "domain": HIDDEN}]))),
    ),
    (
        "A9",
        "takes reports on it",
        of_hidden("/tool/report_code", lambda answered: answered.be(200, {"status": "wird gemeldet, Pruefung laeuft"})),
    ),
    ("A9", "has other words for reports on it", of_hidden("/mcp", _OTHER_WORDS, having='"report_issue"')),
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
    ("I66", "looks for no candidates", rewriting(_CONFLICT, drop("candidates"))),
    ("I66", "merges", _merging),
    (
        "I66",
        "knows every shop",
        answering(_CONFLICT, lambda answered: answered.be(200, {"from": {}, "candidates": []}), 404),
    ),
)
