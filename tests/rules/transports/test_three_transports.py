"""REST, MCP in both eras and stdio are one service: the same answers to the byte, the same errors one to one."""

import json
from typing import Any, Final

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.support.problems import problem
from tests.support.rpc import Era, call
from tests.support.served import post
from tests.support.worlds import BOOKS_VIEW

ABSENT: Final = "There is no shop with this id or domain in the directory."
NAMED: Final = f"{ABSENT} To look a shop up by its name, call find_shop."
BELOW: Final = f"{ABSENT} A sub-domain is not looked up as its parent domain."


@pytest.mark.rule("V2", "I6", "I55", "I57", "I83", "R1", "R1.bounds", "C2", "E2")
@pytest.mark.parametrize("tool", ["get_shop", "list_coupons", "get_shipping_policy"])
@pytest.mark.parametrize(
    ("reference", "unknown", "detail"),
    [
        ("shop_hidden", "shop_nobody", NAMED),
        ("no id", "Quietly Hidden", NAMED),
        ("Dr. Hidden", "Quietly Hidden Ltd.", NAMED),
        ("quietly-hidden.example", "unknown.example", ABSENT),
        ("QUIETLY-hidden.example", "a..", ABSENT),
        ("sub.quietly-hidden.example", "https://sub.harbour-lane-books.example/x", BELOW),
        ("a.b.quietly-hidden.example", "www.sub.unknown.co.uk", BELOW),
    ],
)
def test_hidden_unknown_and_impossible_shops_of_one_form_are_one_absence(
    base: str, tool: str, reference: str, unknown: str, detail: str
) -> None:
    absent, asked = [post(base, f"/tool/{tool}", {"shop_domain": one}) for one in (unknown, reference)]
    counters = {"date", "x-request-id", "ratelimit"}
    assert (asked.status, asked.body) == (404, absent.body)
    assert {k: v for k, v in asked.headers.items() if k not in counters} == {
        k: v for k, v in absent.headers.items() if k not in counters
    }
    assert asked.json == problem(404, "shop_not_found", detail)
    for era in Era:
        result = call(base, era, tool, json.dumps({"shop_domain": reference}).encode()).json["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, asked.body.decode())


@pytest.mark.rule("I9", "I10", "I11", "I54", "A1", "R1", "R2", "I43", "I79")
@pytest.mark.parametrize(
    "arguments",
    [
        {"shop_domain": "shop_books"},
        {"shop_id_or_domain": "shop_books"},
        {"shop_domain": " harbour-lane-books.example "},
        {"shop_domain": "http://WWW.harbour-lane-books.example./x"},
        {"shop_domain": "shop_books", "shop_id_or_domain": None},
        {"shop_domain": "", "shop_id_or_domain": "shop_books"},
        {"shop_domain": "www.harbour-lane-books.example", "shop_id_or_domain": "harbour-lane-books.example"},
        {"shop_domain": "[Harbour Lane Books](https://harbour-lane-books.example/new)"},
        {"shop_domain": "<harbour-lane-books.example>", "shop_id_or_domain": '"harbour-lane-books.example",'},
    ],
)
def test_a_shop_is_found_by_any_spelling_of_its_reference(base: str, arguments: dict[str, Any]) -> None:
    reply = post(base, "/tool/get_shop", arguments)
    assert reply.summary == (200, "application/json", BOOKS_VIEW)


@pytest.mark.rule("R1")
@pytest.mark.parametrize("reference", ["SHOP_BOOKS", "sub.harbour-lane-books.example", "example"])
def test_an_id_keeps_its_case_and_a_sub_domain_is_not_its_parent(base: str, reference: str) -> None:
    assert post(base, "/tool/get_shop", {"shop_domain": reference}).status == 404


@pytest.mark.rule("A1", "A13", "I7", "I14", "R1")
def test_what_a_shop_does_not_state_is_null(base: str) -> None:
    reply = post(base, "/tool/get_shop", {"shop_domain": "shop_kitchen"})
    assert reply.json == {
        "id": "shop_kitchen",
        "name": "Zoë’s Küche 厨房",
        "aliases": [],
        "aliases_total": 0,
        "domain": "zoes-kueche.example",
        "category": "kitchen-ware",
        "categories": ["kitchen-ware", "books"],
        "countries": None,
        "offers": [],
        "offers_total": 0,
    }


@pytest.mark.rule("A3", "I12", "I13", "I14", "I15", "I52", "I53", "M11")
def test_categories_are_listed_flat_with_their_sizes_and_each_can_be_searched(base: str) -> None:
    listed = post(base, "/tool/list_categories", {}).json
    assert listed == {
        "results": [
            {"category": "Books", "slug": "books", "count": 2},
            {"category": "Garden", "slug": "garden", "count": 1},
            {"category": "Kitchen Ware", "slug": "kitchen-ware", "count": 1},
        ],
        "total_count": 3,
    }
    for category in listed["results"]:
        found = post(base, "/tool/find_shop", {"query": "", "category": category["slug"]}).json
        assert found["total_count"] == category["count"]


@pytest.mark.rule("I21", "I22", "I23", "I24", "I47", "I48", "I49", "M6.ignored", "M6.did_you_mean")
def test_a_page_says_what_lies_beyond_it(base: str) -> None:
    first = post(base, "/tool/find_shop", {"query": "books qqxx", "category": "books", "limit": 1}).json
    second = post(base, "/tool/find_shop", {"query": "books qqxx", "category": "books", "limit": 1, "offset": 1}).json
    beyond = post(base, "/tool/find_shop", {"query": "books", "category": "books", "offset": 2}).json
    near = post(base, "/tool/find_shop", {"query": "harbuorlanebooks"}).json
    assert first == {
        "results": [BOOKS_VIEW],
        "total_count": 2,
        "truncated": True,
        "ignored_terms": ["qqxx"],
        "category_truncated": False,
        "did_you_mean": [],
    }
    assert [shop["id"] for shop in second["results"]] == ["shop_kitchen"]
    assert (second["total_count"], second["truncated"]) == (2, False)
    assert (beyond["results"], beyond["total_count"], beyond["truncated"]) == ([], 2, False)
    assert near["did_you_mean"] == [
        {"id": "shop_books", "name": "Harbour Lane Books", "domain": "harbour-lane-books.example"}
    ]


@pytest.mark.rule("E2.protocol")
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(base: str, mode: str) -> None:
    async with Client(f"{base}/mcp", mode=mode) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("merge_shops", {})
    assert (raised.value.error.code, raised.value.error.message, raised.value.error.data) == (
        -32602,
        "There is no tool of this name; tools/list names those that there are.",
        None,
    )
