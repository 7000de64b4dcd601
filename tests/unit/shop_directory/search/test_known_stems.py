"""Which stems of names a word has: the same ones as if each stemmer was asked."""

from itertools import islice
from typing import Final

import pytest

from index_mappings.category_forms import Level, LevelledForm, category_forms, stem, unmarked
from index_mappings.table_words import unfolded
from indexer.catalogue.new_catalogue import category_records
from shop_directory.words.known_stems import KnownStems

# Endings that stemmers cut off, or replace by others.
_ENDINGS: Final = (
    "s", "es", "ies", "ing", "ying", "er", "eux", "aux", "emment", "ication", "iques", "en", "enen", "heden", "erij",
    "atie", "lijk", "innen", "ung", "mente", "enza", "encia", "ência", "ach", "ami", "ek", "ler", "lerin", "ım", "cı",
    "ssa", "lla", "llaia", "ista", "ben", "arna", "ene", "ов", "ами", "ات", "ες",
)  # fmt: skip


@pytest.mark.rule("M5.stems", "M10")
def test_a_word_has_the_known_stems_that_each_stemmer_finds() -> None:
    terms = {
        LevelledForm.from_term(term)
        for record in islice(category_records("shops"), 0, None, 4)
        for term in category_forms(
            record["slug"],
            record["name"],
            record["names"].items(),
            ((tag, text) for tag, texts in record["synonyms"].items() for text in texts),
        ).names
    }
    levels = (Level.OWN, Level.STEM)
    known = {
        (form.language, text)
        for form in terms
        if form.language is not None and form.level in levels
        for word in form.text.split()
        for text in (word, unmarked(word))
    }
    stems = KnownStems(known)
    languages = sorted({language for language, _ in known})
    words = sorted({unfolded(word) for form in terms if form.language is None for word in form.text.split()})
    typed = [*words, *(f"{word}{ending}" for word, ending in zip(words, _ENDINGS * len(words), strict=False))]
    assert len(languages) > 15
    wrong = []
    for word in typed:
        expected = {one: stem(one, word) for one in languages if (one, stem(one, word)) in known}
        if dict(stems.of(word)) != expected:
            wrong.append((word, expected, dict(stems.of(word))))
    assert wrong == []
    assert any(len(stems.of(word)) > 1 for word in words)
