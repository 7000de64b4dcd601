"""The query string of /suggest, read without HTTP, and the bounded cache of its responses."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.errors import InvalidInputError
from service.search.protocol import SuggestQuery
from service.suggest.wire import BoundedCache, CachedResponse, ParsedQuery, ResponseCache, parse


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


FIRST, SECOND = ("20261121t093000000000-abcdef", 1), ("20261121t093000000000-abcdef", 2)


def response(results: bytes = b',"shops":[]}') -> CachedResponse:
    return CachedResponse.of(b'"tag"', b'{"query":"a"', results)


def test_what_was_used_last_stays() -> None:
    cache = BoundedCache[str](3 * 600)
    for key in "abc":
        cache.put(key, key.upper(), 100)
    assert cache.get("a") == "A"
    cache.put("d", "D", 100)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    assert cache.size == 3 * 600


def test_a_value_that_is_put_again_counts_once() -> None:
    cache = BoundedCache[str](2_000)
    for _ in range(5):
        cache.put("a", "A", 300)
    assert cache.size == 800


def test_a_value_over_the_bound_is_not_cached_and_removes_nothing() -> None:
    cache = BoundedCache[str](2_000)
    cache.put("a", "A", 100)
    cache.put("b", "B", 1_600)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def test_a_cache_with_a_bound_of_0_caches_nothing() -> None:
    cache = ResponseCache(0)
    cache.put_response(FIRST, b"q=a", response())
    cache.put_results(FIRST, "a", b"results")
    assert (cache.enabled, cache.response(FIRST, b"q=a"), cache.results(FIRST, "a")) == (False, None, None)


@pytest.mark.rule("C1")
def test_responses_of_an_older_stamp_are_never_found_again() -> None:
    cache = ResponseCache(100_000)
    cache.put_response(FIRST, b"q=a", response())
    cache.put_results(FIRST, "a", b"results")
    assert (cache.response(FIRST, b"q=a"), cache.results(FIRST, "a")) == (response(), b"results")
    assert (cache.response(SECOND, b"q=a"), cache.results(SECOND, "a")) == (None, None)
    cache.put_results(SECOND, "b", b"other")
    assert (cache.response(FIRST, b"q=a"), cache.results(FIRST, "a")) == (None, None)
    assert cache.results(SECOND, "b") == b"other"


def test_many_responses_stay_within_the_bound_and_long_query_strings_are_not_cached() -> None:
    cache = ResponseCache(50_000)
    for number in range(1_000):
        results = b"x" * 1_000
        cache.put_results(FIRST, number, results)
        cache.put_response(FIRST, b"q=%d" % number, response(results))
    assert 40_000 < cache._responses.size + cache._results.size <= 50_000
    cache.put_response(FIRST, b"q=" + b"a" * 600, response())
    assert cache.response(FIRST, b"q=" + b"a" * 600) is None
