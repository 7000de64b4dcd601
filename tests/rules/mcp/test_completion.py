"""Completion offers what /suggest and list_categories know, says whether that is all, and never guesses (E3)."""

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from index_mappings.countries import COUNTRY_CODES
from tests.rules.mcp.asking import SHOP_TEMPLATE, complete, error, of_prompt, read, status_of
from tests.rules.transports.test_probes_and_headers import UNAVAILABLE
from tests.support.served import get, post
from tests.support.transports import STAMP_KEYS
from tests.support.wire import Era, invalid_input
from tests.support.worlds import limited

ERAS: Final = list(Era)
SHOPS: Final = [
    (SHOP_TEMPLATE, "domain"),
    (of_prompt("check_shop"), "shop_domain"),
    (of_prompt("find_a_code"), "shop_domain"),
]
COMPARE: Final = of_prompt("compare_shops")
NOTHING_TO_COMPLETE: Final = (
    "There is no such argument to complete: ref names a prompt of prompts/list, or the template of "
    "resources/templates/list as it stands there, and argument.name an argument of it."
)


def _values(base: str, ref: dict[str, str], argument: str, value: str, era: Era = Era.STATELESS) -> dict[str, Any]:
    reply = complete(base, era, ref, argument, value)
    assert reply.status == 200, reply.body
    completion: dict[str, Any] = reply.json["result"]["completion"]
    return completion


@pytest.mark.rule("I5", "M9", "C2", "C1.http")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("ref", "argument"), SHOPS)
@pytest.mark.parametrize("typed", ["", "har", "books", "küc", "KUE", "harbuor la", "xn--b", "nosuchthing"])
def test_shops_are_those_of_suggest(base: str, era: Era, ref: dict[str, str], argument: str, typed: str) -> None:
    suggested = get(base, f"/suggest?limit=20&q={quote(typed)}")
    reply = complete(base, era, ref, argument, typed)
    result = reply.json["result"]
    assert result["completion"] == {"values": [shop["domain"] for shop in suggested.json["shops"]], "hasMore": False}
    meta = [result["_meta"][key] for key in ("x-request-id", *STAMP_KEYS)]
    assert meta == [reply.headers["x-request-id"], *(suggested.headers[key] for key in STAMP_KEYS)]
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.rule("M9", "M10")
def test_whether_there_are_more_shops_is_shown_and_their_number_is_not(crowd: str) -> None:
    lanes, moors = (_values(crowd, SHOP_TEMPLATE, "domain", typed) for typed in ("lane", "moor"))
    assert (len(lanes["values"]), lanes["hasMore"], "total" in lanes) == (20, True, False)
    assert (len(moors["values"]), moors["hasMore"], "total" in moors) == (20, False, False)


@pytest.mark.rule("A3", "M10", "X1")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("typed", "slugs"),
    [
        ("", ["books", "garden", "kitchen-ware"]),
        (" ", ["books", "garden", "kitchen-ware"]),
        ("BÓ", ["books"]),
        ("kitchen-w", ["kitchen-ware"]),
        ("Kitchen W", ["kitchen-ware"]),
        ("war", ["kitchen-ware"]),
        ("ooks", []),
        ("secrets", []),
        ("???", []),
        ("nosuchthing", []),
    ],
)
def test_categories_are_those_with_a_word_that_begins_so(base: str, era: Era, typed: str, slugs: list[str]) -> None:
    assert _values(base, COMPARE, "category", typed, era) == {"values": slugs, "total": len(slugs), "hasMore": False}


@pytest.mark.rule("A3", "C2")
def test_a_hundred_categories_are_shown_and_all_of_them_counted(crowd: str) -> None:
    listed = post(crowd, "/tool/list_categories", {})
    slugs = [category["slug"] for category in listed.json["results"]]
    assert _values(crowd, COMPARE, "category", "") == {"values": slugs[:100], "total": 164, "hasMore": True}
    result = complete(crowd, Era.HANDSHAKE, COMPARE, "category", "").json["result"]
    assert [result["_meta"][key] for key in STAMP_KEYS] == [listed.headers[key] for key in STAMP_KEYS]


