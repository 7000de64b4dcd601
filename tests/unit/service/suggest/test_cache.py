"""Cached responses are of one stamp and within a bound of bytes; the least recently used go first."""

import pytest

from service.suggest.wire import BoundedCache, CachedResponse, ResponseCache

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
    assert (len(cache), cache.size) == (3, 3 * 600)


def test_a_value_that_is_put_again_counts_once() -> None:
    cache = BoundedCache[str](2_000)
    for _ in range(5):
        cache.put("a", "A", 300)
    assert (len(cache), cache.size) == (1, 800)


def test_a_value_over_the_bound_is_not_cached_and_removes_nothing() -> None:
    cache = BoundedCache[str](2_000)
    cache.put("a", "A", 100)
    cache.put("b", "B", 1_600)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def test_a_cache_with_a_bound_of_0_caches_nothing() -> None:
    cache = ResponseCache(0)
    cache.put_response(FIRST, b"q=a", response())
    cache.put_results(FIRST, "a", b"results")
    assert (cache.enabled, cache.response(FIRST, b"q=a"), cache.results(FIRST, "a"), cache.size) == (
        False,
        None,
        None,
        0,
    )


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
    assert 40_000 < cache.size <= 50_000
    cache.put_response(FIRST, b"q=" + b"a" * 600, response())
    assert cache.response(FIRST, b"q=" + b"a" * 600) is None
