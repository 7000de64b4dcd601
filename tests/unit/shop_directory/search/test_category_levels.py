"""The levels by which a word, or a run of words, means categories (M5)."""

import pytest

from index_mappings.category_forms import Level, LevelledForm, category_forms, unmarked
from index_mappings.table_words import unfolded
from index_mappings.text import typed_words
from shop_directory.words.category_levels import CategoryLevels, Meaning

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
    ("level", "slugs", "typed"),
    [
        (Level.OWN, {"shoes"}, ("shoes", "SHOE")),
        (Level.OWN, {"pet"}, ("pet shop", "petshop", "pets")),
        (Level.OTHER_LANGUAGE, {"shoes"}, ("schuhe", "靴")),
        (Level.OTHER_LANGUAGE, {"books"}, ("libros", "bucher")),
        (Level.OTHER_LANGUAGE, {"pet"}, ("evcil hayvan",)),
        (Level.OTHER_LANGUAGE, {"clothes"}, ("giyim",)),
        (Level.SYNONYM, {"shoes"}, ("sneakers",)),
        (Level.SYNONYM, {"food"}, ("coffee & tea", "coffee and tea", "coffee tea")),
        (Level.SYNONYM, {"books"}, ("livre poche",)),
        (Level.SYNONYM, {"clothes"}, ("t-shirts",)),
        (Level.STEM, {"shoes"}, ("sneaker",)),
        (Level.STEM, {"books"}, ("buch",)),
        (Level.STEM, {"clothes"}, ("t-shirt",)),
        (Level.WORD, {"outdoor"}, ("ropa",)),
        (Level.WORD_STEM, {"outdoor"}, ("ropas",)),
        (Level.BEGINNING, {"shoes"}, ("snea",)),
        (Level.ENDING, {"shoes"}, ("Damenschuhe", "Schuhladen", "靴屋")),
        (Level.ENDING, {"books"}, ("bookshop", "nightbook")),
        (Level.ENDING, set(), ("shop", "sn", "gi", "qqxx")),
    ],
)
def test_a_text_has_the_categories_of_its_best_level_only(
    level: Level, slugs: set[str], typed: tuple[str, ...]
) -> None:
    assert {one: _meant(one) for one in typed} == dict.fromkeys(typed, (level, slugs))


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
