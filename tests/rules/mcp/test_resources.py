"""A resource is a tool's answer, byte for byte and by the tool's own path; what is not there is not there (V2, E3)."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.rules.mcp.asking import error, read, status_of
from tests.rules.transports.test_probes_and_headers import UNAVAILABLE
from tests.support.limited import limited
from tests.support.rpc import Era
from tests.support.served import Reply, post
from tests.support.transports import STAMP_KEYS

ERAS: Final = list(Era)
NO_RESOURCE: Final = (
    "There is no resource at this URI. resources/list and resources/templates/list name those that there are; a shop "
    "that is not in the directory is none."
)
MISSING: Final = {Era.STATELESS: -32602, Era.HANDSHAKE: -32002}
BOOKS: Final = ("get_shop", {"shop_domain": "shop_books"})
CATEGORIES: Final[tuple[str, dict[str, Any]]] = ("list_categories", {})
READINGS: Final = [
    ("shop://harbour-lane-books.example", *BOOKS),
    ("shop://WWW.Harbour-Lane-Books.Example", *BOOKS),
    ("SHOP://shop_books", *BOOKS),
    ("shop://harbour-lane-books.example/new?page=2#top", *BOOKS),
    ("shop://https%3A%2F%2Fwww.harbour-lane-books.example%2Fnew", *BOOKS),
    ("shop://b%C3%BCcher.example", "get_shop", {"shop_domain": "shop_garden"}),
    ("shop://bücher.example", "get_shop", {"shop_domain": "shop_garden"}),
    ("taxonomy://categories", *CATEGORIES),
]
NOTHING: Final = [
    "shop://nobody.example",
    "shop://shop_nobody",
    "shop://SHOP_BOOKS",
    "shop://",
    "shop://%20",
    "shop://%00harbour-lane-books.example",
    "shop://%FF%FE",
    "shop://%zz",
    "shop://" + "a" * 3_000,
    "shop:/harbour-lane-books.example",
    "shop:harbour-lane-books.example",
    "shop",
    "shop://{domain}",
    "taxonomy://categories/",
    "taxonomy://",
    "file:///etc/passwd",
    "https://harbour-lane-books.example/",
    "",
    "\u202eshop://harbour-lane-books.example",
]


@pytest.mark.rule("I5", "I3", "R1", "I10", "C2", "C1.http")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("uri", "tool", "arguments"), READINGS)
def test_a_resource_is_the_answer_of_its_tool(
    base: str, era: Era, uri: str, tool: str, arguments: dict[str, Any]
) -> None:
    rest, reply = post(base, f"/tool/{tool}", arguments), read(base, era, uri)
    result = reply.json["result"]
    meta = result.pop("_meta")
    meta.pop("io.modelcontextprotocol/serverInfo", None)
    of_era = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"} if era is Era.STATELESS else {}
    contents = {"uri": uri, "mimeType": "application/json", "text": rest.body.decode()}
    assert (reply.status, result) == (200, {"contents": [contents], **of_era})
    expected = {"x-request-id": reply.headers["x-request-id"]} | {key: rest.headers[key] for key in STAMP_KEYS}
    assert (meta, reply.headers["cache-control"]) == (expected, "no-store")


@pytest.mark.rule("V2", "E5", "E1.transport", "R1.bounds")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("uri", NOTHING)
def test_what_is_not_there_is_reported_without_a_word_of_what_was_sent(base: str, era: Era, uri: str) -> None:
    reply = read(base, era, uri)
    code = MISSING[era]
    assert reply.summary == (status_of(era, code), "application/json", error(code, NO_RESOURCE))


@pytest.mark.rule("V2", "V1", "I6", "I55", "I57")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("hidden", "unknown"),
    [
        ("shop://quietly-hidden.example", "shop://quietly-hiddem.example"),
        ("shop://shop_hidden", "shop://shop_hiddem"),
        ("shop://long-gone.example", "shop://long-gonf.example"),
        ("shop://shop_removed", "shop://shop_removee"),
    ],
)
def test_a_shop_under_review_is_as_missing_as_an_unknown_one(base: str, era: Era, hidden: str, unknown: str) -> None:
    answers = [_settled(read(base, era, uri)) for uri in (hidden, unknown)]
    assert answers[0] == answers[1]


@pytest.mark.rule("E3", "I7", "E5")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("uri", ["shop://shop_books", "shop://shop_nobody", "taxonomy://categories"])
def test_with_the_engine_away_a_resource_is_neither_empty_nor_missing(away: str, era: Era, uri: str) -> None:
    assert read(away, era, uri).summary == (
        200,
        "application/json",
        error(-32603, str(UNAVAILABLE["detail"]), UNAVAILABLE),
    )


@pytest.mark.rule("Q2", "E2.credentials")
@pytest.mark.parametrize("era", ERAS)
def test_reading_counts_as_a_read_of_the_address(tmp_path: Path, era: Era) -> None:
    with limited(tmp_path) as base:
        replies = [read(base, era, uri) for uri in ("shop://shop_books", "shop://shop_nobody", "shop://shop_books")]
    assert [reply.headers["ratelimit"].partition(";t=")[0] for reply in replies[:2]] == ['"reads";r=1', '"reads";r=0']
    refused = replies[2]
    assert (refused.status, refused.json["error"]["code"]) == (429, -32001)
    assert refused.json["error"]["data"]["code"] == "quota_exceeded"
    assert refused.headers["retry-after"] in refused.json["error"]["message"]


def _settled(reply: Reply) -> tuple[int, dict[str, str], bytes]:
    """An answer without what differs from request to request."""
    differs = {"x-request-id", "ratelimit", "date"}
    headers = {name: value for name, value in reply.headers.items() if name not in differs}
    return reply.status, headers, reply.body
