"""What a word of a query says about categories (M5). The suite caps them at three a word."""

import pytest

from index_mappings.documents import Category
from service.search.protocol import Found
from tests.rules.backends.asking import find, found_names, names, suggest
from tests.rules.backends.backends import CATEGORY_CAP
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop


@pytest.mark.rule("M5")
async def test_a_word_means_a_category_by_its_name_or_slug_and_by_a_beginning_from_three_letters(
    directory: Directory,
) -> None:
    world = await directory(
        [
            shop("Alder", categories=[("tv", "Television")]),
            shop("Birch", categories=[("garden-tools", "Outdoor Help")]),
            shop("Cedar", categories=[("bucher", "Bücher & Hefte")]),
        ]
    )
    found = {
        "tv": ["Alder"], "television": ["Alder"], "telev": ["Alder"], "tel": ["Alder"], "te": [], "vision": [],
        "garden": ["Birch"], "gar": ["Birch"], "tools": ["Birch"], "too": ["Birch"], "outdoor": ["Birch"],
        "ga": [], "to": [], "arden": [],
        "BÜCHER": ["Cedar"], "hef": ["Cedar"], "buc": ["Cedar"],
        "garden help": ["Birch"], "garden television": [], "outdoor-tools": ["Birch"],
    }  # fmt: skip
    assert {query: await found_names(world, query) for query in found} == found


@pytest.mark.rule("M5")
async def test_a_word_means_a_category_by_its_other_names_as_by_its_display_name(directory: Directory) -> None:
    world = await directory(
        [
            shop("Alder", categories=["books"]),
            shop("Birch", categories=[("lighting", "Light")]),
            shop("Cedar", categories=["bicycles"]),
        ],
        categories=[
            {
                "slug": "books",
                "names": {"de": "Bücher", "ja": "本と雑誌", "ko": "책"},
                "synonyms": ["Buch", "TV guides"],
            },
            {"slug": "lighting", "name": "Lighting", "synonyms": ["lamps", "de la lampe"]},
            {"slug": "bicycles", "names": {"fr": "Vélos", "ja": "輪"}, "synonyms": ["e-bike"]},
        ],
    )
    found = {
        "buch": ["Alder"], "BÜCHER": ["Alder"], "buc": ["Alder"], "本と雑誌": ["Alder"], "本と雑": ["Alder"],
        "本": ["Alder"],
        "lamps": ["Birch"], "lamp": ["Birch"], "lampe": ["Birch"], "lighting": ["Birch"], "velo": ["Cedar"],
        "bike": ["Cedar"], "輪": ["Cedar"], "alder buch": ["Alder"], "lampe lighting": ["Birch"], "guides": ["Alder"],
        # A Hangul syllable is folded to its letters, here three.
        "책": ["Alder"],
        # Of two letters; not equal, too short.
        "tv": [], "de": [], "e": [], "lampe buch": [],
    }  # fmt: skip
    assert {query: await found_names(world, query) for query in found} == found
    assert await world.categories() == (
        Category("bicycles", "Bicycles", 1),
        Category("books", "Books", 1),
        Category("lighting", "Lighting", 1),
    )


@pytest.mark.rule("M5", "V1")
async def test_a_category_of_hidden_shops_means_nothing_by_any_of_its_names(directory: Directory) -> None:
    world = await directory(
        [
            shop("Alder", categories=["wood"]),
            shop("Birch", visibility="under_review", categories=["falconry"]),
            shop("Cedar", visibility="removed", categories=["falconry", "wood"]),
        ],
        categories=[
            {"slug": "falconry", "name": "Hawking", "names": {"de": "Beizjagd"}, "synonyms": ["raptors"]},
            {"slug": "nobody-has-it", "name": "Beizjagd", "synonyms": ["Alder"]},
        ],
    )
    for word in ("falconry", "hawking", "beizjagd", "raptors", "nobody"):
        assert await find(world, word) == Found((), 0, (word,), category_truncated=False, did_you_mean=()), word
        assert (await suggest(world, word)).categories == (), word
    assert await found_names(world, "wood") == ["Alder"]
    assert await world.categories() == (Category("wood", "Wood", 1),)


@pytest.mark.rule("M6", "M7")
async def test_browsing_under_a_filter_that_no_shop_passes_finds_nothing_and_counts_nothing(
    directory: Directory,
) -> None:
    world = await directory([shop("Alder", categories=["tv"], countries=["DE"])])

    for found in (await find(world, "", category="garden"), await find(world, "", country="FR")):
        assert (found.shops, found.total) == ((), 0)


@pytest.mark.rule("M5", "I24")
async def test_of_too_many_categories_those_with_most_public_shops_are_taken(directory: Directory) -> None:
    slugs = ["lamp-z", "lamp-a", "lamp-b", "lamp-c"]
    lines = [shop(f"Alder {slug}".replace("lamp-", ""), categories=[(slug, f"Lamp {slug[-1]}")]) for slug in slugs]
    second = shop("Second z", categories=[("lamp-z", "Lamp z")])
    hidden = [
        shop(f"Unseen {number}", visibility=visibility, categories=[("lamp-c", "Lamp c")])
        for number, visibility in enumerate(("under_review", "removed", "under_review"))
    ]
    assert CATEGORY_CAP == 3
    world = await directory([*lines, second, *hidden])

    capped = await find(world, "lamp")
    assert (sorted(names(capped.shops)), capped.total) == (["Alder a", "Alder b", "Alder z", "Second z"], 4)
    assert capped.category_truncated
    # The fourth category is found by a word of its own, and by its slug as a filter.
    assert await found_names(world, "alder c") == ["Alder c"]
    assert names((await find(world, "", category="lamp-c")).shops) == ["Alder c"]


@pytest.mark.rule("M5", "I24")
async def test_truncation_is_reported_exactly_when_some_remaining_word_means_more_than_the_cap(
    directory: Directory,
) -> None:
    world = await directory(
        [
            *(shop(f"Alder {number}", categories=[f"lamp-{number}"]) for number in range(4)),
            *(shop(f"Birch {number}", categories=[f"sofa-{number}"]) for number in range(3)),
            shop("Sofa Lampshade"),
        ]
    )
    truncated = {
        "lamp": True, "lam": True, "alder lamp": True, "lamp alder": True, "sofa lamp": True, "lamp qqxx": True,
        "sofa": False, "alder": False, "la": False, "lamp-1": True, "lampshade": False, "qqxx": False, "": False,
        "birch sofa": False, "sofa-1": False, "???": False,
    }  # fmt: skip
    assert {query: (await find(world, query)).category_truncated for query in truncated} == truncated
    assert (await find(world, "lamp", category="sofa-1")).category_truncated
    assert (await find(world, "lamp", limit=1)).category_truncated
