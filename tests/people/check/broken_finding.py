"""Servers whose find_shop or /suggest is wrong in one way, or that settle otherwise what the interface leaves open."""

from collections.abc import Callable
from typing import Final

from tests.people.check.breaking import (
    ANY,
    Answered,
    Asked,
    Breakage,
    Document,
    Wrap,
    answering,
    argument,
    asked_otherwise,
    asking,
    backwards,
    default,
    drop,
    hearing,
    in_place,
    more,
    put,
    rewriting,
    turn,
    without,
)

_FIND: Final = "/tool/find_shop"
_GET: Final = "/tool/get_shop"
_NOTHING: Final[Document] = {"results": [], "total_count": 0, "truncated": False}


def _drops_everything(document: Document) -> None:
    if document["ignored_terms"]:
        document["results"], document["total_count"] = [], 0


def _whole_words_only(answered: Answered) -> None:
    document = answered.document
    query = answered.asked.arguments.get("query", "")
    words = {word for shop in document["results"] for word in shop["name"].lower().split()}
    if query and "." not in query and "category" not in answered.asked.arguments and not set(query.split()) & words:
        document["results"], document["total_count"] = [], 0
        answered.document = document


def _blank_is_invalid(answered: Answered) -> None:
    if answered.asked.arguments["query"] == "" and "category" in answered.asked.arguments:
        answered.document = {**answered.document, **_NOTHING}


def _counts_the_page(document: Document) -> None:
    for facet in document.get("facets", {}).values():
        for value in facet["values"]:
            value["count"] = min(value["count"], len(document["results"]))


SUGGEST: Final = "/suggest"


def retyping(change: Callable[[bytes], bytes]) -> Wrap:
    """A server that takes another query string of /suggest than it was given."""

    def before(asked: Asked) -> None:
        if asked.path == SUGGEST:
            asked.query = change(asked.query)

    return asked_otherwise(before)


def _without(*pairs: bytes) -> Callable[[bytes], bytes]:
    return lambda query: b"&".join(pair for pair in query.split(b"&") if pair not in pairs)


def _country_ignored(query: bytes) -> bytes:
    pairs = query.split(b"&")
    country = [pair for pair in pairs if pair.startswith(b"country=")]
    return query if len(country) != 1 or country == [b"country=XX"] else _without(*country)(query)


def _only_lower_case_is_wrong(query: bytes) -> bytes:
    pairs = query.split(b"&")
    return b"&".join(b"country=XX" if pair.startswith(b"country=") and pair[8:].islower() else pair for pair in pairs)


def _first_only(query: bytes) -> bytes:
    first = {pair.partition(b"=")[0]: pair for pair in reversed(query.split(b"&"))}
    return b"&".join(pair for pair in query.split(b"&") if first[pair.partition(b"=")[0]] == pair)


def _scored(least: int) -> Callable[[Document], None]:
    def change(answer: Document) -> None:
        answer["shops"] = [shop for shop in answer["shops"] if shop["score"] >= least or not answer["query"]]

    return change


def _popularity_not_looked_at(answer: Document) -> None:
    answer["shops"].sort(key=lambda shop: (-int(shop["score"]), shop["id"]))


