"""Whatever is wrong with the input, each transport says so in the documented way: never a 422, never a 500."""

import json
from typing import Any

import pytest

from tests.support.served import Reply, post
from tests.support.wire import Era, call, invalid_input, problem

LONG_QUERY = json.dumps({"query": "x" * 201}).encode()
MANY_WORDS = json.dumps({"query": " ".join("abcdefghijklm")}).encode()
LONG_REFERENCE = b'{"shop_domain":"%s"}' % (b"a" * 2049)
TWO_REFERENCES = b'{"shop_domain":"a.example","shop_id_or_domain":"b.example"}'
MANY_SHOPS = b'{"shop_domains":[%s]}' % b",".join([b'"a"'] * 101)
TOO_MANY_SHOPS = b'{"shop_domains":[%s]}' % b",".join([b'"a"'] * 21)
WRONG_SHOPS = b'{"shop_domains":["a"," ",null,5,"%s","\\n\\u001c","b\\n"]}' % (b"a" * 2049)
FIND = (
    "is not a field of this tool; it takes query, country, limit, offset, category, countries, categories, ships_to, "
    "include_unsettled, has_code, verified_code, facets, cursor, shop_domain, shop_id_or_domain"
)
LIST_CATEGORIES = "is not a field of this tool; it takes shop_domain, shop_id_or_domain"
GET_SHOPS = "is not a field of this tool; it takes shop_domains, shop_domain, shop_id_or_domain"
NUMBER = "must be a whole number"
LIMIT = "must be from 1 to 100"
STRING = "must be a string"
BLANK = "must not be blank"
LONG = "may have at most 2,048 characters"
REQUIRED = "is required: a shop id or a domain"
TWO = "and shop_id_or_domain are two references, even if both name one shop; give one of them"
COUNTRY = "must be an assigned ISO 3166-1 alpha-2 code, such as DE or GB, or XK"
CONTROL = "holds a control character"
OF_TWENTY = "must be a list of 1 to 20 shop ids or domains"
EITHER = "and shop_domains are alternatives; give one of them"
LIST = "must be a list of 1 to 100 shop ids or domains"
MANY_COUNTRIES = b'{"query":"","countries":[%s]}' % b",".join([b'"DE"'] * 21)
SLUGS = "must be a list of 1 to 20 slugs of list_categories"
FACETS = "must be a list of 1 to 2 of category, country"
FACET = "must be one of category, country"
TWO_SLUGS = "and category are two filters of one kind; give one of them"
TWO_COUNTRIES = "and country are two filters of one kind; give one of them"
TWO_BEGINNINGS = "and offset are two beginnings of the page; give one of them"
CURSOR = (
    "is no next_cursor of this search: send it unchanged, with all other parameters as they were, or leave it out to "
    "begin again"
)
OFFERS_OFFSET = "must be from 0 to 100,000"
DEEP = "offset and limit together may not be over 100,000. Narrow the search by category or country instead."
UNKNOWN_CATEGORY = "No shop carries this category. Closest: books. Call list_categories for the slugs that exist."
ABSENT = "There is no shop with this id or domain in the directory."
NAMED = f"{ABSENT} To look a shop up by its name, call find_shop."
BELOW = f"{ABSENT} A sub-domain is not looked up as its parent domain."


def _case(rules: str, tool: str, arguments: bytes, *errors: tuple[str, str]) -> Any:  # noqa: ANN401 - a parameter set
    return pytest.param(tool, arguments, errors, id=f"{rules} {tool} {arguments[:60].decode()}")


