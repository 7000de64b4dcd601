"""The table words: one file, by language, compared as they are typed."""

import pytest

from index_mappings.table_words import LANGUAGES, SHOP_ENDINGS, SHOP_WORDS, TABLE_WORDS, is_table_word, unfolded


@pytest.mark.rule("M3.wishes")
def test_the_table_has_the_languages_of_the_articles_and_the_others_that_the_rule_names() -> None:
    by_rule = "en de fr es it nl pt pl cs sk ru uk bg hr sr sl tr el ar zh ja ko"
    assert set(LANGUAGES) >= {*by_rule.split()}


@pytest.mark.rule("M3.wishes")
def test_a_word_counts_as_it_is_typed() -> None:
    assert all(map(is_table_word, ("the", "The", "für", "FÜR", "Where", "магазин", "店", "L'", "en")))
    assert not any(map(is_table_word, ("thé", "fur", "bra", "car", "pet", "shoes", "art", "")))
    assert unfolded("T-Shirt") == "tshirt"


@pytest.mark.rule("M3.wishes")
def test_words_for_a_shop_are_table_words_and_end_compounds_the_longest_first() -> None:
    assert SHOP_WORDS < TABLE_WORDS
    assert {"laden", "shop", "屋", "geschaft"} <= set(SHOP_ENDINGS)
    assert max(SHOP_ENDINGS, key=len) == SHOP_ENDINGS[0]
