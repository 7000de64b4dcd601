"""What is suggested while somebody types, tier by tier (M9)."""

import pytest

from index_mappings.documents import Category
from tests.rules.backends.asking import ladder, suggest
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop

# What "my green garden" finds, a shop a tier, the worst the most popular.
_LADDER = [
    (8, shop("My Green Garden", popularity=None)),
    (7, shop("My Green Gardenia", popularity=1)),
    (6, shop("Oh My Green Garden", popularity=2)),
    (5, shop("Gardens: My Green", popularity=3)),
    (4, shop("My Leaf", popularity=4, categories=["green-energy", "garden-tools"])),
    (3, shop("My Grean Garden", popularity=5)),
    (2, shop("Garden", popularity=6)),
    (1, shop("Garden of Green", popularity=7)),
    (0, shop("Green My Day", popularity=8)),
    (0, shop("Green", id="z", popularity=7.5)),
]


def at(tier: int, *names: str) -> list[tuple[int, str]]:
    return [(tier, name) for name in names]


@pytest.mark.rule("M9", "M9.typos", "M9.words", "M2", "I69")
async def test_each_tier_comes_before_the_next_whatever_the_popularity(directory: Directory) -> None:
    others = [
        shop("Green Leaf", popularity=99, categories=["things"]),
        shop("Leaf", popularity=99, categories=["green-energy", "garden-tools"]),
        shop("My Own", popularity=99),
        # Two typing errors count only where nothing better is found.
        shop("My Grean Gardin", popularity=99),
    ]
    world = await directory(*(line for _, line in reversed(_LADDER)), *others)
    whole = [(tier, line["name"]) for tier, line in _LADDER]
    for typed in ("my green garden", "My Green GARDEN", " my  green-garden "):
        assert await ladder(world, typed) == whole, typed
    for limit in range(1, 12):
        assert await ladder(world, "my green garden", limit=limit) == whole[:limit], limit


@pytest.mark.rule("M9", "M1")
async def test_within_a_tier_the_popular_come_first_and_then_the_smaller_id(directory: Directory) -> None:
    ranked = [("z9", 7.5), ("Z", 0.0833), ("a", 0.0833), ("-b", None), ("A", 0), ("b", 0)]
    world = await directory(
        *[shop("Same Name", f"{i}.internal", id=shop_id, popularity=p) for i, (shop_id, p) in enumerate(ranked)][::-1]
    )
    for typed, tier in (("same name", 8), ("same", 7), ("name", 6), ("name sam", 5), ("smae", 3), ("nmae same", 0)):
        suggested = (await suggest(world, typed)).shops
        assert [(found.tier, found.shop.id) for found in suggested] == [(tier, shop_id) for shop_id, _ in ranked], typed


