"""Labels of the domain as evidence next to another word (M3 e, M4)."""

import pytest

from service.search.protocol import WordCount
from tests.rules.backends.asking import find, found_names
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop


@pytest.mark.rule("M3.labels")
async def test_a_label_around_the_main_label_is_evidence_where_another_word_is_of_the_shop(
    directory: Directory,
) -> None:
    world = await directory(
        [
            shop("Amazon", "amazon.co.uk", categories=["books"]),
            shop("Kompass", "de.kompass.com", categories=["travel"]),
            shop("Ozon", "ozon.xn--p1ai", categories=["toys"]),
            shop("Bucher", "bucher.myshopify.com", categories=["garden"]),
        ]
    )
    found = {
        "amazon uk": ["Amazon"],  # (a) and a label of the public suffix
        "uk ama": ["Amazon"],  # (b)
        "books uk": ["Amazon"],  # (c)
        "mazo uk": ["Amazon"],  # (d)
        "kompass de": ["Kompass"],  # a label left of the main label
        "de travel": ["Kompass"],
        "ozon рф": ["Ozon"],  # in Unicode
        "bucher myshopify": ["Bucher"],  # of a private suffix
        "ozon uk": [],
        "uk рф": [],
        "uk uk": [],
        "uk": [],
    }
    assert {query: await found_names(world, query) for query in found} == found
    # These say nothing of a shop, and the beginning of a label is no evidence.
    for word in ("co", "com", "myshop"):
        assert (await find(world, f"books {word}")).ignored == (word,)


@pytest.mark.rule("M3.labels")
async def test_what_is_left_after_a_word_was_dropped_has_no_label_for_evidence_alone(directory: Directory) -> None:
    world = await directory([shop("Amazon", "amazon.co.uk")])
    found = await find(world, "qqxx uk")
    assert (found.shops, found.ignored) == ((), ("qqxx",))
    assert found.word_counts == (WordCount("qqxx", 0), WordCount("uk", 1))


@pytest.mark.rule("M4", "M3.labels")
async def test_a_label_stands_below_names_and_above_categories(directory: Directory) -> None:
    ladder = [
        shop("Moon DE", "a.com"),
        shop("Side Moon", "b.com"),
        shop("Modernmoon", "c.com", aliases=["Deal"]),
        shop("Moon", "d.de", popularity=1),
        shop("Sun", "de.e.com", popularity=2, categories=["moon"]),
    ]
    world = await directory(ladder[::-1])
    # In other languages `de` joins words, so next to a category's word every shop has evidence of it.
    assert await found_names(world, "moon de") == ["Moon DE", "Modernmoon", "Moon", "Sun", "Side Moon"]


@pytest.mark.rule("M4", "M3.labels")
async def test_two_words_that_are_labels_and_categories_are_each_other_word(directory: Directory) -> None:
    world = await directory(
        [
            shop("One", "uk.one.de", popularity=1, categories=["uk-de"]),
            shop("Two", "two.de", popularity=2, categories=["uk-de"]),
            shop("Three", "uk.three.com", popularity=3, categories=["uk", "de"]),
            shop("Four", "uk.four.de", popularity=4, categories=["uk"]),
            shop("Five", "uk.five.de", popularity=5, categories=["toys"]),
        ]
    )
    # One has (e) for both words; of the others a word has (c) only; no word of Five has any other evidence.
    assert await found_names(world, "uk de") == ["One", "Four", "Three", "Two"]
