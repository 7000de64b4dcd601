"""What a search finds, in which order (M1, M3, M4, M7), and what words say about categories and labels (M5)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest

from index_mappings.documents import Category
from service.errors import InvalidInputError
from service.tools.find_shop import FIND_SHOP
from shop_directory.search.protocol import Found
from tests.rules.backends.asking import call, find, found_names, ladder, names, suggest, walked
from tests.rules.backends.backends import CATEGORY_CAP
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop


@pytest.mark.rule("M3", "I50")
async def test_every_word_needs_evidence_on_the_same_shop(directory: Directory) -> None:
    world = await directory(
        shop("Marks & Spencer", categories=["clothing"]),
        shop("Mares"),
        shop("Penny", categories=["toys"]),
        shop("Kiosk", "myblueshop.co.uk"),
    )
    found = {
        "spencer marks": ["Marks & Spencer"],  # (a) each word is one of its words
        "spencer mares": [],
        "spen mar": ["Marks & Spencer"],  # (b) each word begins one of its words
        "spen mare": [],
        "spen spen": ["Marks & Spencer"],  # one word, although the text of the query begins nothing
        "spencer clothing": ["Marks & Spencer"],  # (c) a category that it carries
        "spencer cloth": ["Marks & Spencer"],
        "spencer toys": [],
        "enc marks": ["Marks & Spencer"],  # (d) a part of its joined name, from 3 letters up
        "sspe marks": ["Marks & Spencer"],
        "pe marks": [],
        "uesh kiosk": ["Kiosk"],  # (d) or of its domain without the public suffix
    }
    assert {query: await found_names(world, query) for query in found} == found
    # All of these words are known, each on some shop: none was dropped to find more.
    assert [query for query in found if (await find(world, query)).ignored] == []


@pytest.mark.rule("M3", "M6.ignored")
async def test_a_single_letter_begins_a_word_only_at_the_end_of_the_query(directory: Directory) -> None:
    world = await directory(shop("Marks & Spencer"), shop("Kiosk H"), shop("緑茶 Kiosk"))
    expected = {
        "spencer m": (["Marks & Spencer"], ()),
        "m spencer": (["Marks & Spencer"], ("m",)),
        "h kiosk": (["Kiosk H"], ()),  # it equals a word
        "緑 kiosk": (["緑茶 Kiosk"], ()),  # of no alphabet
    }
    found = {query: await find(world, query) for query in expected}
    assert {query: (names(answer.shops), answer.ignored) for query, answer in found.items()} == expected


@pytest.mark.rule("M3", "X3")
async def test_the_whole_query_may_equal_or_begin_a_form_or_a_key(directory: Directory) -> None:
    world = await directory(shop("Marks & Spencer"), shop("Travel", "tui.co.uk"), shop("Blumen", "shop.blumen-welt.de"))
    found = {
        "marks spencer": ["Marks & Spencer"], "MARKS and spencer": ["Marks & Spencer"], "marksspe": ["Marks & Spencer"],
        "mark s spencer": ["Marks & Spencer"], "spencer": ["Marks & Spencer"], "tui.co.uk": ["Travel"],
        "https://www.tui.co.uk/offers": ["Travel"], "tui.co": ["Travel"], "blumen-w": ["Blumen"], "welt": ["Blumen"],
        "shop": ["Blumen"],
    }  # fmt: skip
    assert {query: await found_names(world, query) for query in found} == found


@pytest.mark.rule("X1", "M3", "M6.ignored")
async def test_ignored_words_of_any_script_are_shown_as_they_were_typed(directory: Directory) -> None:
    world = await directory(shop("쿠팡 마켓"), shop("ねこ 本舗"), shop("کتاب ماه"))
    expected = {
        "쿺 만나": (["쿠팡 마켓"], ("만나",)),
        "쿠팡 만-만": (["쿠팡 마켓"], ("만",)),
        "ネコ ぬぬ": (["ねこ 本舗"], ("ぬぬ",)),
        "كتاب\ufe0f ﻗﻖ": (["کتاب ماه"], ("ﻗﻖ",)),
    }
    found = {query: await find(world, query) for query in expected}
    assert {query: (names(answer.shops), answer.ignored) for query, answer in found.items()} == expected


@pytest.mark.rule("X1", "X2", "M3")
async def test_trade_marks_belong_to_no_word(directory: Directory) -> None:
    world = await directory(shop("Hitfox™ Games"), shop("Café℠ Bücher"))
    expected = {
        "hitfox games": ["Hitfox™ Games"],
        "Hitfox™ Games": ["Hitfox™ Games"],
        "games hitfox℠": ["Hitfox™ Games"],
        "hitfoxtm": [],
        "cafe bucher": ["Café℠ Bücher"],
        "cafesm": [],
    }
    assert {query: await found_names(world, query) for query in expected} == expected


@pytest.mark.rule("X1", "M3", "M9")
async def test_simplified_and_traditional_chinese_find_each_other(directory: Directory) -> None:
    world = await directory(shop("無印良品"), shop("淘宝网"), shop("東京書店"))
    expected = {
        "无印良品": ["無印良品"], "無印": ["無印良品"], "印良": ["無印良品"], "淘寶": ["淘宝网"], "淘宝網": ["淘宝网"],
        "东京书店": ["東京書店"], "書店": ["東京書店"],
    }  # fmt: skip
    assert {query: await found_names(world, query) for query in expected} == expected
    suggested = {query: await ladder(world, query) for query in ("无印良品", "淘寶", "东京")}
    assert suggested == {"无印良品": [(8, "無印良品")], "淘寶": [(7, "淘宝网")], "东京": [(7, "東京書店")]}


@pytest.mark.rule("M3")
async def test_a_long_text_begins_a_form_as_a_short_one_does(directory: Directory) -> None:
    han = "東京都渋谷区神南一丁目新宿本店銀座中央通大阪心斎橋京都四条河原町"
    signs = "(.*)[^$]{?}|\\~" * 6
    world = await directory(
        shop("Kestrel", "the-very-long-domain-of-kestrel.example-shops.com"),
        shop("Wren", "the-very-long-domain-ofxkestrel.example-shops.com"),
        shop(f"{han}本", popularity=0.4),
        shop(f"{han[:-1]}駅本", popularity=0.3),
        shop(f"{han * 4}本", popularity=0.2),
        shop(f"{han * 4}駅", popularity=0.1),
        shop(signs, "signs.internal"),
    )
    found = {
        "the-very-long-domain-of-kestrel.example-sh": ["Kestrel"],
        han: [f"{han}本", f"{han * 4}本", f"{han * 4}駅"],
        han[:25]: [f"{han}本", f"{han[:-1]}駅本", f"{han * 4}本", f"{han * 4}駅"],
        han * 4: [f"{han * 4}本", f"{han * 4}駅"],
        f"{han * 4}本": [f"{han * 4}本"],
        f"{han * 4}.": [f"{han * 4}本", f"{han * 4}駅"],
        f"{han * 3}駅{han}": [],
        signs[:80]: [signs],
        f"]{signs[:80]}": [],
    }
    assert {query: await found_names(world, query) for query in found} == found


@pytest.mark.rule("M3")
async def test_a_part_of_a_name_counts_from_three_characters_and_from_one_in_han_kana_and_hangul(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Солнце"), shop("Lantern"), shop("東京商店"), shop("ゲオ"), shop("みどり"), shop("쿠팡"), shop("ร้านดาว")
    )
    found = {
        "олн": ["Солнце"], "ол": [], "нц": [],
        "nte": ["Lantern"], "nt": [], "n": [],
        "京": ["東京商店"], "商店": ["東京商店"], "オ": ["ゲオ"], "ど": ["みどり"], "팡": ["쿠팡"],
        "ดาว": ["ร้านดาว"], "ดา": [],
    }  # fmt: skip
    assert {query: await found_names(world, query) for query in found} == found


@pytest.mark.rule("M4", "M2")
async def test_better_evidence_comes_before_more_popularity(directory: Directory) -> None:
    ladder = [
        shop("Blue Moon", popularity=None),
        shop("Blue Moonlight", popularity=1),
        shop("Old Blue Moonstone", popularity=2),
        shop("Blue Star", popularity=5, categories=["moon-things"]),
        shop("Moonrise Blues", popularity=3),
        shop("Honeymoon in Blue", popularity=9),
    ]
    world = await directory(*reversed(ladder), shop("Blue Sun", popularity=9), shop("Moon", popularity=9))
    assert await found_names(world, "blue moon") == [line["name"] for line in ladder]


@pytest.mark.rule("M4")
async def test_a_shop_stands_in_the_tier_of_its_best_evidence(directory: Directory) -> None:
    world = await directory(
        shop("Moonrise Blues", id="by-alias", aliases=["Blue Moon"]),
        shop("Honeymoon in Blue", "bluemoon.internal", id="by-domain"),
        shop("Blue Moonlight", popularity=1, id="begins", categories=["blue-moon"]),
    )
    found = await find(world, "Blue Moon")
    assert [found_shop.id for found_shop in found.shops] == ["by-alias", "by-domain", "begins"]


@pytest.mark.rule("M1", "M2")
async def test_within_a_tier_the_popular_come_first_and_then_the_smaller_id(directory: Directory) -> None:
    ranked = [("z9", 7.5), ("z8", 1), ("Z", 0.0833), ("a", 0.0833), ("-b", None), ("A", 0), ("_", None), ("b", 0)]
    lines = [shop("Same Name", f"{number}.internal", id=i, popularity=p) for number, (i, p) in enumerate(ranked)]
    world = await directory(*lines[::-1])
    expected = [shop_id for shop_id, _ in ranked]
    for query in ("same name", "same", "name", "ame", ""):
        assert [found.id for found in (await find(world, query)).shops] == expected, query


@pytest.mark.rule("M1", "I45")
async def test_a_blank_query_browses_everything_in_one_order(directory: Directory) -> None:
    world = await directory(
        shop("Plain", popularity=1),
        shop("Popular", popularity=2, categories=["books"]),
        shop("Unranked", id="a", categories=["books"]),
        shop("Hidden", popularity=9, visibility="under_review", categories=["books"]),
    )
    for blank in ("", "  ", "\t\n", "\u200b", " \u00ad\u2060 "):
        everything = await find(world, blank)
        assert names(everything.shops) == ["Popular", "Plain", "Unranked"], repr(blank)
        in_books = await find(world, blank, category="books")
        assert names(in_books.shops) == ["Popular", "Unranked"], repr(blank)
        assert in_books == Found(in_books.shops, 2, (), category_truncated=False, did_you_mean=())


@pytest.mark.rule("M7", "I46")
async def test_a_country_leaves_the_shops_that_do_not_rule_it_out(directory: Directory) -> None:
    world = await directory(
        shop("Lamp German", popularity=4, countries=["AT", "DE"]),
        shop("Lamp Everywhere", popularity=3, countries=["WORLDWIDE"]),
        shop("Lamp Silent", popularity=2),
        shop("Lamp French", popularity=1, countries=["FR"]),
    )
    assert await found_names(world, "lamp") == ["Lamp German", "Lamp Everywhere", "Lamp Silent", "Lamp French"]
    assert await found_names(world, "lamp", country="DE") == ["Lamp German", "Lamp Everywhere", "Lamp Silent"]
    # Those that are known to sell there come first, and a shop that states nothing is known to sell nowhere.
    assert await found_names(world, "lamp", country="FR") == ["Lamp Everywhere", "Lamp French", "Lamp Silent"]
    assert await found_names(world, "", country="FR") == ["Lamp Everywhere", "Lamp French", "Lamp Silent"]
    assert await found_names(world, "", country="XK") == ["Lamp Everywhere", "Lamp Silent"]


@pytest.mark.rule("I49", "I45")
async def test_a_category_and_a_query_must_both_be_met(directory: Directory) -> None:
    world = await directory(
        shop("Lamp One", popularity=2, categories=["light", "home"]),
        shop("Lamp Two", popularity=1, categories=["home"]),
        shop("Candle", categories=["light"]),
    )
    assert names((await find(world, "lamp", category="light")).shops) == ["Lamp One"]
    assert names((await find(world, "lamp", category="home")).shops) == ["Lamp One", "Lamp Two"]
    assert names((await find(world, "light", category="home")).shops) == ["Lamp One"]
    neither = await find(world, "candle", category="home")
    assert neither == Found((), 0, (), category_truncated=False, did_you_mean=neither.did_you_mean)


@pytest.mark.rule("M2", "I21", "I48", "F7")
async def test_the_pages_of_every_size_make_up_the_whole(directory: Directory) -> None:
    named = ("Lamp", "Lampion", "The Lamp", "Streetlamp", "Candle")
    world = await directory(
        *[
            shop(f"{named[number % 5]}", f"lamp{number}.internal", popularity=number % 3, categories=["lamps"])
            for number in range(23)
        ]
    )
    whole = await find(world, "lamp", limit=100)
    assert whole.total == len({found.id for found in whole.shops}) == 23
    for limit in (1, 2, 5, 7, 22, 23, 24):
        pages = [await find(world, "lamp", offset=offset, limit=limit) for offset in range(0, 23, limit)]
        assert tuple(found for page in pages for found in page.shops) == whole.shops, limit
        assert {page.total for page in pages} == {23}, limit
        assert tuple(await walked(world, "lamp", limit=limit)) == whole.shops, limit
    for offset in (23, 24, 5_000):
        assert await find(world, "lamp", offset=offset) == Found((), 23, (), category_truncated=False, did_you_mean=())


@pytest.mark.rule("F7")
async def test_a_cursor_is_taken_only_unchanged_and_for_the_search_that_it_is_of(directory: Directory) -> None:
    world = await directory(
        *[shop(f"Lamp {number}", f"lamp{number}.internal", countries=["DE"]) for number in range(7)]
    )
    asked: dict[str, Any] = {"query": "lamp", "country": "de", "limit": 3}
    first = await call(world, FIND_SHOP, **asked)
    cursor = first["next_cursor"]
    second = await call(world, FIND_SHOP, **asked | {"country": "DE", "offset": 0, "cursor": cursor})
    third = await call(world, FIND_SHOP, **asked, cursor=second["next_cursor"])
    shown = [[one["name"] for one in page["results"]] for page in (first, second, third)]
    assert shown == [["Lamp 0", "Lamp 1", "Lamp 2"], ["Lamp 3", "Lamp 4", "Lamp 5"], ["Lamp 6"]]
    assert [page["truncated"] for page in (first, second, third)] == [True, True, False]
    assert "next_cursor" not in third

    data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    damaged = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    texts = [urlsafe_b64encode(one).decode().rstrip("=") for one in (*damaged, data[:-1], data[:8])]
    wrong: list[dict[str, Any]] = [
        {"cursor": text} for text in (*texts, f"{cursor}=", f" {cursor}", f"{cursor}+", "\u00e4", "-")
    ]
    changed: list[dict[str, Any]] = [
        {"query": "lamps"},
        {"country": "AT"},
        {"limit": 4},
        {"category": "things"},
        {"facets": ["country"]},
    ]
    for other in (*wrong, *({"cursor": cursor} | one for one in changed), {"cursor": cursor, "offset": 1}):
        with pytest.raises(InvalidInputError) as refused:
            await call(world, FIND_SHOP, **asked | other)
        assert [error.field for error in refused.value.errors] == ["cursor"], other


@pytest.mark.rule("F5", "F6", "V1")
async def test_facets_count_all_matches_of_public_shops_without_the_filter_of_their_kind(directory: Directory) -> None:
    world = await directory(
        shop("Lamp A", categories=["lamps", "garden"], countries=["DE", "AT"]),
        shop("Lamp B", categories=["lamps"], countries=["WORLDWIDE"]),
        shop("Lamp C", "c.de", categories=["garden"]),
        shop("Lamp D", categories=["books"], countries=["FR"]),
        shop("Lamp E", categories=["lamps", "secrets"], countries=["XK"], visibility="under_review"),
        shop("Chair", categories=["chairs"], countries=["DE"]),
    )
    asked: dict[str, Any] = {
        "query": "lamp",
        "categories": ["lamps", "garden"],
        "facets": ["country", "category"],
        "limit": 1,
    }
    found = await call(world, FIND_SHOP, **asked, countries=["FR"])
    assert (found["total_count"], [one["name"] for one in found["results"]]) == (2, ["Lamp B"])
    assert found["facets"] == {
        "category": {
            "values": [
                {"value": "books", "name": "Books", "count": 1},
                {"value": "garden", "name": "Garden", "count": 1},
                {"value": "lamps", "name": "Lamps", "count": 1},
            ],
            "missing": 0,
            "other_count": 0,
        },
        "country": {
            "values": [
                {"value": "AT", "name": "Austria", "count": 1},
                {"value": "DE", "name": "Germany", "count": 1},
                {"value": "WORLDWIDE", "name": "Worldwide", "count": 1},
            ],
            "missing": 1,
            "other_count": 0,
        },
    }
    nothing = await call(world, FIND_SHOP, query="qqxx", facets=["country"])
    assert nothing["facets"] == {"country": {"values": [], "missing": 0, "other_count": 0}}


@pytest.mark.rule("F5")
async def test_a_facet_shows_fifty_values_and_says_how_many_there_are_beyond_them(directory: Directory) -> None:
    slugs = [f"c{number:02d}" for number in range(61)]
    carried = [slugs[start : start + 20] for start in range(0, 61, 20)]
    world = await directory(*[shop(f"Lamp {some[0]}", categories=some) for some in (*carried, slugs[-2:])])
    found = (await call(world, FIND_SHOP, query="", facets=["category"]))["facets"]["category"]
    assert [one["value"] for one in found["values"]] == [*slugs[-2:], *slugs[:48]]
    assert [one["count"] for one in found["values"]] == [2, 2, *[1] * 48]
    assert (found["missing"], found["other_count"]) == (0, 11)


@pytest.mark.rule("M5")
async def test_a_word_means_a_category_by_its_name_or_slug_and_by_a_beginning_from_three_letters(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Alder", categories=[("tv", "Television")]),
        shop("Birch", categories=[("garden-tools", "Outdoor Help")]),
        shop("Cedar", categories=[("bucher", "Bücher & Hefte")]),
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
        shop("Alder", categories=["books"]),
        shop("Birch", categories=[("lighting", "Light")]),
        shop("Cedar", categories=["bicycles"]),
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
        shop("Alder", categories=["wood"]),
        shop("Birch", visibility="under_review", categories=["falconry"]),
        shop("Cedar", visibility="removed", categories=["falconry", "wood"]),
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


@pytest.mark.rule("M5", "I24")
async def test_of_too_many_categories_those_with_most_public_shops_are_taken(directory: Directory) -> None:
    slugs = ["lamp-q", "lamp-j", "lamp-k", "lamp-x"]
    lines = [shop(f"Alder {slug}".replace("lamp-", ""), categories=[(slug, f"Lamp {slug[-1]}")]) for slug in slugs]
    second = shop("Second q", categories=[("lamp-q", "Lamp q")])
    hidden = [
        shop(f"Unseen {number}", visibility=visibility, categories=[("lamp-x", "Lamp x")])
        for number, visibility in enumerate(("under_review", "removed", "under_review"))
    ]
    assert CATEGORY_CAP == 3
    world = await directory(*lines, second, *hidden)

    capped = await find(world, "lamp")
    assert (sorted(names(capped.shops)), capped.total) == (["Alder j", "Alder k", "Alder q", "Second q"], 4)
    assert capped.category_truncated
    # The fourth category is found by a word of its own, and by its slug as a filter.
    assert await found_names(world, "alder x") == ["Alder x"]
    assert names((await find(world, "", category="lamp-x")).shops) == ["Alder x"]


@pytest.mark.rule("M5", "I24")
async def test_truncation_is_reported_exactly_when_some_remaining_word_means_more_than_the_cap(
    directory: Directory,
) -> None:
    world = await directory(
        *(shop(f"Alder {number}", categories=[f"lamp-{number}"]) for number in range(4)),
        *(shop(f"Birch {number}", categories=[f"sofa-{number}"]) for number in range(3)),
        shop("Sofa Lampshade"),
    )
    truncated = {
        "lamp": True, "lam": True, "alder lamp": True, "lamp alder": True, "sofa lamp": True, "lamp qqxx": True,
        "sofa": False, "alder": False, "la": False, "lamp-1": False, "lampshade": False, "qqxx": False, "": False,
        "birch sofa": False, "sofa-1": False, "???": False,
    }  # fmt: skip
    assert {query: (await find(world, query)).category_truncated for query in truncated} == truncated
    assert (await find(world, "lamp", category="sofa-1")).category_truncated
    assert (await find(world, "lamp", limit=1)).category_truncated


@pytest.mark.rule("M3.labels")
async def test_a_label_around_the_main_label_is_evidence_where_another_word_is_of_the_shop(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Amazon", "amazon.co.uk", categories=["books"]),
        shop("Kompass", "de.kompass.com", categories=["travel"]),
        shop("Ozon", "ozon.xn--p1ai", categories=["toys"]),
        shop("Bucher", "bucher.myshopify.com", categories=["garden"]),
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
    for word in ("co", "net", "myshop"):
        assert (await find(world, f"books {word}")).ignored == (word,)


@pytest.mark.rule("M4", "M3.labels")
async def test_a_label_stands_below_names_and_above_categories(directory: Directory) -> None:
    ladder = [
        shop("Moon DE", "a.com"),
        shop("Side Moon", "b.com"),
        shop("Modernmoon", "c.com", aliases=["Deal"]),
        shop("Moon", "d.de", popularity=1),
        shop("Sun", "de.e.com", popularity=2, categories=["moon"]),
    ]
    world = await directory(*ladder[::-1])
    # `moon` names a category, so a part of a name is no evidence of it.
    assert await found_names(world, "moon de") == ["Moon DE", "Sun", "Moon"]


@pytest.mark.rule("M4", "M3.labels")
async def test_two_words_that_are_labels_and_categories_are_each_other_word(directory: Directory) -> None:
    world = await directory(
        shop("One", "lamp.one.sofa", popularity=1, categories=["lamp"]),
        shop("Two", "two.sofa", popularity=2, categories=["lamp"]),
        shop("Three", "three.com", popularity=3, categories=["lamp", "sofa"]),
        shop("Four", "lamp.four.com", popularity=4, categories=["lamp"]),
        shop("Five", "lamp.five.sofa", popularity=5, categories=["toys"]),
    )
    # One has (e) for both words; of the others a word has (c) only; no word of Five has any other evidence.
    assert await found_names(world, "lamp sofa") == ["Three", "Two", "One"]
