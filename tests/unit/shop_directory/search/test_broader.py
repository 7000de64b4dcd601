"""Which words are left out of a query without a match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shop_directory.search.broader import SEARCHES, broader_queries


@pytest.mark.rule("M6.broader")
@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(0, 4), max_size=12), st.data())
def test_at_most_five_searches_are_made_and_each_leaves_something(counts: dict[str, int], data: st.DataObject) -> None:
    texts = list(counts)
    goods = data.draw(st.sets(st.sampled_from(texts))) if texts else set()
    asked = [words for left_outs in broader_queries(texts, counts, goods) for words in left_outs]
    assert len(asked) <= SEARCHES
    assert all(0 < len(words) < len(texts) for words in asked)
    # A word without shops is in no query that finds any.
    assert all({text for text in texts if not counts[text]} <= set(words) for words in asked)


@pytest.mark.rule("M6.broader")
def test_words_that_name_a_category_are_kept_rather_than_others() -> None:
    counts = dict.fromkeys("abcde", 3) | {"d": 1}
    one_less, fewer = broader_queries("abcde", counts, {"a", "d"})
    assert one_less == (("b",), ("c",), ("e",))
    assert fewer == (("d", "a", "b"), ("d", "a", "b", "c"))
