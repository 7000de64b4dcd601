"""Servers whose find_shop is wrong in one way, or that settle otherwise what the interface leaves open."""

from typing import Final

from tests.people.check.breaking import Answered, Breakage, Document, answering, hearing, rewriting
from tests.people.check.changes import argument, backwards, default, put, turn

_FIND: Final = "/tool/find_shop"
_GET: Final = "/tool/get_shop"


def _counts_the_page(document: Document) -> None:
    document["total_count"] = len(document["results"])


def _one_more(arguments: Document) -> Document:
    limit = arguments.get("limit")
    return {**arguments, "limit": limit + 1} if isinstance(limit, int | float) and 1 < limit < 100 else arguments


def _truncated_by_total(document: Document) -> None:
    document["truncated"] = document["total_count"] > 1


def _drops_everything(answered: Answered) -> None:
    document = answered.document
    if document["ignored_terms"]:
        document["results"], document["total_count"] = [], 0
        answered.document = document


def _null_is_a_query(arguments: Document) -> Document:
    return {**arguments, "query": ""} if arguments.get("query", ...) is None else arguments


def _whole_words_only(answered: Answered) -> None:
    """Nothing is found by a part of a name."""
    document = answered.document
    query = answered.asked.arguments.get("query", "")
    words = {word for shop in document["results"] for word in shop["name"].lower().split()}
    if query and "." not in query and "category" not in answered.asked.arguments and not set(query.split()) & words:
        document["results"], document["total_count"] = [], 0
        answered.document = document


def _blank_is_invalid(answered: Answered) -> None:
    arguments = answered.asked.arguments
    if arguments.get("query") == "" and "category" in arguments:
        answered.document = {**answered.document, "results": [], "total_count": 0, "truncated": False}


def _without_country(arguments: Document) -> Document:
    country = arguments.get("country")
    if isinstance(country, str) and len(country) == 2 and country not in {"ZZ", "UK", "XX"}:
        return {name: value for name, value in arguments.items() if name != "country"}
    return arguments


def _any_country(answered: Answered) -> None:
    if "country" in answered.asked.arguments:
        answered.be(200, {"results": [], "total_count": 0})


def _offset_off_by_one(arguments: Document) -> Document:
    offset = arguments.get("offset")
    # Only a step of a page: what lies beyond the first one begins one too late.
    return (
        {**arguments, "offset": offset + 1}
        if isinstance(offset, int) and offset > 1 and "category" not in arguments
        else arguments
    )


def _category_left_out(arguments: Document) -> Document:
    """With a query, the category is not looked at."""
    if arguments.get("query") and not str(arguments.get("category", "none_")).startswith("none_"):
        return {name: value for name, value in arguments.items() if name != "category"}
    return arguments


def _any_word(arguments: Document) -> Document:
    """Of several words the first one suffices."""
    words = str(arguments.get("query", "")).split()
    return {**arguments, "query": words[0]} if len(words) == 2 and words[1].isalpha() else arguments


def _only_known_words(document: Document) -> None:
    if "word_counts" in document:
        document["word_counts"] = [count for count in document["word_counts"] if count["shops"]]


def _counts_always(document: Document) -> None:
    document.setdefault("word_counts", [])


def _empty_for_unknown(answered: Answered) -> None:
    if answered.document["code"] == "unknown_category" and answered.asked.arguments["query"]:
        page = {"results": [], "total_count": 0, "truncated": False, "ignored_terms": [], "category_truncated": False}
        answered.be(200, page)


def _host_left_out(arguments: Document) -> Document:
    """A host that no shop has is passed over."""
    return {**arguments, "query": ""} if str(arguments.get("query", "")).endswith(".com") else arguments


def _shop_is_a_name(arguments: Document) -> Document:
    """The word is looked for in names only."""
    query = str(arguments.get("query", ""))
    return {**arguments, "query": query.replace(" shop", " qqxxshop")} if query.endswith(" shop") else arguments


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
    Breakage("M3.hosts", "finds everything for an unknown host", hearing(_FIND, _host_left_out)),
    Breakage("M3.wishes", "takes a word for a shop for a name", hearing(_FIND, _shop_is_a_name)),
    Breakage("I21", "returns one shop too many", hearing(_FIND, _one_more), also=("I48",)),
    Breakage("I21", "counts the page", rewriting(_FIND, _counts_the_page), also=("I22", "I52")),
    Breakage("I22", "is always at its end", rewriting(_FIND, put("truncated", value=False))),
    Breakage("I22", "never is at its end", rewriting(_FIND, _truncated_by_total)),
    Breakage("I23", "drops words and does not say so", rewriting(_FIND, put("ignored_terms", [])), also=("M3.hosts",)),
    Breakage(
        "I23",
        "finds nothing when a word is found nowhere",
        answering(_FIND, _drops_everything),
        also=("M6.nothing_left",),
    ),
    Breakage("I24", "has null for category_truncated", rewriting(_FIND, put("category_truncated", None))),
    Breakage("I24", "always says that categories were cut", rewriting(_FIND, put("category_truncated", value=True))),
    Breakage("I44", "takes null for an empty query", hearing(_FIND, _null_is_a_query)),
    Breakage("I44", "finds whole words only", answering(_FIND, _whole_words_only)),
    Breakage(
        "I45",
        "finds nothing in a category without a query",
        answering(_FIND, _blank_is_invalid),
        also=("I52", "M6.nothing_left"),
    ),
    Breakage("I46", "does not look at the country", hearing(_FIND, _without_country)),
    Breakage("I46", "takes any word for a country", answering(_FIND, _any_country, 400), also=("R4",)),
    Breakage(
        "I47", "clamps the limit", hearing(_FIND, argument("limit", int, lambda limit: min(limit, 100))), also=("M8",)
    ),
    Breakage("I47", "returns ten unless asked", hearing(_FIND, default("limit", 10))),
    Breakage("I48", "leaves a shop out between pages", hearing(_FIND, _offset_off_by_one)),
    Breakage(
        "I49", "does not look at the category of a query", hearing(_FIND, _category_left_out), also=("M6.nothing_left",)
    ),
    Breakage("I50", "is content with one of the words", hearing(_FIND, _any_word)),
    Breakage("M6.word_counts", "leaves out the words that no shop fits", rewriting(_FIND, _only_known_words)),
    Breakage("M6.word_counts", "counts words where there are matches", rewriting(_FIND, _counts_always)),
    Breakage("I51", "finds nothing in an unknown category", answering(_FIND, _empty_for_unknown, 400)),
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
