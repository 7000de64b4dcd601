"""Prepared answers: of one stamp, bounded in bytes, the longest unused leave first."""

import pytest

from service.prepared import BoundedCache, Prepared, PreparedAnswers
from service.prepared import prepared as prepared_of

FIRST, SECOND = ("20261121t093000000000-abcdef", 1), ("20261121t093000000000-abcdef", 2)


def prepared(tail: bytes = b',"shops":[]}') -> Prepared:
    return prepared_of(b'"tag"', b'{"query":"a"', tail)


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


def test_what_is_larger_than_all_of_it_is_not_kept_and_drives_nothing_out() -> None:
    cache = BoundedCache[str](2_000)
    cache.put("a", "A", 100)
    cache.put("b", "B", 1_600)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def test_a_cache_of_nothing_keeps_nothing() -> None:
    answers = PreparedAnswers(0)
    answers.keep_whole(FIRST, b"q=a", prepared())
    answers.keep_found(FIRST, "a", b"tail")
    assert (answers.on, answers.whole(FIRST, b"q=a"), answers.found(FIRST, "a"), answers.size) == (False, None, None, 0)


@pytest.mark.rule("C1")
def test_answers_of_an_older_stamp_are_never_found_again() -> None:
    answers = PreparedAnswers(100_000)
    answers.keep_whole(FIRST, b"q=a", prepared())
    answers.keep_found(FIRST, "a", b"tail")
    assert (answers.whole(FIRST, b"q=a"), answers.found(FIRST, "a")) == (prepared(), b"tail")
    assert (answers.whole(SECOND, b"q=a"), answers.found(SECOND, "a")) == (None, None)
    answers.keep_found(SECOND, "b", b"other")
    assert (answers.whole(FIRST, b"q=a"), answers.found(FIRST, "a")) == (None, None)
    assert answers.found(SECOND, "b") == b"other"


def test_many_answers_stay_within_the_bound_and_long_query_strings_are_not_kept() -> None:
    answers = PreparedAnswers(50_000)
    for number in range(1_000):
        tail = b"x" * 1_000
        answers.keep_found(FIRST, number, tail)
        answers.keep_whole(FIRST, b"q=%d" % number, prepared(tail))
    assert 40_000 < answers.size <= 50_000
    answers.keep_whole(FIRST, b"q=" + b"a" * 600, prepared())
    assert answers.whole(FIRST, b"q=" + b"a" * 600) is None
