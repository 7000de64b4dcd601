"""Which categories are suggested while somebody types (M10), and what their names say about shops (M9)."""

import pytest

from index_mappings.documents import Category
from shop_directory.typeahead.suggestions import SuggestResult
from tests.rules.backends.asking import ladder, names, suggest
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop

_CARRIED = [
    shop("Alder", popularity=1, categories=[("garden", "Garden"), ("home-garden", "Home & Living")]),
    shop("Birch", popularity=3, categories=[("garden", "Garden"), ("gifts", "Überraschung & Gifts")]),
    shop("Cedar", popularity=2, categories=[("books", "Books"), ("garage", "Doors")]),
    shop("???"),
    shop("Douglas", visibility="under_review", categories=[("galaxies", "Galaxies"), ("garage", "Doors")]),
]


_GARDEN = Category("garden", "Garden", 2)
_BOOKS = Category("books", "Books", 1)
_GARAGE = Category("garage", "Doors", 1)
_GIFTS = Category("gifts", "Überraschung & Gifts", 1)
_HOME = Category("home-garden", "Home & Living", 1)
_THINGS = Category("things", "Things", 1)


@pytest.mark.rule("M10", "M11")
async def test_categories_come_by_names_that_begin_with_what_is_typed_then_by_their_words(directory: Directory) -> None:
    world = await directory(*_CARRIED)
    found = {
        "ga": (_GARDEN, _GARAGE, _HOME),
        "g": (_GARDEN, _GARAGE, _GIFTS, _HOME),
        "GARD": (_GARDEN, _HOME),
        "doo": (_GARAGE,),
        "uber": (_GIFTS,),
        "home gar": (_HOME,),
        "living home g": (_HOME,),
        "home shop": (_HOME,),
        "garden sho": (_GARDEN, _HOME),
        # Alone, last words need three letters.
        "alder b": (),
        "alder boo": (_BOOKS,),
        "books alder": (),
        "arde": (),
        "rden": (),
        "gal": (),
    }
    assert {typed: (await suggest(world, typed)).categories for typed in found} == found
    assert (await suggest(world, "g", limit=2)).categories == (_GARDEN, _GARAGE)


@pytest.mark.rule("M10", "M11")
async def test_categories_come_by_their_other_names_and_show_their_display_name(directory: Directory) -> None:
    world = await directory(
        *_CARRIED,
        categories=[
            {"slug": "garden", "names": {"de": "Garten", "ja": "庭"}, "synonyms": ["lawn", "de la terre"]},
            {
                "slug": "books",
                "name": "Books & Zines",
                "names": {"fr": "Livres", "ar": "كتب"},
                "synonyms": ["Lawbooks"],
            },
            {"slug": "galaxies", "names": {"de": "Galaxien"}, "synonyms": ["lawless"]},
        ],
    )
    books = Category("books", "Books & Zines", 1)
    found = {
        "garten": (_GARDEN,), "law": (_GARDEN, books), "cheap lawn": (_GARDEN,), "lawb": (books,), "庭": (_GARDEN,),
        # Two letters are no beginning of a synonym, and three are none next to a table word.
        "la": (), "cheap la": (), "cheap law": (),
        "كتب": (books,), "liv": (books, _HOME), "livr": (books,), "terre": (_GARDEN,), "zi": (books,), "b": (books,),
        "de": (), "lawl": (), "galaxie": (), "lawless": (),
    }  # fmt: skip
    assert {typed: (await suggest(world, typed)).categories for typed in found} == found


@pytest.mark.rule("M10", "M11")
async def test_categories_come_tier_by_tier_whatever_the_number_of_their_shops(directory: Directory) -> None:
    # Each category has more shops than those before it.
    slugs = ["tea", "tea-rooms", "herbs", "teaspoons", "iced-tea", "cups", "big-red-mugs"]
    lines = [
        shop(f"Qq {slug} {number}", f"{slug}-{number}.internal", categories=[slug])
        for count, slug in enumerate(slugs, 1)
        for number in range(count)
    ]
    world = await directory(
        *lines,
        categories=[
            {"slug": "herbs", "names": {"de": "Tea"}},
            {"slug": "cups", "synonyms": ["teapot", "small blue glass"]},
        ],
    )
    found = {
        # Where an own name equals, another name that does is only a beginning.
        "tea": ["tea", "tea-rooms", "teaspoons", "iced-tea", "herbs", "cups"],
        "te": ["teaspoons", "tea-rooms", "tea", "iced-tea", "herbs"],
        "teas": ["tea", "teaspoons"],
        "tea r": ["tea-rooms"],
        "tea shop": ["tea", "tea-rooms", "teaspoons", "iced-tea"],
        "iced": ["iced-tea"],
        "teap": ["cups"],
        "blu": ["cups"],
        # In one name, in any order.
        "big mug": ["big-red-mugs"],
        "mugs re": ["big-red-mugs"],
        "glasses blu": ["cups"],
        "small mug": [],
    }
    shown = {typed: [one.slug for one in (await suggest(world, typed)).categories] for typed in found}
    assert shown == found


