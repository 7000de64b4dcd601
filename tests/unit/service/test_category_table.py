"""Which categories a word means and which are suggested, held against the rules said plainly (M5, M10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.documents import Category
from index_mappings.forms import query_forms
from index_mappings.text import words_of
from service.search.categories import CategoryTable

_TEXTS = st.sampled_from(("book", "books", "bo", "24h", "garden tools", "garden", "gardena", "Gärten", "緑 茶", "x"))

categories = st.lists(
    st.builds(Category, slug=_TEXTS.map(lambda text: text.replace(" ", "-")), name=_TEXTS, count=st.integers(1, 3)),
    max_size=8,
    unique_by=lambda category: category.slug,
)


def _words(category: Category) -> set[str]:
    return {*words_of(category.name), *words_of(category.slug)}


@pytest.mark.rule("M5")
@given(
    categories, st.sampled_from(("b", "bo", "boo", "book", "books", "24", "24h", "gar", "garden", "garten", "緑", ""))
)
def test_a_word_means_the_categories_with_a_word_that_it_equals_or_from_three_characters_begins(
    known: list[Category], word: str
) -> None:
    meant = [
        category.slug
        for category in sorted(known, key=lambda category: (-category.count, category.slug))
        if any(own == word or (len(word) >= 3 and own.startswith(word)) for own in _words(category))
    ]
    assert CategoryTable(known).slugs_of(word) == tuple(meant)


@pytest.mark.rule("M10")
@given(categories, st.sampled_from(("b", "Boo", "garden t", "xx garden", "緑", "gä", "qq", "24h b")), st.integers(1, 3))
def test_those_are_suggested_that_have_a_word_which_begins_with_the_last_word_typed(
    known: list[Category], typed: str, limit: int
) -> None:
    query = query_forms(typed)
    suggested = [
        category
        for category in sorted(known, key=lambda category: (-category.count, category.slug))
        if any(own.startswith((query.spaced, query.words[-1])) for own in _words(category))
    ]
    assert CategoryTable(known).suggested(query, limit) == tuple(suggested[:limit])


@pytest.mark.rule("M10")
@given(categories)
def test_nothing_typed_suggests_the_largest_and_punctuation_none(known: list[Category]) -> None:
    table = CategoryTable(known)
    assert table.suggested(query_forms(" "), 2) == table.categories[:2]
    assert table.suggested(query_forms("??"), 2) == ()