BREAKAGES: Final[tuple[Breakage, ...]] = (
    (
        "M3.hosts",
        "finds everything for an unknown host",
        hearing(_FIND, argument("query", str, lambda query: "" if ".com" in query else query)),
    ),
    (
        "M3.wishes",
        "takes a word for a shop for a name",
        hearing(_FIND, argument("query", str, lambda query: query.replace(" shop", " qqxx"))),
    ),
    ("I21", "returns one shop too many", hearing(_FIND, argument("limit", int, lambda limit: limit + (limit < 100)))),
    ("I21", "counts the page", rewriting(_FIND, lambda page: page.update(total_count=len(page["results"])))),
    ("I22", "is always at its end", rewriting(_FIND, put("truncated", value=False))),
    ("I22", "never is at its end", rewriting(_FIND, lambda page: page.update(truncated=page["total_count"] > 1))),
    ("I23", "drops words and does not say so", rewriting(_FIND, put("ignored_terms", []))),
    ("I23", "finds nothing when a word is found nowhere", rewriting(_FIND, _drops_everything)),
    ("I24", "has null for category_truncated", rewriting(_FIND, put("category_truncated", None))),
    ("I24", "always says that categories were cut", rewriting(_FIND, put("category_truncated", value=True))),
    (
        "I44",
        "takes null for an empty query",
        hearing(_FIND, lambda asked: {**asked, "query": asked["query"] or ""} if "query" in asked else asked),
    ),
    ("I44", "finds whole words only", answering(_FIND, _whole_words_only)),
    ("I45", "finds nothing in a category without a query", answering(_FIND, _blank_is_invalid)),
    (
        "I46",
        "does not look at the country",
        hearing(_FIND, argument("country", str, lambda code: code if code in {"ZZ", "Germany"} else None)),
    ),
    (
        "I46",
        "takes any word for a country",
        answering(_FIND, asking("country", ANY, lambda answered: answered.be(200, _NOTHING)), 400),
    ),
    ("I47", "clamps the limit", hearing(_FIND, argument("limit", int, lambda limit: min(limit, 100)))),
    ("I47", "returns ten unless asked", hearing(_FIND, default("limit", 10))),
    (
        "I48",
        "leaves a shop out between pages",
        hearing(_FIND, argument("offset", int, lambda offset: offset + (offset > 1))),
    ),
    (
        "I49",
        "does not look at the category of a query",
        hearing(_FIND, lambda asked: without("category")(asked) if asked["query"] else asked),
    ),
    (
        "I50",
        "is content with one of the words",
        hearing(_FIND, argument("query", str, lambda query: query.partition(" ")[0])),
    ),
    (
        "M6.word_counts",
        "leaves out the words that no shop fits",
        rewriting(_FIND, turn("word_counts", lambda counts: [one for one in counts if one["shops"]])),
    ),
    (
        "M6.broader",
        "has broader queries where there are matches",
        rewriting(_FIND, lambda page: page.setdefault("broader", [])),
    ),
    (
        "M6.broader",
        "shows other shops first than a broader query finds",
        rewriting(_FIND, turn("broader.*.results", backwards)),
    ),
    ("M6.broader", "miscounts the shops of a broader query", rewriting(_FIND, turn("broader.*.total_count", more))),
    ("F5", "counts the page only", rewriting(_FIND, _counts_the_page)),
    ("F5", "miscounts the shops without a market", rewriting(_FIND, turn("facets.*.missing", more))),
    ("F6", "takes the first category only", hearing(_FIND, argument("categories", list, lambda some: some[:1]))),
    ("F6", "takes no notice of countries", hearing(_FIND, without("countries"))),
    ("F7", "begins again at every cursor", hearing(_FIND, without("cursor"))),
    ("F7", "stops in the middle", answering(_FIND, asking("cursor", ANY, in_place(drop("next_cursor"))))),
    (
        "M6.word_counts",
        "counts words where there are matches",
        rewriting(_FIND, lambda page: page.setdefault("word_counts", [])),
    ),
    (
        "I51",
        "finds nothing in an unknown category",
        answering(_FIND, lambda answered: answered.be(200, _NOTHING), 400),
    ),
    (
        "R1",
        "does not know a pasted URL",
        hearing(_GET, argument("shop_domain", str, lambda text: text.replace("https://www.", "none"))),
    ),
    (
        "R1",
        "does not know a pasted link",
        hearing(_GET, argument("shop_domain", str, lambda text: text.replace("[", "none"))),
    ),
    ("R1", "says nothing of parents", rewriting(_GET, put("detail", "There is no such shop."), 404)),
    ("R1", "takes ids in any case", hearing(_GET, argument("shop_domain", str, str.lower))),
    (
        "R1.bounds",
        "cuts long references",
        hearing(_GET, argument("shop_domain", str, lambda reference: reference[:2048])),
    ),
    ("R2", "looks at the first field only", hearing(_GET, without("shop_id_or_domain"))),
    ("R4", "knows UK", hearing(_FIND, argument("country", str, lambda country: "GB" if country == "UK" else country))),
    ("M6.nothing_left", "finds nothing in a category by an unknown word", rewriting(_FIND, _drops_everything)),
    (
        "M8",
        "takes a text for a number",
        hearing(_FIND, argument("limit", str, lambda limit: int(limit) if limit.isdigit() else limit)),
    ),
    ("M8", "cuts long queries", hearing(_FIND, argument("query", str, lambda query: query[:200]))),
    (
        "M8",
        "takes any offset below zero for zero",
        hearing(_FIND, argument("offset", int, lambda offset: 0 if offset == -1 else offset)),
    ),
    ("M11", "lists small categories first", rewriting("/tool/list_categories", turn("results", backwards))),
    ("M11.other_lists", "lists tested codes last", rewriting("/tool/list_coupons", turn("results", backwards))),
    ("M11.other_lists", "lists signals from behind", rewriting("/tool/get_trust", turn("signals", backwards))),
    (
        "M11.other_lists",
        "lists candidates from behind",
        rewriting("/tool/resolve_conflict", turn("candidates", backwards)),
    ),
    ("A1.offers", "shows one offer", rewriting(_FIND, turn("results.*.offers", lambda offers: offers[:1]))),
    ("F1", "takes each destination for another", hearing(_FIND, argument("ships_to", str, lambda _: "AQ"))),
    ("F1", "counts no shop that does not say", rewriting(_FIND, turn("unsettled_count", lambda _: 0))),
    ("F3", "finds shops without codes", hearing(_FIND, without("has_code"))),
    ("E4", "proposes no slug", rewriting(_FIND, put("detail", "There is none."), 400)),
    ("I68", "takes a missing q for a blank one", retyping(lambda query: query if b"q=" in query else b"q=")),
    ("I69", "forgives no typing errors", rewriting(SUGGEST, _scored(4))),
    ("I69", "finds whole names only", rewriting(SUGGEST, _scored(8))),
    ("I69", "puts the least popular first", rewriting(SUGGEST, turn("shops", backwards))),
    ("I69", "orders by id", rewriting(SUGGEST, _popularity_not_looked_at)),
    ("I70", "gives ten", retyping(lambda query: query if b"limit=" in query else query + b"&limit=10")),
    ("I70", "gives one at least four", retyping(lambda query: query.replace(b"limit=3", b"limit=4"))),
    ("I71", "does not look at the country", retyping(_country_ignored)),
    ("I71", "takes a country that there is not", retyping(_without(b"country=XX"))),
    ("I71", "refuses a country in small letters", retyping(_only_lower_case_is_wrong)),
    ("I72", "echoes the folded q", rewriting(SUGGEST, turn("query", lambda query: query.strip().lower()))),
    ("I72", "shows a field more", rewriting(SUGGEST, put("shops.*.popularity", 1.0))),
    ("I72", "sends scores as text", rewriting(SUGGEST, turn("shops.*.score", str))),
    ("M10", "cuts a limit of 21", retyping(lambda query: query.replace(b"limit=21", b"limit=20"))),
    ("M10", "takes a limit of 0", retyping(_without(b"limit=0"))),
    ("M10", "counts otherwise than list_categories", rewriting(SUGGEST, turn("categories.*.count", more))),
    ("R3.query_string", "drops what it does not know", retyping(_without(b"contry=DE"))),
    ("R3.query_string", "takes the first of two", retyping(_first_only)),
    ("R3.query_string", "refuses a campaign's mark", retyping(lambda query: query.replace(b"utm_", b"mtm_"))),
)
