"""The levels by which a word, or a run of words, means categories (M5)."""

import pytest

from index_mappings.category_forms import Level, LevelledForm, category_forms, unmarked
from index_mappings.table_words import unfolded
from index_mappings.text import typed_words
from service.search.category_levels import CategoryLevels, Meaning

_CATEGORIES = {
    "shoes": ("Shoes", [("de", "Schuhe"), ("ja", "靴"), ("tr", "Ayakkabı")], [("en", "sneakers"), ("de", "Stiefel")]),
    "books": ("Books", [("de", "Bücher"), ("es", "Libros")], [("en", "novels"), ("fr", "livre de poche")]),
    "pet": ("Pet Shop", [("tr", "Evcil Hayvan"), ("fr", "Animalerie")], []),
    "outdoor": ("Outdoor", [], [("es", "ropa de montaña")]),
    "food": ("Deli", [("tr", "Gıda")], [("en", "coffee and tea"), ("ja", "お茶")]),
    "clothes": ("Clothing", [("tr", "Giyim")], [("en", "T-shirts")]),
}  # fmt: skip
_LEVELS = CategoryLevels(category_forms(slug, *named).names for slug, named in _CATEGORIES.items())


def _meant(typed: str) -> tuple[Level, set[str]]:
    words = typed_words(typed)
    texts, raw = [text for text, _ in words], [unfolded(one) for _, one in words]
    meaning = _LEVELS.of_word(texts[0], raw[0]) if len(words) == 1 else _LEVELS.of_run(texts, raw)
    return meaning.level, {[*_CATEGORIES][position] for position in meaning.positions}


@pytest.mark.rule("M5", "M5.stems", "M5.runs", "M5.levels")
@pytest.mark.parametrize(
    ("typed", "level", "slugs"),
    [
        ("shoes", Level.OWN, {"shoes"}),
        ("SHOE", Level.OWN, {"shoes"}),
        ("pet shop", Level.OWN, {"pet"}),
        ("petshop", Level.OWN, {"pet"}),
        ("pets", Level.OWN, {"pet"}),
        ("schuhe", Level.OTHER_LANGUAGE, {"shoes"}),
        ("靴", Level.OTHER_LANGUAGE, {"shoes"}),
        ("libros", Level.OTHER_LANGUAGE, {"books"}),
        ("evcil hayvan", Level.OTHER_LANGUAGE, {"pet"}),
        ("giyim", Level.OTHER_LANGUAGE, {"clothes"}),
        ("sneakers", Level.SYNONYM, {"shoes"}),
        ("coffee & tea", Level.SYNONYM, {"food"}),
        ("coffee and tea", Level.SYNONYM, {"food"}),
        ("coffee tea", Level.SYNONYM, {"food"}),
        ("livre poche", Level.SYNONYM, {"books"}),
        ("t-shirts", Level.SYNONYM, {"clothes"}),
        ("sneaker", Level.STEM, {"shoes"}),
        ("buch", Level.STEM, {"books"}),
        ("bucher", Level.OTHER_LANGUAGE, {"books"}),
        ("t-shirt", Level.STEM, {"clothes"}),
        ("ropa", Level.WORD, {"outdoor"}),
        ("ropas", Level.WORD_STEM, {"outdoor"}),
        ("shop", Level.ENDING, set()),
        ("snea", Level.BEGINNING, {"shoes"}),
        ("sn", Level.ENDING, set()),
        ("Damenschuhe", Level.ENDING, {"shoes"}),
        ("Schuhladen", Level.ENDING, {"shoes"}),
        ("靴屋", Level.ENDING, {"shoes"}),
        ("bookshop", Level.ENDING, {"books"}),
        ("nightbook", Level.ENDING, {"books"}),
        ("gi", Level.ENDING, set()),
        ("qqxx", Level.ENDING, set()),
    ],
)
def test_a_text_has_the_categories_of_its_best_level_only(typed: str, level: Level, slugs: set[str]) -> None:
    assert _meant(typed) == (level, slugs)


@pytest.mark.rule("M5.levels")
def test_names_are_told_from_hints() -> None:
    assert [level for level in Level if level.names] == [Level.OWN, Level.OTHER_LANGUAGE, Level.SYNONYM, Level.STEM]


@pytest.mark.rule("M5.stems")
def test_marks_are_compared_where_they_are_typed() -> None:
    levels = CategoryLevels([category_forms("x", "X", [("de", "Möbelhäuser")]).names])
    found = {typed: levels.of_word(typed, typed).level for typed in ("möbelhäusern", "mobelhausern", "möbelhausern")}
    assert found["mobelhausern"] is found["möbelhäusern"] is Level.STEM
    assert (unmarked("möbel"), unmarked("gı")) == ("mobel", "gı")


def test_a_form_is_stored_as_a_term_and_read_back() -> None:
    for form in (LevelledForm(Level.OWN, "coffee tea"), LevelledForm(Level.STEM, "buch", "de")):
        assert LevelledForm.from_term(form.to_term()) == form


@pytest.mark.rule("M5", "M5.stems")
def test_what_equals_a_name_does_not_have_the_stems_of_others() -> None:
    categories = [("books", "Books", [("es", "Libros")], []), ("paper", "Paper", [], [("es", "libro")])]
    levels = CategoryLevels(category_forms(*one).names for one in categories)
    assert levels.of_word("libros", "libros") == Meaning(Level.OTHER_LANGUAGE, frozenset((0,)))
    assert levels.of_word("libro", "libro") == Meaning(Level.SYNONYM, frozenset((1,)))
    assert levels.of_run(("libros",), ("libros",)) == Meaning(Level.OTHER_LANGUAGE, frozenset((0,)))