@pytest.mark.rule("R4")
@pytest.mark.parametrize("ref", [COMPARE, of_prompt("check_shop")])
def test_countries_are_the_codes_that_country_takes(base: str, ref: dict[str, str]) -> None:
    assert _values(base, ref, "country", "x") == {"values": ["XK"], "total": 1, "hasMore": False}
    assert _values(base, ref, "country", "uk") == {"values": [], "total": 0, "hasMore": False}
    every = sorted(COUNTRY_CODES)
    assert _values(base, ref, "country", "") == {"values": every[:100], "total": len(every), "hasMore": True}


@pytest.mark.rule("I7")
def test_an_argument_of_free_words_is_completed_to_nothing(base: str) -> None:
    assert _values(base, COMPARE, "query", "har") == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.rule("E5", "E2.protocol")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("ref", "argument"),
    [
        (SHOP_TEMPLATE, "shop_domain"),
        ({"type": "ref/resource", "uri": "shop://harbour-lane-books.example"}, "domain"),
        ({"type": "ref/resource", "uri": "taxonomy://categories"}, "domain"),
        (of_prompt("get_shop"), "shop_domain"),
        (of_prompt("check_shop"), "shop_id_or_domain"),
        (of_prompt("find_a_code"), "country"),
        (of_prompt(""), ""),
    ],
)
def test_what_no_list_names_cannot_be_completed(base: str, era: Era, ref: dict[str, str], argument: str) -> None:
    reply = complete(base, era, ref, argument, "har")
    assert reply.summary == (status_of(era, -32602), "application/json", error(-32602, NOTHING_TO_COMPLETE))


@pytest.mark.rule("M9", "E6", "E5")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("ref", "argument"), [*SHOPS, (COMPARE, "category"), (COMPARE, "country"), (COMPARE, "query")])
@pytest.mark.parametrize(
    ("typed", "message"),
    [("a" * 257, "may have at most 256 characters"), ("a\x00b", "holds a control character"), ("\x9b2J", None)],
)
def test_what_suggest_refuses_is_refused(
    base: str, era: Era, ref: dict[str, str], argument: str, typed: str, message: str | None
) -> None:
    problem = invalid_input(("argument.value", message or "holds a control character"))
    reply = complete(base, era, ref, argument, typed)
    whole = error(-32602, problem["detail"], problem)
    assert reply.summary == (status_of(era, -32602), "application/json", whole)


@pytest.mark.rule("E3", "I7", "E5")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("ref", "argument"), [*SHOPS, (COMPARE, "category")])
def test_with_the_engine_away_nothing_is_completed_to_nothing(
    away: str, era: Era, ref: dict[str, str], argument: str
) -> None:
    reply = complete(away, era, ref, argument, "har")
    assert reply.summary == (200, "application/json", error(-32603, str(UNAVAILABLE["detail"]), UNAVAILABLE))


@pytest.mark.rule("V2", "V1", "I6")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("ref", "argument", "hidden", "unknown"),
    [
        (SHOP_TEMPLATE, "domain", "Quietly Hidden", "Qwertly Hxqzen"),
        (SHOP_TEMPLATE, "domain", "quietly-hidden.example", "qwertly-hxqzen.example"),
        (SHOP_TEMPLATE, "domain", "Long Gone Goods", "Lqng Gqne Gqqds"),
        (COMPARE, "category", "secrets", "sekretz"),
    ],
)
def test_nothing_of_a_hidden_shop_is_completed(
    base: str, era: Era, ref: dict[str, str], argument: str, hidden: str, unknown: str
) -> None:
    answers = []
    for typed in (hidden, unknown):
        reply = complete(base, era, ref, argument, typed)
        answers.append((reply.status, reply.body.replace(reply.headers["x-request-id"].encode(), b"-")))
    assert answers[0] == answers[1]
    assert b'"values":[]' in answers[0][1]


@pytest.mark.rule("Q2")
@pytest.mark.parametrize("era", ERAS)
def test_completions_count_as_suggest_requests_and_not_as_reads(tmp_path: Path, era: Era) -> None:
    with limited(tmp_path) as base:
        replies = [complete(base, era, ref, argument, "") for ref, argument in ((COMPARE, "category"), SHOPS[0])]
        assert [reply.headers["ratelimit"].partition(";t=")[0] for reply in replies] == [
            '"suggest";r=1',
            '"suggest";r=0',
        ]
        assert get(base, "/suggest?q=").status == 429
        refused = complete(base, era, SHOP_TEMPLATE, "domain", "")
        assert (refused.status, refused.json["error"]["data"]["code"]) == (429, "quota_exceeded")
        assert read(base, era, "shop://shop_books").status == 200
