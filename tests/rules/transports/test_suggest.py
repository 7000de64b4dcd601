"""GET /suggest over HTTP: its answer, its cache, and its strict reading of the query string."""

import pytest

from tests.support.problems import invalid_input
from tests.support.served import get

ALLOWED = "is not a parameter of /suggest; it takes q, limit, country"
COUNTRY = "must be an assigned ISO 3166-1 alpha-2 code, such as DE or GB, or XK"
LIMIT = "must be a whole number from 1 to 20"
ESCAPES = "must be UTF-8 with valid percent-escapes"


@pytest.mark.rule("I72", "M10", "R3", "R3.query_string", "E6")
@pytest.mark.parametrize(
    ("query_string", "echo"),
    [
        ("q=", ""),
        ("q", ""),
        ("q=+%20", "  "),
        ("q=%E2%80%8B", "\u200b"),
        ("q=%09%0A", "\t\n"),
        ("q=&limit=&country=", ""),
        ("q=&limit=8", ""),
        ("&q=&&_=17&_cb=1&_cb=2&utm_source=x&utm_=%ff", ""),
    ],
)
def test_a_blank_q_is_answered_with_the_most_popular_and_echoed_as_sent(
    base: str, query_string: str, echo: str
) -> None:
    reply = get(base, f"/suggest?{query_string}")
    assert (reply.status, reply.json["query"]) == (200, echo)
    assert [shop["id"] for shop in reply.json["shops"]] == ["shop_books", "shop_kitchen", "shop_garden"]


@pytest.mark.rule("R3.query_string", "R4", "M9", "M10", "E1", "E6", "I68", "I71", "C1.http")
@pytest.mark.parametrize(
    ("query_string", "field", "message"),
    [
        ("", "q", "is required; it may be empty"),
        ("limit=3", "q", "is required; it may be empty"),
        ("q=a&q=b", "q", "is given more than once"),
        ("q=a&country=DE&country=DE", "country", "is given more than once"),
        ("q=a&lang=de", "lang", ALLOWED),
        ("q=a&Q=b", "Q", ALLOWED),
        ("q=a&=b", "(a field)", ALLOWED),
        ("q=a&%ff=b", "(a field)", ALLOWED),
        ("q=a&%01=b", "(a field)", ALLOWED),
        ("q=a&" + "x" * 65 + "=b", "(a field)", ALLOWED),
        ("q=%ff", "q", ESCAPES),
        ("q=%ED%A0%80", "q", ESCAPES),
        ("q=100%", "q", ESCAPES),
        ("q=%zz", "q", ESCAPES),
        ("q=%00", "q", "holds a control character"),
        ("q=" + "a" * 257, "q", "may have at most 256 characters"),
        ("q=a&limit=0", "limit", LIMIT),
        ("q=a&limit=21", "limit", LIMIT),
        ("q=a&limit=-1", "limit", LIMIT),
        ("q=a&limit=8.0", "limit", LIMIT),
        ("q=a&limit=%D9%A3", "limit", LIMIT),
        ("q=a&limit=" + "9" * 5000, "limit", LIMIT),
        ("q=a&country=UK", "country", COUNTRY),
        ("q=a&country=%20DE", "country", COUNTRY),
    ],
)
def test_a_wrong_parameter_is_named_and_never_repeated(base: str, query_string: str, field: str, message: str) -> None:
    reply = get(base, f"/suggest?{query_string}")
    assert reply.summary == (400, "application/problem+json", invalid_input((field, message)))
    assert (reply.headers["cache-control"], "etag" in reply.headers) == ("no-store", False)


@pytest.mark.rule("C1", "C1.http")
def test_a_caller_who_has_the_answer_gets_304(base: str) -> None:
    first = get(base, "/suggest?q=harb")
    tag = first.headers["etag"]
    assert (tag[0], tag[-1], len(tag)) == ('"', '"', 34)
    for known in (tag, f'"other", W/{tag}', "*"):
        again = get(base, "/suggest?q=harb", if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "public, max-age=3"
        assert again.headers["x-generation"] == first.headers["x-generation"]
    assert get(base, "/suggest?q=harb&limit=8&_=1", if_none_match=tag).status == 304
    for other in ("q=Harb", "q=harb+", "q=harb&limit=7", "q=harb&country=DE"):
        assert get(base, f"/suggest?{other}", if_none_match=tag).status == 200