@pytest.mark.rule("M10", "M11")
async def test_one_typing_error_in_a_category_is_forgiven_where_no_word_begins_so(directory: Directory) -> None:
    world = await directory(
        *_CARRIED, categories=[{"slug": "garden", "names": {"de": "Blumen"}, "synonyms": ["Gerade", "gifted"]}]
    )
    found = {
        "gardn": (_GARDEN,), "gadren": (_GARDEN,), "arden": (_GARDEN,), "grden": (_GARDEN,), "xgarden": (_GARDEN,),
        "hxme garden": (_GARDEN,), "cheap gardne": (_GARDEN,), "home gxrden": (_HOME,), "homegadren": (_HOME,),
        "blmuen": (_GARDEN,), "giftx": (_GIFTS,), "garagx": (_GARAGE,), "garax": (_GARAGE,), "uberraschunk": (_GIFTS,),
        # Typed right, it begins a synonym; another one with an error does not count.
        "gerade": (_GARDEN,), "gerude": (),
        # Too short, two errors, an error in another word than those of a name.
        "gadr": (), "grdne": (), "gxrdxn": (), "garden hxme": (), "ggardenn": (), "alder gxrden": (),
    }  # fmt: skip
    assert {typed: (await suggest(world, typed)).categories for typed in found} == found
    assert (await suggest(world, "gardn", limit=1)).categories == (_GARDEN,)


@pytest.mark.rule("M9", "M9.category")
async def test_other_names_of_categories_count_in_the_tiers_of_words(directory: Directory) -> None:
    world = await directory(
        shop("Finch", popularity=0.3, categories=["books"]),
        shop("Wren Finch Tales", popularity=0.2, categories=["books"]),
        shop("Finch Other", popularity=0.1, categories=["toys"]),
        categories=[{"slug": "books", "names": {"de": "Bücher"}, "synonyms": ["novels", "de"]}],
    )
    found = {
        "finch bücher": [(5, "Finch"), (4, "Wren Finch Tales")],
        "finch novels": [(5, "Finch"), (4, "Wren Finch Tales")],
        "finch buc": [(5, "Finch"), (4, "Wren Finch Tales"), (0, "Finch Other")],
        "tales novels": [(4, "Wren Finch Tales")],
        # Of two letters: no word of a category.
        "tales de": [(0, "Wren Finch Tales")],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M10", "M1", "M11")
async def test_nothing_typed_suggests_the_most_popular_of_each(directory: Directory) -> None:
    world = await directory(*_CARRIED)
    every_category = (_GARDEN, _BOOKS, _GARAGE, _GIFTS, _HOME, _THINGS)
    for typed in ("", "  ", "\t", "\u200b", " \u00ad\u2060"):
        blank = await suggest(world, typed)
        assert names(found.shop for found in blank.shops) == ["Birch", "Cedar", "Alder", "???"], repr(typed)
        assert blank.categories == every_category, repr(typed)
        two = await suggest(world, typed, limit=2)
        assert two == SuggestResult(every_category[:2], blank.shops[:2]), repr(typed)


@pytest.mark.rule("M10", "X1.last_form")
async def test_punctuation_alone_is_compared_as_it_is(directory: Directory) -> None:
    world = await directory(*_CARRIED)
    tiers = {"???": 8, " ??? ": 8, "??\u200b": 7, "?": 7}
    for typed, tier in tiers.items():
        suggested = await suggest(world, typed)
        assert [(found.tier, found.shop.name) for found in suggested.shops] == [(tier, "???")], typed
        assert suggested.categories == (), typed
    for typed in ("????", "!", "&", "- ?"):
        assert await suggest(world, typed) == SuggestResult((), ()), typed
