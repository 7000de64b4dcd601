"""Whatever is wrong with the input, each transport says so in the documented way: never a 422, never a 500."""

import json
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.support.served import Reply, post
from tests.support.wire import Era, call, invalid_input, problem

LONG: Final = "a" * 2049
# Arguments that are too long to be written out; the other ones are in the file.
LONG_ARGUMENTS: Final[list[tuple[str, str, dict[str, str]]]] = [
    ("find_shop", json.dumps({"query": "x" * 201}), {"query": "may have at most 200 characters"}),
    ("get_shop", json.dumps({"shop_domain": LONG}), {"shop_domain": "may have at most 2,048 characters"}),
    (
        "get_shops",
        json.dumps({"shop_domains": ["a"] * 101}),
        {"shop_domains": "must be a list of 1 to 100 shop ids or domains"},
    ),
    (
        "get_shops",
        json.dumps({"shop_domains": ["a", " ", None, 5, LONG, "\n\u001c", "b\n"]}),
        {
            "shop_domains.1": "must not be blank",
            "shop_domains.2": "is required: a shop id or a domain",
            "shop_domains.3": "must be a string",
            "shop_domains.4": "may have at most 2,048 characters",
            "shop_domains.5": "holds a control character",
        },
    ),
]
WRONG: Final = [
    (tool, arguments, errors)
    for tool, rows in tomllib.loads(Path(__file__).with_name("bad_input.toml").read_text(encoding="utf-8")).items()
    for arguments, errors in rows.items()
]
DEEP = "offset plus limit may be at most 100,000. Narrow the search by category or country instead."
UNKNOWN_CATEGORY = "No shop carries this category. Closest: books. Call list_categories for the slugs that exist."


@pytest.mark.rule(
    "R1.bounds", "R2", "R2.ignored", "R3", "R4", "M8", "E1", "E2", "E6", "I44", "I82", "I5", "A14", "F5", "F6", "F7",
    "F17",
)  # fmt: skip
@pytest.mark.parametrize(
    ("tool", "arguments", "errors"), [*WRONG, *LONG_ARGUMENTS], ids=lambda one: one[:60] if isinstance(one, str) else ""
)
def test_a_wrong_field_is_named_alike_on_every_transport(
    base: str, tool: str, arguments: str, errors: dict[str, str]
) -> None:
    reply = post(base, f"/tool/{tool}", arguments.encode())
    listed = [(error["field"], error["message"]) for error in reply.json["errors"]]
    assert sorted(listed) == sorted(errors.items())
    assert reply.summary == (400, "application/problem+json", invalid_input(*listed))
    _assert_mcp_answers(base, tool, arguments.encode(), reply)


@pytest.mark.rule("M8", "E4", "E1", "E2", "I51", "I82", "F6")
@pytest.mark.parametrize(
    ("arguments", "code", "detail", "field"),
    [
        (b'{"query":"","offset":99951}', "page_too_deep", DEEP, None),
        (b'{"query":"","offset":1%s}' % (b"0" * 300), "page_too_deep", DEEP, None),
        (b'{"query":"","category":"bookz"}', "unknown_category", UNKNOWN_CATEGORY, "category"),
        (b'{"query":"","categories":["books","bookz"]}', "unknown_category", UNKNOWN_CATEGORY, "categories.1"),
    ],
)
def test_a_refused_search_says_what_to_do(
    base: str, arguments: bytes, code: str, detail: str, field: str | None
) -> None:
    reply = post(base, "/tool/find_shop", arguments)
    errors = [(field, "must be a slug of list_categories; closest: books")] if field else []
    assert reply.summary == (400, "application/problem+json", problem(400, code, detail, *errors))
    _assert_mcp_answers(base, "find_shop", arguments, reply)


