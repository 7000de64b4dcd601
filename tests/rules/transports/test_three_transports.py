"""REST, MCP in both eras and stdio are one service: the same answers to the byte, the same errors one to one."""

import json
from typing import Final

import pytest

from tests.support.problems import problem
from tests.support.rpc import Era, call
from tests.support.served import post

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