@pytest.mark.rule("M9")
async def test_words_may_come_in_any_order_the_last_one_unfinished(directory: Directory) -> None:
    world = await directory(
        shop("Marks & Spencer", categories=["clothing"]), shop("Mars", categories=["sweets-and-clothing"])
    )
    found = {
        "spencer marks": [(5, "Marks & Spencer")],
        "spencer mar": [(5, "Marks & Spencer")],
        "spencer clothing": [(4, "Marks & Spencer")],
        "clothing spen": [(4, "Marks & Spencer")],
        "clo spen": [(4, "Marks & Spencer")],
        "sweets mars": [(4, "Mars")],
        # Neither the first word nor a short one of a category may be unfinished, and a shop's word is needed.
        "spen marks": [(0, "Marks & Spencer")],
        "cl spenc": [],
        "clothing sweets": [],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M9.category")
async def test_a_whole_name_with_its_category_comes_before_shops_that_only_have_the_words(directory: Directory) -> None:
    world = await directory(
        shop("Finch", popularity=0.3, categories=["garden-tools"]),
        shop("Big Finch Barn", popularity=0.9, categories=["garden-tools"]),
        shop("Garden of the Finch", popularity=0.2, categories=["books"]),
        shop("Finch", "finch-books.internal", popularity=0.8, categories=["books"]),
        shop("Blue Wren", popularity=0.1, aliases=["Wren of Troglo"], categories=["garden-tools", "toys"]),
    )
    better = [(5, "Finch"), (5, "Garden of the Finch"), (4, "Big Finch Barn")]
    for limit in range(1, 6):
        assert (await ladder(world, "finch garden", limit=limit))[:3] == better[:limit], limit
    found = {
        "finch tools": [(5, "Finch"), (4, "Big Finch Barn")],
        "finch garden tools": [(5, "Finch"), (4, "Big Finch Barn")],
        "finch too": [(5, "Finch"), (4, "Big Finch Barn")],
        # Spaced and joined, under each of its names, with a word of each of its categories.
        "blue wren toys": [(5, "Blue Wren")],
        "bluewren toys garden": [(5, "Blue Wren")],
        "wren of troglo garden": [(5, "Blue Wren")],
        # A part of a name is no whole one, and the category is behind it.
        "wren garden": [(4, "Blue Wren")],
        "toys blue wren": [(4, "Blue Wren")],
        "blue toys wren": [(4, "Blue Wren")],
    }
    assert {typed: [one for one in await ladder(world, typed) if one[0] > 3] for typed in found} == found


@pytest.mark.rule("M9.category")
async def test_the_whole_name_of_more_than_six_words_is_a_name_with_words_only(directory: Directory) -> None:
    world = await directory(
        shop("a b c d e f", "six.internal", categories=["toys"]),
        shop("g h i j k l m", "seven.internal", categories=["toys"]),
    )
    assert await ladder(world, "a b c d e f toys") == [(5, "a b c d e f")]
    assert await ladder(world, "g h i j k l m toys") == [(4, "g h i j k l m")]


@pytest.mark.rule("M9")
async def test_no_more_than_64_characters_are_compared(directory: Directory) -> None:
    world = await directory(shop("n" * 70), shop("m" * 64), shop(f"{'k' * 60} Lamp"), shop("o" * 90))
    found = {
        "n" * 64 + "zzzz": [(7, "n" * 70)],
        "n" * 63 + "zz": [(3, "n" * 70)],
        "m" * 64 + "zzzz": [(8, "m" * 64)],
        "m" * 64 + " zzzz": [(8, "m" * 64)],
        "k" * 60 + " lam zzzz": [(7, f"{'k' * 60} Lamp")],
        "o" * 90: [(7, "o" * 90)],
        "o" * 62 + "zz": [(2, "o" * 90)],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M9.typos")
async def test_one_edit_of_any_kind_is_forgiven_the_first_letter_included(directory: Directory) -> None:
    world = await directory(shop("Kestrel Bird"), shop("Wren", "blue-wagtail.internal"))
    for typed in (
        "kesstrel", "ketrel", "kastrel", "ksetrel", "xkestrel", "estrel", "lestrel", "ekstrel", "kestrlebird",
        "kest rle", "Kestrél brid", "kast", "bidr", "xbird",
    ):  # fmt: skip
        assert await ladder(world, typed) == [(3, "Kestrel Bird")], typed
    for typed in ("wagtial", "bleu", "blue-wagtali", "wern"):
        assert await ladder(world, typed) == [(3, "Wren")], typed


@pytest.mark.rule("M9.typos")
async def test_one_typo_needs_four_characters_and_two_need_eight(directory: Directory) -> None:
    world = await directory(shop("Kestrelbird"))
    found = {
        "kas": [], "kast": [(3, "Kestrelbird")],
        "kastral": [], "kastralb": [(2, "Kestrelbird")],
        "xkastralb": [], "kastrelb": [(3, "Kestrelbird")],
        # Of two, none is in the first character.
        "ekstrleb": [], "ksetrleb": [(2, "Kestrelbird")],
    }  # fmt: skip
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M9.typos")
async def test_two_typos_count_only_where_no_shop_has_a_better_tier(directory: Directory) -> None:
    near = [shop("Kestrelbird", popularity=9), shop("Kestrolbart Two", popularity=8), shop("Kestrol", popularity=99)]
    alone = await directory(*near, shop("Wren"))
    found = [(2, "Kestrelbird"), (2, "Kestrolbart Two")]
    assert await ladder(alone, "kestralbirt") == found
    assert await ladder(alone, "kestralbirt", limit=1) == found[:1]
    for better, tier in (("Kestralbirt", 8), ("Old Kestralbirt Road", 5), ("Kestralbiry", 3)):
        world = await directory(*near, shop(better))
        assert await ladder(world, "kestralbirt") == [(tier, better)]
    # Words in common come after them, and count by themselves where two errors do not.
    shared = [shop("Waldkauz Zaunkonih", popularity=1), shop("Zaunkonig Ort", popularity=9)]
    world = await directory(*shared)
    assert await ladder(world, "waldkautz zaunkonig") == [(2, "Waldkauz Zaunkonih"), (0, "Zaunkonig Ort")]
    world = await directory(*shared, shop("Waldkautz Zaunkonis"))
    assert await ladder(world, "waldkautz zaunkonig") == [(3, "Waldkautz Zaunkonis"), (0, "Zaunkonig Ort")]
    # A name that is written right, with something before it, is as good as they are.
    world = await directory(*shared, shop("Zaunkonig", popularity=0.5), shop("Waldkautz", popularity=2))
    whole = [(2, "Waldkautz"), (2, "Waldkauz Zaunkonih"), (2, "Zaunkonig"), (0, "Zaunkonig Ort")]
    for limit in range(1, 6):
        assert await ladder(world, "waldkautz zaunkonig", limit=limit) == whole[:limit]


@pytest.mark.rule("M9.typos", "X3")
async def test_each_form_of_a_query_is_measured_by_its_own_length(directory: Directory) -> None:
    world = await directory(shop("Axe Dwt"), shop("Owz"))
    found = {
        "axe d": [(7, "Axe Dwt")],
        "a xe z": [(3, "Axe Dwt")],  # joined: "axez" has four characters and one typo
        "ow t": [],  # joined: "owt" would have one typo but has three characters; spaced it has two
        "axz d": [(3, "Axe Dwt")],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M9.typos")
async def test_no_part_is_edited_twice(directory: Directory) -> None:
    # From "abc" to "ca" it would take a swap and a letter inside it: three edits when none may be edited again.
    world = await directory(shop("Abcwoodlands"))
    assert await ladder(world, "cawoodlands") == []
    assert await ladder(world, "acwoodlands") == [(3, "Abcwoodlands")]
    assert await ladder(world, "abwcodolands") == [(2, "Abcwoodlands")]


@pytest.mark.rule("M9.words")
async def test_loose_words_count_by_their_share_of_the_letters(directory: Directory) -> None:
    world = await directory(shop("Butterfly Grove"), shop("Owl"))
    found = {
        "zqx butterfly": [(1, "Butterfly Grove")],  # 9 letters of 12
        "zqxj butterfly": [(0, "Butterfly Grove")],
        "zqxjkwvbp butterfly": [(0, "Butterfly Grove")],  # 9 of 18
        "zqxjkwvbpm butterfly": [],
        "zqxj butterfly grove zqxjkw": [(0, "Butterfly Grove")],  # together 14 of 24
        "zqxj grove butterfly": [(1, "Butterfly Grove")],
        "zqxjkwvbpm owl": [(0, "Owl")],  # a whole name, whatever its share: 3 of 13
        "zqxjkwvbp owl": [(2, "Owl")],  # a quarter
        "zqxjkwvbpm grove": [],
        "zqx butterfl": [],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M9.words")
async def test_only_the_first_six_words_are_looked_at(directory: Directory) -> None:
    world = await directory(shop("Butterfly Grove"), shop("Owl"))
    found = {
        "zz qq xx ww jj butterfly": [],  # 9 letters of 19
        "z q x w j butterfly": [(0, "Butterfly Grove")],
        "z q x w j k butterfly": [],
        "butterfly z q x w j k": [(0, "Butterfly Grove")],
        "butterfly zq xw jk v b pm": [],  # 9 of 19: the letters of all words are counted
        "z q x w owl j": [(0, "Owl")],
        "z q x w j owl": [(2, "Owl")],
        # The last words are not looked for where some do not count; the first ones are.
        "q q owl z q x w": [(0, "Owl")],
        "z q x w j k m owl": [],
        "owl z q x w j k": [(2, "Owl")],
        "z q x w j k owl": [],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M7", "I71", "M10")
async def test_a_country_filters_shops_and_leaves_categories_alone(directory: Directory) -> None:
    world = await directory(
        shop("Lamp German", popularity=4, countries=["AT", "DE"], categories=["lamps"]),
        shop("Lamp Everywhere", popularity=3, countries=["WORLDWIDE"], categories=["lamps"]),
        shop("Lamp Silent", popularity=2, categories=["lamps"]),
        shop("Lamp French", popularity=1, countries=["FR"], categories=["lamps", "lamps-of-france"]),
    )
    lamps = (Category("lamps", "Lamps", 4), Category("lamps-of-france", "Lamps Of France", 1))
    # Those that state nothing are not known to sell there.
    for typed, tier, unknown in (("lamp", 7, 6), ("lmap", 3, 3), ("", 0, 0)):
        german = await suggest(world, typed, country="DE")
        ranked = [*at(tier, "Lamp German", "Lamp Everywhere"), (unknown, "Lamp Silent")]
        assert [(found.tier, found.shop.name) for found in german.shops] == ranked, typed
    assert (await suggest(world, "lamp", country="DE")).categories == lamps
    assert (await suggest(world, "", country="FR")).categories == lamps
    assert await ladder(world, "lamp", country="FR") == [(7, "Lamp Everywhere"), (7, "Lamp French"), (6, "Lamp Silent")]


@pytest.mark.rule("M9.names", "M9")
async def test_names_come_before_other_names_and_domains(directory: Directory) -> None:
    world = await directory(
        shop("Kestrel", "a.internal", popularity=0.1),
        shop("Wren", "b.internal", aliases=["Kestrel"], popularity=0.2),
        shop("Lark", "kestrel.com", popularity=9),
        shop("kestrel.net", "kestrel.net", popularity=0.3),
        shop("Kestrels", "c.internal", popularity=0.4),
        shop("Tit", "d.internal", aliases=["Kestrel of Tit"], popularity=7),
        shop("Big Kestrel", "e.internal", aliases=["Kestrel"], popularity=0.5),
        shop("Owl", "kestrels.internal", popularity=6),
        shop("Синица", "f.internal", aliases=["Kestrelka"], popularity=0.6),
        shop("The Kestrel Barn", "g.internal", aliases=["Kestrel Barn"], popularity=0.7),
    )
    whole = at(8, "Big Kestrel", "kestrel.net", "Wren", "Kestrel")
    named = at(7, "Lark", "The Kestrel Barn", "Синица", "Kestrels")
    for limit in range(1, 12):
        assert await ladder(world, "kestrel", limit=limit) == [*whole, *named, *at(6, "Tit", "Owl")][:limit], limit
    begun = at(7, "The Kestrel Barn", "Синица", "Big Kestrel", "Kestrels", "kestrel.net", "Kestrel")
    assert await ladder(world, "kestre") == [*begun, *at(6, "Lark", "Tit", "Owl", "Wren")]
    # A domain is whole with all its labels, as it is written or spaced.
    assert await ladder(world, "kestrel.com", limit=1) == [(8, "Lark")]
    assert await ladder(world, "kestrel com", limit=1) == [(8, "Lark")]
    assert await ladder(world, "kestrel co", limit=1) == [(6, "Lark")]


@pytest.mark.rule("M9.names", "M9")
async def test_from_six_characters_on_names_of_which_half_is_typed_come_first(directory: Directory) -> None:
    world = await directory(
        shop("Kestrelhouse", "a.internal", popularity=0.1),
        shop("Kestrel and Friends", "b.internal", popularity=9),
        shop("Old Kestrel", "c.internal", popularity=0.2),
        shop("Old Kestrels", "d.internal", popularity=8),
        shop("Kestrels of Old", "e.internal", popularity=7),
    )
    # Five say too little, so the best known come first.
    begun = at(7, "Kestrel and Friends", "Kestrels of Old", "Kestrelhouse")
    assert await ladder(world, "kestr") == [*begun, *at(5, "Old Kestrels", "Old Kestrel")]
    half = {
        # Half of twelve characters; of fifteen, or thirteen without spaces, seven are half.
        "kestre": [(7, "Kestrelhouse"), (6, "Kestrel and Friends"), (6, "Kestrels of Old")],
        "kestrel": [(7, "Kestrels of Old"), (7, "Kestrelhouse"), (6, "Kestrel and Friends"), (6, "Old Kestrel")],
        "kestrel an": [(7, "Kestrel and Friends")],
    }
    for typed, best in half.items():
        assert (await ladder(world, typed))[: len(best)] == best, typed
    assert (await ladder(world, "kestre"))[3:] == [(5, "Old Kestrels"), (5, "Old Kestrel")]


@pytest.mark.rule("M9.one_shop", "M1")
async def test_of_shops_with_a_short_name_only_the_best_is_in_the_first_tier(directory: Directory) -> None:
    world = await directory(
        shop("Finch", "a.internal", popularity=1),
        shop("Finch", "b.internal", popularity=3, countries=["AT"]),
        shop("Wren", "finch.com", popularity=2, aliases=["Finch"]),
        shop("Finches", "c.internal", popularity=9),
        shop("Lark", "finch.net", popularity=0.5),
        shop("Kestrel", "d.internal", popularity=1),
        shop("Kestrel", "e.internal", popularity=2),
        shop("???", "f.internal", popularity=1),
        shop("???", "g.internal", popularity=2),
    )
    everywhere = [(8, "Finch"), (7, "Finches"), (7, "Wren"), (7, "Finch"), (7, "Lark")]
    for limit in range(1, 7):
        assert await ladder(world, "finch", limit=limit) == everywhere[:limit], limit
    # With a country it is the best of those that are known to sell there; the others that pass are in the third tier.
    known = [(8, "Finch"), (6, "Finches"), (6, "Wren"), (6, "Finch"), (6, "Lark")]
    for limit in range(1, 7):
        assert await ladder(world, "finch", country="AT", limit=limit) == known[:limit], limit
    assert await ladder(world, "finch", country="FR") == [(6, name) for name in ("Finches", "Wren", "Finch", "Lark")]
    assert [tier for tier, _ in await ladder(world, "???")] == [8, 7]
    # From six characters on all are, those that are not known to sell in the country one tier below.
    assert [tier for tier, _ in await ladder(world, "kestrel")] == [8, 8]
    assert [tier for tier, _ in await ladder(world, "kestrel", country="AT")] == [7, 7]


@pytest.mark.rule("M9.dotted")
async def test_labels_left_of_the_main_one_are_begun_only_by_a_query_with_a_dot(directory: Directory) -> None:
    world = await directory(shop("Wren", "market.kestrel.com"), shop("Market Hall", "hall.internal"))
    found = {
        "market": [(7, "Market Hall")],
        "marke": [(7, "Market Hall")],
        "marketkes": [],
        "markte": [(3, "Market Hall")],
        "merket": [(3, "Market Hall")],
        "market.kes": [(6, "Wren")],
        "market.kestrel.com": [(8, "Wren")],
        "market.kestrle.com": [(3, "Wren")],
        # What equals the whole domain needs no dot.
        "market kestrel com": [(8, "Wren")],
        # The main label is a full form like any other.
        "kestr": [(6, "Wren")],
        "kestrel": [(7, "Wren")],
    }
    assert {typed: [one for one in await ladder(world, typed) if one[0] > 2] for typed in found} == found


@pytest.mark.rule("X2.unspaced", "M9")
async def test_a_name_without_spaces_is_found_from_where_its_script_changes(directory: Directory) -> None:
    world = await directory(
        shop("銀座コージーコーナー", "a.internal"), shop("ファッションセンターしまむら", "b.internal")
    )
    assert await ladder(world, "コージー") == [(5, "銀座コージーコーナー")]
    assert await ladder(world, "コージーコーナー") == [(6, "銀座コージーコーナー")]
    assert await ladder(world, "しまむ") == [(5, "ファッションセンターしまむら")]
    assert await ladder(world, "センター") == []


@pytest.mark.rule("M9.country")
async def test_who_is_not_known_to_sell_in_the_country_is_a_tier_worse_where_a_name_is_only_begun(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Lamp", "whole.internal", popularity=1),
        shop("Lampion", popularity=9),
        shop("Lamps Here", popularity=2, countries=["JP", "AT"]),
        shop("Lamps Everywhere", popularity=1, countries=["WORLDWIDE"]),
        shop("Lamps At Home", "lamps.co.at", popularity=3),
        shop("Lamps Abroad", popularity=99, countries=["DE"]),
        shop("Big Lamps", popularity=0.5, countries=["AT"]),
        shop("Bigger Lamps", popularity=8),
        shop("Lamps & Big", popularity=0.1, countries=["AT"]),
    )
    begun = [(7, "Lamps At Home"), (7, "Lamps Here"), (7, "Lamps Everywhere"), (7, "Lamps & Big")]
    others = [(6, "Lampion"), (6, "Lamp"), (5, "Bigger Lamps"), (5, "Big Lamps")]
    for limit in range(1, 10):
        assert await ladder(world, "lamp", country="AT", limit=limit) == [*begun, *others][:limit], limit
    # Words in any order, and typing errors, are as good without a country.
    assert await ladder(world, "lamps bigger", country="AT", limit=1) == [(5, "Bigger Lamps")]
    assert await ladder(world, "lapmion", country="AT") == [(3, "Lampion")]
    everywhere = await ladder(world, "lamp")
    assert [tier for tier, _ in everywhere] == [8, 7, 7, 7, 7, 7, 7, 5, 5]
    # So is a whole key.
    whole = [*begun, (6, "Big Lamps"), (5, "Bigger Lamps"), (3, "Lampion")]
    assert await ladder(world, "lamps", country="AT", limit=7) == whole


@pytest.mark.rule("M9.country", "M10")
async def test_signs_alone_are_begun_by_those_that_sell_in_the_country_first(directory: Directory) -> None:
    world = await directory(shop("???", "a.internal", popularity=2), shop("??!", "b.internal", countries=["AT"]))
    assert await ladder(world, "??", country="AT") == [(7, "??!"), (6, "???")]
    assert await ladder(world, "???", country="AT") == [(6, "???")]


@pytest.mark.rule("M9.part")
async def test_a_name_with_something_next_to_it_comes_before_shops_that_share_words(directory: Directory) -> None:
    world = await directory(
        shop("Loft Linen", popularity=9),
        shop("Outlet", popularity=8),
        shop("Loft", popularity=1),
        shop("Dexy & Co", "q1.internal"),
        shop("Kids", "q2.internal", popularity=5)
    )  # fmt: skip
    found = {
        "loft outlet": [(2, "Outlet"), (2, "Loft")],
        "dexy co kids": [(2, "Kids"), (2, "Dexy & Co")],
        "dexyco kids": [(2, "Kids"), (2, "Dexy & Co")],
        "kids dexy co": [(2, "Kids"), (2, "Dexy & Co")],
        "kids dexyco": [(2, "Kids"), (2, "Dexy & Co")],
        "big kids dexyco": [(2, "Dexy & Co"), (0, "Kids")],
        "outlet of loft": [(2, "Outlet"), (2, "Loft")],
        "outlet of linen loft": [(2, "Outlet"), (0, "Loft Linen"), (0, "Loft")],  # the last word: 4 letters of 17
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("M9.part")
async def test_a_name_among_much_else_is_only_a_word(directory: Directory) -> None:
    world = await directory(
        shop("Owl", popularity=9), shop("Kites of Troglo"), shop("Ab"), shop("D F H"), shop("D F H Zqxjkwvbpm")
    )
    found = {
        "owl of troglo": [(2, "Owl"), (0, "Kites of Troglo")],  # 3 letters of 11
        "owl kites troglodyt": [(0, "Owl")],  # 3 of 17
        "troglodyt kites owl": [(0, "Owl")],
        "owl kites o ab": [(2, "Owl"), (0, "Ab")],  # 3 of 11, 2 of 11
        "ab kites": [(2, "Ab"), (0, "Kites of Troglo")],
        # Spaces are no letters: 3 of 12, and 3 of 13.
        "d f h zqxjkwvbp": [(7, "D F H Zqxjkwvbpm"), (2, "D F H")],
        "zqxjkwvbp d f h": [(2, "D F H")],
        "d f h zqxjkwvbpm": [(8, "D F H Zqxjkwvbpm")],
        "zqxjkwvbpm d f h": [(5, "D F H Zqxjkwvbpm")],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("X2.articles", "M9.names", "M9.part", "M9.category", "M9.words")
async def test_a_name_without_its_article_is_a_name_but_one_word_of_it_is_none_in_a_longer_query(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Body Shop Supplies", popularity=9),
        shop("The Body Shop", popularity=1, categories=["garden"]),
        shop("The Source", popularity=2, categories=["garden"]),
        shop("Sourcery", popularity=5),
        shop("L'Oie Bleue", popularity=1)
    )  # fmt: skip
    found = {
        "body shop": [(8, "The Body Shop"), (7, "Body Shop Supplies")],
        "bodyshop": [(8, "The Body Shop"), (7, "Body Shop Supplies")],
        "source": [(8, "The Source"), (7, "Sourcery")],
        "sourc": [(7, "Sourcery"), (7, "The Source")],
        "oie bleue": [(8, "L'Oie Bleue")],
        "l oie": [(7, "L'Oie Bleue")],
        # The first words are a name, the other one says a category; what is one word is only a word of the shop.
        "body shop garden": [(5, "The Body Shop"), (0, "Body Shop Supplies")],
        "source garden": [(4, "The Source")],
        # Words next to a name.
        "body shop qqxx": [(2, "The Body Shop"), (0, "Body Shop Supplies")],
        "source qqxx": [(0, "The Source")],
        "source qqxxqqxx": [],
        "the source qqxxqqxx": [(2, "The Source")],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("X1", "M9", "X2.unspaced")
async def test_a_name_is_begun_by_what_is_typed_on_the_way_to_it(directory: Directory) -> None:
    world = await directory(shop("쿠팡마켓"), shop("ねこ本舗"), shop("کتاب ماه"), shop("11번가"))
    found = {
        "ㅋ": [(7, "쿠팡마켓")], "쿺": [(7, "쿠팡마켓")], "쿠파": [(7, "쿠팡마켓")], "쿠팡맠": [(7, "쿠팡마켓")],
        "쿠팡마켓": [(8, "쿠팡마켓")], "쿠팜마켓": [(3, "쿠팡마켓")], "ネコ": [(7, "ねこ本舗")],
        "本舗": [(6, "ねこ本舗")], "كتاب": [(7, "کتاب ماه")], "번": [(5, "11번가")],
    }  # fmt: skip
    assert {typed: await ladder(world, typed) for typed in found} == found


@pytest.mark.rule("X1", "X1.last_form")
async def test_invisible_characters_are_no_evidence(directory: Directory) -> None:
    world = await directory(shop("✈\ufe0f"), shop("❤\ufe0f"), shop("Nordlicht"))
    found = {
        "❤": [(8, "❤\ufe0f")],
        "❤\ufe0f": [(8, "❤\ufe0f")],
        "nordlicht\ufe0f": [(8, "Nordlicht")],
        "nord\u3164licht": [(8, "Nordlicht")],
    }
    assert {typed: await ladder(world, typed) for typed in found} == found