@pytest.mark.rule("E6", "E1.transport")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"query":', "is not valid JSON"),
        (b"{'query':''}", "is not valid JSON"),
        (b'{"query":"a\tb"}', "is not valid JSON"),
        (2 * b"\xef\xbb\xbf" + b'{"query":""}', "is not valid JSON"),
        (b'{"query":"\xff"}', "is not UTF-8"),
        (b'{"query":"\xed\xa0\x80"}', "is not UTF-8"),
        (b'{"query":"","limit":NaN}', "holds NaN or Infinity, which JSON does not have"),
        (b'{"query":"","limit":-Infinity}', "holds NaN or Infinity, which JSON does not have"),
        (b'{"query":"","limit":1e999}', "holds a number that is too large"),
        (b'{"query":"","limit":%s}' % (b"9" * 5000), "holds a number with too many digits"),
        (b'{"query":"a","query":"b"}', "has the same key twice in one object"),
        (b'{"query":{"a":1,"a":2}}', "has the same key twice in one object"),
        (b'{"query":"\\ud800"}', "holds half of a surrogate pair"),
        (b'{"\\udfff":1}', "holds half of a surrogate pair"),
        (b'{"query":%s1%s}' % (b"[" * 40, b"]" * 40), "is nested more than 32 levels deep"),
        (b"[" * 30_000, "is nested more than 32 levels deep"),
    ],
)
def test_what_is_no_strict_json_is_refused_before_anything_reads_it(base: str, body: bytes, reason: str) -> None:
    reply = post(base, "/tool/find_shop", body)
    assert reply.summary == (400, "application/problem+json", problem(400, "invalid_input", f"The body {reason}."))
    for era in Era:
        answer = call(base, era, "find_shop", body)
        error = {"code": -32700, "message": f"The message {reason}."}
        assert answer.summary == (400, "application/json", {"jsonrpc": "2.0", "id": None, "error": error})


@pytest.mark.rule("E6", "R5")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "The body is empty: send a JSON object, {} at least."),
        (b" \n", "The body is empty: send a JSON object, {} at least."),
        (b"[]", "The body must be a JSON object."),
        (b'"a"', "The body must be a JSON object."),
        (b"null", "The body must be a JSON object."),
    ],
)
def test_a_body_that_is_no_object_is_refused(base: str, body: bytes, detail: str) -> None:
    reply = post(base, "/tool/list_categories", body)
    assert reply.summary == (400, "application/problem+json", problem(400, "invalid_input", detail))


@pytest.mark.rule("E6")
def test_a_body_of_exactly_64_kib_is_read(base: str) -> None:
    empty = b'{"query":""}'
    reply = post(base, "/tool/find_shop", empty + b" " * (65_536 - len(empty)))
    assert (reply.status, reply.json["total_count"]) == (200, 3)


@pytest.mark.rule("R3", "E1", "E5")
@pytest.mark.parametrize(
    ("query_string", "names"),
    [
        ("limit=1", ["limit"]),
        ("limit=1&category=zqcanaryzq&limit=2", ["limit", "category"]),
        ("utm_source=x&_=1", ["utm_source", "_"]),
        ("a", ["a"]),
        ("%00=1", ["(a field)"]),
        ("&", ["(a field)"]),
    ],
)
def test_a_query_string_on_the_path_of_a_tool_is_named_and_refused(
    base: str, query_string: str, names: list[str]
) -> None:
    message = "is in the query string, where this path takes nothing; send it in the JSON body"
    reply = post(base, f"/tool/find_shop?{query_string}", b'{"query":""}')
    assert reply.summary == (400, "application/problem+json", invalid_input(*((name, message) for name in names)))


def _assert_mcp_answers(base: str, tool: str, arguments: bytes, reply: Reply) -> None:
    for era in Era:
        answer = call(base, era, tool, arguments)
        result = answer.json["result"]
        assert (answer.status, result["isError"], "structuredContent" in result) == (200, True, False)
        assert [block["text"] for block in result["content"]] == [reply.body.decode()]
