"""Which categories a word means and which are suggested, held against the rules said plainly (M5, M10)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index_mappings.category_forms import category_forms
from index_mappings.documents import CategoryEntry
from index_mappings.forms import query_forms
from service.search.categories import CategoryTable
from service.search.query_words import find_forms
from tests.support.reference.backend import ReferenceCategories

_TEXTS = st.sampled_from(("book", "books", "bo", "24h", "garden tools", "garden", "gardena", "Gärten", "緑 茶", "x"))
# Words that are near to each other, of few characters, so that errors and swaps meet often.
_NEAR = st.text("abcd", min_size=1, max_size=7)


def _entry(slug: str, name: str, count: int, other_names: list[str]) -> CategoryEntry:
    forms = category_forms(slug, name, [("de", other) for other in other_names])
    return CategoryEntry(slug, name, count, forms.words, forms.alone, forms.whole)


categories = st.lists(
    st.builds(
        _entry,
        slug=_TEXTS.map(lambda text: text.replace(" ", "-")),
        name=_TEXTS,
        count=st.integers(1, 3),
        other_names=st.lists(_TEXTS, max_size=2),
    ),
    max_size=8,
    unique_by=lambda entry: entry.slug,
)
near_categories = st.lists(
    st.builds(_entry, slug=_NEAR, name=_NEAR, count=st.integers(1, 3), other_names=st.lists(_NEAR, max_size=3)),
    max_size=8,
    unique_by=lambda entry: entry.slug,
)


@pytest.mark.rule("M5", "I24")
@given(categories, st.lists(_TEXTS, max_size=4).map(" ".join), st.integers(1, 3), st.none() | st.just("book"))
def test_words_resolve_by_whole_names_by_their_stems_and_else_by_beginnings(
    known: list[CategoryEntry], typed: str, cap: int, category: str | None
) -> None:
    words = find_forms(typed).words
    assert CategoryTable(known).resolve(words, cap, category) == ReferenceCategories(known).resolve(
        words, cap, category
    )


@pytest.mark.rule("M10")
@given(near_categories, st.text("abcd", min_size=4, max_size=8))
@example([_entry("a", "dcba", 1, [])], "dcbab")
@example([_entry("a", "abcd", 1, [])], "babcd")
@example([_entry("abcde", "abcde", 1, [])], "bacde")
def test_one_typing_error_is_forgiven_wherever_it_is(known: list[CategoryEntry], typed: str) -> None:
    query = query_forms(typed)
    assert CategoryTable(known).suggested(query, 20) == ReferenceCategories(known).suggested(query, 20)
