"""The query string of /suggest, read without HTTP."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.errors import InvalidInputError
from service.search.protocol import SuggestQuery
from service.suggest.wire import ParsedQuery, parse


@pytest.mark.rule("I70", "R4", "E6", "R3", "R3.query_string")
@pytest.mark.parametrize(
    ("query_string", "parsed"),
    [
        (b"q=a", ParsedQuery("a", SuggestQuery.of("a", None, 8))),
        (b"q=a+b%20c", ParsedQuery("a b c", SuggestQuery.of("a b c", None, 8))),
        (b"q=a%0D%0Ab", ParsedQuery("a\r\nb", SuggestQuery.of("a  b", None, 8))),
        (b"q=a=b", ParsedQuery("a=b", SuggestQuery.of("a=b", None, 8))),
        (b"q=%2B%26%25", ParsedQuery("+&%", SuggestQuery.of("+&%", None, 8))),
        ("q=ü".encode(), ParsedQuery("ü", SuggestQuery.of("ü", None, 8))),
        (b"limit=020&country=de&q=", ParsedQuery("", SuggestQuery.of("", "DE", 20))),
        (b"q=a&limit=&country=", ParsedQuery("a", SuggestQuery.of("a", None, 8))),
        (b"q=" + b"a" * 256, ParsedQuery("a" * 256, SuggestQuery.of("a" * 256, None, 8))),
        (b"%71=a", ParsedQuery("a", SuggestQuery.of("a", None, 8))),
    ],
)
def test_a_query_string_is_decoded_as_forms_are(query_string: bytes, parsed: ParsedQuery) -> None:
    assert parse(query_string) == parsed


@pytest.mark.rule("R3.query_string", "E6")
@settings(deadline=None)  # the first text that is not ASCII loads tables
@given(
    st.lists(st.sampled_from([*"aZ09+._~*-%/ü", "%20", "%2B"]), max_size=12).map(lambda parts: "".join(parts).encode())
    | st.integers(250, 260).map(lambda size: b"x" * size),
    st.sampled_from(
        [b"", *(b"&limit=" + value for value in (b"", b"0", b"3", b"08", b"20", b"21", b"008", b"x", b"-1"))]
    ),
    st.sampled_from([b"", *(b"&country=" + value for value in (b"", b"DE", b"gb", b"QQ", b"D"))]),
)
@example(b"a" * 256, b"", b"")
@example(b"%20" * 256, b"&limit=20", b"&country=DE")
@example(b"%20" * 257, b"", b"")
@example(b"a" * 257, b"", b"")
def test_common_query_strings_are_read_like_all_others(q: bytes, limit: bytes, country: bytes) -> None:
    common = b"q=" + q + limit + country
    # An empty pair says nothing, and is not common.
    assert _read(common) == _read(common + b"&")


def _read(query_string: bytes) -> ParsedQuery | tuple[str, ...]:
    try:
        return parse(query_string)
    except InvalidInputError as error:
        return tuple(f"{each.field} {each.message}" for each in error.errors)


@pytest.mark.rule("R3.query_string", "E1")
def test_all_mistakes_are_named_together() -> None:
    with pytest.raises(InvalidInputError) as raised:
        parse(b"limit=x&country=UK&lang=de&q=%ff")
    assert [error.field for error in raised.value.errors] == ["lang", "q", "limit", "country"]


@pytest.mark.rule("E6")
def test_a_query_string_has_a_limit() -> None:
    assert parse(b"q=&_=" + b"x" * (16_384 - 5)).echo == ""
    with pytest.raises(InvalidInputError) as raised:
        parse(b"q=&_=" + b"x" * (16_385 - 5))
    assert raised.value.problem()["detail"] == "The query string may hold at most 16,384 bytes."
