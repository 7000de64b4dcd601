"""The words by which a category is found (M5)."""

import pytest

from index_mappings.forms import category_words
from index_mappings.text import words_of


@pytest.mark.rule("M5")
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
    assert category_words("tv-hifi", "TV & Hi-Fi à la carte", others) == tuple(
        sorted(
            (
                *("tv", "hifi", "hi", "fi", "a", "la", "carte", "produits", "mer", "bucher", "ete", "kids"),
                *(word for text in ("本", "ふく", "コ", "ヒ", "서점", "책") for word in words_of(text)),
            )
        )
    )
