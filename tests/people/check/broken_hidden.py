"""Servers that show something of a shop under review."""

import json
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp

from tests.people.check.breaking import Answered, Breakage, Changed, Document, in_place
from tests.people.check.changes import header, put
from tests.people.check.stage import UNDER_REVIEW

HIDDEN: Final = UNDER_REVIEW[0]


def of_hidden(
    path: str, change: Callable[[Answered], None], *, having: str = "", status: int | None = None
) -> Callable[[ASGIApp], ASGIApp]:
    """A server that changes its answers to requests that name a shop under review."""

    def after(answered: Answered) -> None:
        asked = answered.asked.body.decode("utf-8", "replace") + answered.asked.query.decode()
        if answered.asked.path == path and HIDDEN in asked and having in asked and status in {None, answered.status}:
            change(answered)

    return lambda app: Changed(app, after=after)


def _a_header(answered: Answered) -> None:
    answered.headers.append((b"x-cache", b"hit"))


def _other_words(answered: Answered) -> None:
    answered.body = answered.body.replace(b"directory", b"public directory")


def _a_byte(answered: Answered) -> None:
    answered.body += b"\n"


def _taken(answered: Answered) -> None:
    answered.be(200, {"status": "wird gemeldet, Pruefung laeuft"})


def _suggested(answered: Answered) -> None:
    answer: Document = answered.document
    answer["shops"].append({"id": "shop_x", "name": "X", "domain": HIDDEN, "category": "books", "score": 0.0})
    answered.document = answer


def _measured(answered: Answered) -> None:
    document: Document = answered.document
    content = json.loads(document["result"]["content"][0]["text"])
    document["result"]["content"][0]["text"] = json.dumps(content)
    answered.document = document


BREAKAGES: Final = (
    Breakage("V2", "has a header for it", of_hidden("/tool/get_shop", _a_header)),
    Breakage(
        "V2",
        "counts it otherwise",
        of_hidden("/tool/get_shipping_policy", header(b"ratelimit-policy", b'"reads";q=1;w=60')),
    ),
    Breakage("V2", "has other words for it over MCP", of_hidden("/mcp", _other_words, having='"get_shop"')),
    Breakage("V2", "has a byte more for it over MCP", of_hidden("/mcp", _a_byte, having='"list_coupons"')),
    Breakage(
        "V2",
        "has a note for it over MCP",
        of_hidden("/mcp", in_place(put("result._meta.seen", value=True)), having='"resolve_conflict"'),
    ),
    Breakage("V2", "spells its trust otherwise over MCP", of_hidden("/mcp", _measured, having='"get_trust"')),
    Breakage(
        "V2",
        "repeats the URI of a resource",
        of_hidden("/mcp", in_place(put("error.data", {"uri": f"shop://{HIDDEN}"})), having='"resources/read"'),
    ),
    Breakage("V2", "suggests it", of_hidden("/suggest", _suggested)),
    Breakage(
        "V2",
        "asks whether it was meant",
        of_hidden("/tool/find_shop", in_place(put("did_you_mean", [{"id": "shop_x", "name": "X", "domain": HIDDEN}]))),
    ),
    Breakage("A9", "takes reports on it", of_hidden("/tool/report_code", _taken)),
    Breakage("A9", "has other words for reports on it", of_hidden("/mcp", _other_words, having='"report_issue"')),
)
