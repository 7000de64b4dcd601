"""The forms by which a category is found (M5, M9)."""

import pytest

from index_mappings.category_forms import category_forms, stemmed_language
from index_mappings.text import words_of


@pytest.mark.rule("M9", "M10")
def test_all_words_of_name_and_slug_count_and_of_other_names_those_that_say_enough() -> None:
    others = [
        "Produits de la mer",
        "TV",
        "Öl",
        "Bücher",
        "本",
        "ふく",
        "コ-ヒ",
        "서점",
        "책",
        "ÉTÉ",
        "x",
        "???",
        "kid's",
    ]
    forms = category_forms("tv-hifi", "TV & Hi-Fi à la carte", [("fr", other) for other in others])
    assert forms.words == tuple(
        sorted(
            (
                *("tv", "hifi", "hi", "fi", "a", "la", "carte", "produits", "mer", "bucher", "ete", "kids"),
                *(word for text in ("本", "ふく", "コ", "ヒ", "서점", "책") for word in words_of(text)),
            )
        )
    )


@pytest.mark.rule("M5")
def test_names_count_in_all_spellings_and_by_the_stems_of_their_language() -> None:
    forms = category_forms("pc", "PC", [("de", "Schönheit & Düfte"), ("ja", "本")])
    assert forms.whole == (
        "de:schonheit and duft", "de:schonheit duft", "de:schonheitandduft", "de:schonheitduft", "en:pc", "pc",
        "schoenheit and duefte", "schoenheit duefte", "schoenheitandduefte", "schoenheitduefte",
        "schonheit and dufte", "schonheit dufte", "schonheitanddufte", "schonheitdufte", "本",
    )  # fmt: skip
    assert forms.alone == (
        "and", "de:and", "de:duft", "de:schonheit", "de:schonheitandduft", "de:schonheitduft", "duefte", "dufte",
        "en:pc", "pc", "schoenheit", "schoenheitandduefte", "schoenheitduefte", "schonheit", "schonheitanddufte",
        "schonheitdufte", "本",
    )  # fmt: skip


@pytest.mark.rule("M5")
def test_a_language_is_stemmed_by_its_primary_subtag_if_there_is_a_stemmer() -> None:
    tags = ("de", "pt-BR", "nb", "nn-NO", "EN", "ja", "zh-Hant", "x-private")
    assert [stemmed_language(tag) for tag in tags] == ["de", "pt", "no", "no", "en", None, None, None]
