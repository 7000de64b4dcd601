"""Servers that are wrong in how tools are called and described."""

from collections.abc import Callable
from typing import Final

from tests.people.check.breaking import Answered, Breakage, Document, answering, hearing, rewriting
from tests.people.check.changes import drop, header, status

_OPENAPI: Final = "/openapi.json"


def _empty_instead(code: str) -> Callable[[Answered], None]:
    """An error of this code becomes an empty page."""

    def change(answered: Answered) -> None:
        if answered.document["code"] == code:
            answered.be(200, {"results": [], "total_count": 0})

    return change


def _with_another_tool(document: Document) -> None:
    document["paths"]["/tool/rate_shop"] = document["paths"]["/tool/get_trust"]


def _with_slugs_enumerated(document: Document) -> None:
    waiting: list[object] = [document]
    while waiting:
        match waiting.pop():
            case {"properties": {"query": _, "category": dict() as category}}:
                category["enum"] = ["books", "toys"]
            case dict() as found:
                waiting += found.values()
            case list() as found:
                waiting += found


def _without_older_name(arguments: Document) -> Document:
    # As if the field were none of the tool's.
    return {"unheard_of" if name == "shop_id_or_domain" else name: value for name, value in arguments.items()}


BREAKAGES: Final = (
    Breakage(
        "I1", "describes ten tools", rewriting(_OPENAPI, drop("paths./tool/get_trust")), also=("I5", "I35", "I42")
    ),
    Breakage("I1", "has a tool more", rewriting(_OPENAPI, _with_another_tool), also=("I5",)),
    Breakage(
        "I2",
        "answers in plain text",
        answering("/tool/list_categories", header(b"content-type", b"text/plain")),
        also=("I12", "I14", "I15", "I52", "M10", "M11"),
    ),
    Breakage("I13", "enumerates the slugs of today", rewriting(_OPENAPI, _with_slugs_enumerated)),
    Breakage(
        "I42",
        "describes a tool without 404",
        rewriting(_OPENAPI, drop("paths./tool/resolve_conflict.post.responses.404")),
    ),
    Breakage("I43", "does not know the older name", hearing("/tool/get_shipping_policy", _without_older_name)),
    Breakage(
        "I82",
        "answers an invalid offer with 422",
        answering("/tool/resolve_checkout_url", status(422), 400),
        also=("I65",),
    ),
    Breakage(
        "I83",
        "answers an unknown offer with 410",
        answering("/tool/resolve_checkout_url", status(410), 404),
        also=("I65", "I79.more_reads"),
    ),
    Breakage(
        "I83",
        "answers an unknown shop with an empty page",
        answering("/tool/get_shipping_policy", _empty_instead("shop_not_found"), 404),
    ),
)