@pytest.mark.rule(
    "R1.bounds", "R2", "R2.ignored", "R3", "R4", "M8", "E1", "E2", "E6", "I44", "I82", "I5", "A14", "F5", "F6", "F7",
    "F17",
)  # fmt: skip
@pytest.mark.parametrize(
    ("tool", "arguments", "errors"),
    [
        _case("I44", "find_shop", b"{}", ("query", "is required")),
        _case("R3", "find_shop", b'{"query":null}', ("query", STRING)),
        _case("R3", "find_shop", b'{"query":5}', ("query", STRING)),
        _case("R3", "find_shop", b'{"query":["a"]}', ("query", STRING)),
        _case("M8", "find_shop", LONG_QUERY, ("query", "may have at most 200 characters")),
        _case("M8", "find_shop", MANY_WORDS, ("query", "may have at most 12 words")),
        _case("M8", "find_shop", b'{"query":"","limit":0}', ("limit", LIMIT)),
        _case("M8", "find_shop", b'{"query":"","limit":101}', ("limit", LIMIT)),
        _case("M8", "find_shop", b'{"query":"","limit":-1}', ("limit", LIMIT)),
        _case("M8", "find_shop", b'{"query":"","limit":1e300}', ("limit", LIMIT)),
        _case("M8", "find_shop", b'{"query":"","limit":"50"}', ("limit", NUMBER)),
        _case("M8", "find_shop", b'{"query":"","limit":true}', ("limit", NUMBER)),
        _case("M8", "find_shop", b'{"query":"","limit":50.5}', ("limit", NUMBER)),
        _case("M8", "find_shop", b'{"query":"","limit":[]}', ("limit", NUMBER)),
        _case("M8", "find_shop", b'{"query":"","offset":-1}', ("offset", "must not be negative")),
        _case("M8", "find_shop", b'{"query":"","offset":"0"}', ("offset", NUMBER)),
        _case("R4", "find_shop", b'{"query":"","country":"UK"}', ("country", COUNTRY)),
        _case("R4", "find_shop", b'{"query":"","country":"XX"}', ("country", COUNTRY)),
        _case("R4", "find_shop", b'{"query":"","country":"DEU"}', ("country", COUNTRY)),
        _case("R4", "find_shop", b'{"query":"","country":" DE"}', ("country", COUNTRY)),
        _case("R4", "find_shop", '{"query":"","country":"ıt"}'.encode(), ("country", COUNTRY)),
        _case("R4", "find_shop", b'{"query":"","country":49}', ("country", STRING)),
        _case("R3", "find_shop", b'{"query":"","category":5}', ("category", STRING)),
        _case("F6", "find_shop", b'{"query":"","categories":[]}', ("categories", SLUGS)),
        _case("F6", "find_shop", b'{"query":"","categories":"books"}', ("categories", SLUGS)),
        _case("F6", "find_shop", MANY_COUNTRIES, ("countries", "must be a list of 1 to 20 country codes")),
        _case(
            "F6",
            "find_shop",
            b'{"query":"","categories":["books",null],"countries":["de","UK"]}',
            ("categories.1", STRING),
            ("countries.1", COUNTRY),
        ),
        _case("F6", "find_shop", b'{"query":"","category":"books","categories":["books"]}', ("categories", TWO_SLUGS)),
        _case("F6", "find_shop", b'{"query":"","country":"DE","countries":["DE"]}', ("countries", TWO_COUNTRIES)),
        _case("F5", "find_shop", b'{"query":"","facets":[]}', ("facets", FACETS)),
        _case("F5", "find_shop", b'{"query":"","facets":["country","city"]}', ("facets.1", FACET)),
        _case("F7", "find_shop", b'{"query":"","cursor":"AQ"}', ("cursor", CURSOR)),
        _case("F7", "find_shop", '{"query":"","cursor":"ÄÖ=="}'.encode(), ("cursor", CURSOR)),
        _case("F7", "find_shop", b'{"query":"","cursor":"AQ","offset":1}', ("cursor", TWO_BEGINNINGS)),
        _case("R3", "find_shop", b'{"qury":"x"}', ("query", "is required"), ("qury", FIND)),
        _case("R2.ignored", "find_shop", b'{"query":"","shop_domain":5}', ("shop_domain", STRING)),
        _case("R2.ignored", "list_categories", b'{"shop_id_or_domain":[]}', ("shop_id_or_domain", STRING)),
        _case("R3", "list_categories", b'{"limit":5}', ("limit", LIST_CATEGORIES)),
        _case("R2", "get_shop", b"{}", ("shop_domain", REQUIRED)),
        _case("R2", "get_shop", b'{"shop_domain":null,"shop_id_or_domain":""}', ("shop_domain", REQUIRED)),
        _case("R1", "get_shop", b'{"shop_domain":"   "}', ("shop_domain", BLANK)),
        _case("R1", "get_shop", '{"shop_id_or_domain":"\u200b "}'.encode(), ("shop_id_or_domain", BLANK)),
        _case("R1", "get_shop", LONG_REFERENCE, ("shop_domain", LONG)),
        _case("R2", "get_shop", TWO_REFERENCES, ("shop_domain", TWO)),
        _case("R3", "get_shop", b'{"shop_domain":{"id":1}}', ("shop_domain", STRING)),
        _case("E6", "find_shop", b'{"query":"a\\u0000b"}', ("query", CONTROL)),
        _case("E6", "find_shop", b'{"query":"a\\u0085b"}', ("query", CONTROL)),
        _case("E6", "find_shop", b'{"query":"","category":"a\\tb"}', ("category", CONTROL)),
        _case("E6", "get_shop", b'{"shop_domain":"a.\\nexample"}', ("shop_domain", CONTROL)),
        _case("E6", "get_shop", b'{"shop_domain":"a.example\\u001c"}', ("shop_domain", CONTROL)),
        _case("A1", "get_shop", b'{"shop_domain":"a","offers_offset":-1}', ("offers_offset", OFFERS_OFFSET)),
        _case("A1", "get_shop", b'{"shop_domain":"a","offers_offset":100001}', ("offers_offset", OFFERS_OFFSET)),
        _case("A1", "get_shop", b'{"shop_domain":"a","offers_offset":"1"}', ("offers_offset", NUMBER)),
        _case("A14", "get_shops", b"{}", ("shop_domains", "is required")),
        _case("A14", "get_shops", b'{"shop_domains":null}', ("shop_domains", LIST)),
        _case("A14", "get_shops", b'{"shop_domains":"a.example"}', ("shop_domains", LIST)),
        _case("A14", "get_shops", b'{"shop_domains":[]}', ("shop_domains", LIST)),
        _case("A14", "get_shops", MANY_SHOPS, ("shop_domains", LIST)),
        _case(
            "A14",
            "get_shops",
            WRONG_SHOPS,
            ("shop_domains.1", BLANK),
            ("shop_domains.2", REQUIRED),
            ("shop_domains.3", STRING),
            ("shop_domains.4", LONG),
            ("shop_domains.5", CONTROL),
        ),
        _case("F17", "list_coupons", TOO_MANY_SHOPS, ("shop_domains", OF_TWENTY)),
        _case("F17", "get_shipping_policy", b'{"shop_domains":[]}', ("shop_domains", OF_TWENTY)),
        _case("F17", "get_shipping_policy", b'{"shop_domains":""}', ("shop_domain", REQUIRED)),
        _case("F17", "get_shipping_policy", b'{"shop_domains":["a",""]}', ("shop_domains.1", BLANK)),
        _case("F17", "list_coupons", b'{"shop_domains":["a"],"shop_domain":"a"}', ("shop_domain", EITHER)),
        _case("F17", "get_shipping_policy", b'{"shop_domains":["a"],"shop_id_or_domain":"a"}', ("shop_domain", EITHER)),
        _case("F8", "get_shop_policies", b'{"shop_domains":["a"],"shop_domain":"a"}', ("shop_domain", EITHER)),
        _case("R2.ignored", "get_shops", b'{"shop_domains":["a"],"shop_domain":5}', ("shop_domain", STRING)),
        _case("R3", "get_shops", b'{"shop_domains":["a"],"limit":5}', ("limit", GET_SHOPS)),
        _case("F8", "get_shop_policies", b'{"country":"UK"}', ("shop_domain", REQUIRED), ("country", COUNTRY)),
        _case("E6", "list_categories", b'{"shop_domain":"\\u007f"}', ("shop_domain", CONTROL)),
        _case("E6", "list_categories", b'{"a\\u0001":1}', ("(a field)", CONTROL)),
        _case("E6", "list_categories", b'{"shop_domain":[{"\\u0002":1}]}', ("shop_domain", CONTROL)),
        _case("M8", "find_shop", b'{"query":7,"limit":0}', ("query", STRING), ("limit", LIMIT)),
    ],
)
def test_a_wrong_field_is_named_alike_on_every_transport(
    base: str, tool: str, arguments: bytes, errors: tuple[tuple[str, str], ...]
) -> None:
    reply = post(base, f"/tool/{tool}", arguments)
    listed = [(error["field"], error["message"]) for error in reply.json["errors"]]
    assert sorted(listed) == sorted(errors)
    assert reply.summary == (400, "application/problem+json", invalid_input(*listed))
    _assert_mcp_answers(base, tool, arguments, reply)


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


@pytest.mark.rule("V2", "I6", "I55", "I57", "I83", "R1", "R1.bounds", "C2", "E2", "F11")
@pytest.mark.parametrize("tool", ["get_shop", "list_coupons", "get_shipping_policy", "get_shop_policies"])
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
    _assert_mcp_answers(base, tool, json.dumps({"shop_domain": reference}).encode(), asked)


def _assert_mcp_answers(base: str, tool: str, arguments: bytes, reply: Reply) -> None:
    for era in Era:
        answer = call(base, era, tool, arguments)
        result = answer.json["result"]
        assert (answer.status, result["isError"], "structuredContent" in result) == (200, True, False)
        assert [block["text"] for block in result["content"]] == [reply.body.decode()]
