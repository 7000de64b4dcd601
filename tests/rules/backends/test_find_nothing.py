"""What is said where a search finds less than was asked: near names, counts, words that are left out (M6)."""

import pytest

from shop_directory.search.protocol import Found
from tests.rules.backends.asking import find, names
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop

_NEAR = [
    shop("Kestrel", id="k1", popularity=1, countries=["DE"], categories=["plumes"]),
    shop("Kestrelo", id="k2", popularity=2, countries=["FR"], categories=["plumes"]),
    shop("Kestrelia", id="k3", popularity=3, countries=["FR"], categories=["toys"]),
    shop("Xestral", id="k4", popularity=4, categories=["plumes"]),
    shop("Kastralbird", id="k5", popularity=5, categories=["plumes"]),
    shop("Wren", id="w", popularity=9, categories=["plumes"]),
]
_SHOPS = [
    shop("Marks & Spencer", categories=["clothing"]),
    shop("McDonald's", categories=["food"]),
    shop("Stewart's Shops", categories=["food"]),
    shop("TUI", "tui.co.uk", categories=["travel"]),
    shop("Zalando", categories=["clothing"], countries=["DE"]),
    shop("Amazon", "amazon.de", categories=["books"]),
    shop("???", categories=["books"]),
    shop("Kestrel", visibility="under_review", categories=["falconry"]),
    shop("Merlin", visibility="removed"),
]


@pytest.mark.rule("M6.did_you_mean")
async def test_what_was_misspelt_is_named_at_most_three_fewest_typos_first(directory: Directory) -> None:
    world = await directory(*_NEAR)

    async def meant(query: str, *, country: str | None = None, category: str | None = None) -> list[str]:
        found = await find(world, query, country=country, category=category)
        assert (found.shops, found.total) == ((), 0), query
        return [near.id for near in found.did_you_mean]

    assert await meant("kestrl") == ["k3", "k2", "k1"]
    assert await meant("kasterlbird") == ["k5"]
    assert await meant("xestrel") == ["k4", "k3", "k2"]
    assert await meant("xestrel", country="DE") == ["k4", "k1"]
    assert await meant("xestrel", country="FR") == ["k4", "k3", "k2"]
    # Both of these are names, of shops that the filters exclude: their neighbours are what could be meant.
    assert await meant("kestrelo", category="toys") == ["k3"]
    assert await meant("kestrelia", country="DE") == ["k1"]
    # Too short to be misspelt, and further away than two typing errors.
    assert await meant("kex") == []
    assert await meant("kzzzrelbird") == []


@pytest.mark.rule("M6.did_you_mean")
async def test_a_whole_name_with_something_else_is_named_after_one_typo_and_among_two(directory: Directory) -> None:
    world = await directory(
        shop("Carrefour", "one.internal", id="c1", popularity=1, countries=["FR"]),
        shop("Carrefour", "two.internal", id="c2", popularity=2, countries=["ES"]),
        shop("Carrefour Straim", id="once"),
        shop("Lidl Entorteinment", id="twice", popularity=1),
        shop("Lidl", id="lidl", popularity=2),
        shop("Strain Travel Entertainment", id="s"),
    )

    async def meant(query: str, country: str | None = None) -> list[str]:
        found = await find(world, query, country=country)
        assert (found.shops, found.ignored) == ((), ()), query
        return [near.id for near in found.did_you_mean]

    assert await meant("carrefour strain") == ["once", "c2", "c1"]
    assert await meant("carrefour strain", "FR") == ["once", "c1"]
    assert await meant("travel carrefour") == ["c2", "c1"]
    # Lidl holds less than a quarter of the letters of the second query.
    assert await meant("lidl travel") == ["lidl"]
    assert await meant("lidl entertainment") == ["twice"]
    assert await meant("entertainment lidl travel") == []


@pytest.mark.rule("M6.did_you_mean")
async def test_no_match_is_named_on_whatever_page_and_a_plain_answer_names_none(directory: Directory) -> None:
    world = await directory(*_NEAR, shop("Estrelqx", id="e", popularity=1))

    plain = await find(world, "kestrel")
    assert [found.id for found in plain.shops] == ["k1", "k3", "k2"]
    assert (plain.ignored, plain.did_you_mean, plain.word_counts) == ((), (), None)

    # "kestrel qx" as one word is one letter from Estrelqx. Two errors do not count where there are matches.
    for limit, offset in ((50, 0), (1, 0), (1, 2), (1, 9)):
        dropped = await find(world, "kestrel qx", limit=limit, offset=offset)
        assert (dropped.total, dropped.ignored, dropped.word_counts) == (3, ("qx",), None)
        assert [near.id for near in dropped.did_you_mean] == ["e"], (limit, offset)

    # Every shop of the browsed category is a match.
    for limit in (1, 50):
        browsed = await find(world, "kestrl", category="plumes", limit=limit)
        assert (browsed.total, browsed.ignored, browsed.did_you_mean) == (5, ("kestrl",), ())


@pytest.mark.rule("M6.did_you_mean", "M3")
async def test_a_near_shop_that_matches_by_any_evidence_is_not_named(directory: Directory) -> None:
    world = await directory(
        shop("Lamp", "one.com", id="alias", popularity=9, aliases=["Sofas"]),
        shop("Lamp", "thesofas.com", id="part", popularity=8),
        shop("Lamp", "three.sofa", id="label", popularity=7),
        # More than are looked at first.
        *(shop("Lamp", f"four-{n}.com", id=f"c{n}", popularity=6, categories=["sofa-things"]) for n in range(50)),
        shop("Lamp", "five.com", id="none"),
    )
    found = await find(world, "lamp qqxx sofa", limit=1)
    assert (found.total, found.ignored) == (53, ("qqxx",))
    assert [near.id for near in found.did_you_mean] == ["none"]


@pytest.mark.rule("M6.word_counts")
async def test_each_word_of_a_query_without_matches_is_counted_once_within_the_filters(directory: Directory) -> None:
    world = await directory(
        shop("Blue Lamp", "bluelamp.de", countries=["DE"], categories=["light"]),
        shop("Blue Sofa", "bluesofa.co.uk", categories=["home"]),
        shop("Redlampion", "redlampion.fr", countries=["FR"], categories=["home"]),
        shop("Hidden Lamp", "hidden.de", visibility="under_review", categories=["light"]),
    )

    async def counted(query: str, *, country: str | None = None, category: str | None = None) -> dict[str, int] | None:
        found = await find(world, query, country=country, category=category)
        assert found.total == 0, query
        return None if found.word_counts is None else {count.word: count.shops for count in found.word_counts}

    assert await counted("BLUE fr") == {"BLUE": 2, "fr": 1}  # (a), (e)
    assert await counted("blue lampi") == {"blue": 2, "lampi": 1}  # (d)
    assert await counted("light home") == {"light": 1, "home": 2}  # (c)
    assert await counted("light home", country="DE") == {"light": 1, "home": 1}
    assert await counted("light blue", category="home") == {"light": 0, "blue": 1}
    assert await counted("qqxx wwyy qqxx") == {"qqxx": 0, "wwyy": 0}
    assert await counted("uk uk") == {"uk": 1}
    assert await counted("qqxx") is None
    assert await counted("???") is None


@pytest.mark.rule("M6.ignored", "I23")
async def test_dropped_words_are_listed_once_as_typed_in_query_order(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    listed = {
        "zalando QQxx!": ("QQxx!",),
        "(Qqxx) zalando": ("(Qqxx)",),
        "qqxx zalando QQXX Qqxx": ("qqxx",),
        "wwyy zalando QQXX aaxx": ("wwyy", "QQXX", "aaxx"),
        "zalando QQ-XX": ("QQ", "XX"),
        "zalando QQXX-WWYY QQXX": ("QQXX", "WWYY"),
        "QQXX'zz zalando": ("QQXX'zz",),
        "zalando Ößqx": ("Ößqx",),
        "zalando - QQxx & ... ???": ("QQxx",),
        "zalando ???": (),
        "- zalando !": (),
    }
    found = {query: await find(world, query) for query in listed}
    assert {query: answer.ignored for query, answer in found.items()} == listed
    assert [query for query, answer in found.items() if names(answer.shops) != ["Zalando"]] == []


@pytest.mark.rule("M6", "M6.ignored")
async def test_nothing_is_dropped_while_each_word_is_known_or_the_whole_query_is(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    for query in ("zalando amazon", "zalando food", "marks clothing travel", "tui zalando marks"):
        found = await find(world, query)
        assert (found.shops, found.total, found.ignored, found.category_truncated) == ((), 0, (), False), query
    # No shop has the words "co" and "uk", but one has the whole query.
    assert (await find(world, "tui.co.uk")).ignored == ()


@pytest.mark.rule("M6", "M3.labels")
async def test_a_label_of_some_domain_is_known_in_a_query_of_several_words_only(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    ignored = {"zalando uk": (), "uk": ("uk",), "uk uk": (), "qqxx uk": ("qqxx",), "zalando co": ("co",)}
    assert {query: (await find(world, query)).ignored for query in ignored} == ignored


@pytest.mark.rule("M6", "M7")
async def test_filters_do_not_decide_which_words_are_known(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    for query, country, category, ignored in (
        ("zalando", "FR", None, ()),
        ("zalando", None, "food", ()),
        ("zalando clothing", "FR", None, ()),
        ("tui.co.uk", None, "food", ()),
        ("???", None, "food", ()),
        ("zalando qqxx", "FR", None, ("qqxx",)),
    ):
        found = await find(world, query, country=country, category=category)
        assert (found.shops, found.total, found.ignored, found.did_you_mean) == ((), 0, ignored, ()), query


@pytest.mark.rule("M6", "V1", "I6")
async def test_a_word_that_only_hidden_shops_have_is_unknown(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    for word in ("Kestrel", "merlin", "falconry", "kes"):
        found = await find(world, f"zalando {word}")
        assert (names(found.shops), found.total, found.ignored) == (["Zalando"], 1, (word,)), word
        assert (await find(world, word)).ignored == (word,)
    assert await find(world, "kestrle") == Found((), 0, ("kestrle",), category_truncated=False, did_you_mean=())


@pytest.mark.rule("M6.nothing_left", "M6")
async def test_when_nothing_is_left_a_category_is_browsed_and_nothing_else_is(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    for query, ignored in (("qqxx", ("qqxx",)), ("QQxx - wwyy", ("QQxx", "wwyy")), ("!!!", ())):
        empty = await find(world, query)
        assert (empty.shops, empty.total, empty.ignored, empty.did_you_mean) == ((), 0, ignored, ()), query
        browsed = await find(world, query, category="clothing")
        assert (set(names(browsed.shops)), browsed.total) == ({"Marks & Spencer", "Zalando"}, 2), query
        assert browsed.ignored == ignored
        in_france = await find(world, query, category="clothing", country="FR")
        assert names(in_france.shops) == ["Marks & Spencer"], query


@pytest.mark.rule("M6", "X1.last_form")
async def test_a_query_of_punctuation_alone_is_compared_as_it_is(directory: Directory) -> None:
    world = await directory(*_SHOPS)
    for query, expected in (("???", ["???"]), (" ??? ", ["???"]), ("?", ["???"]), ("????", []), ("!?", [])):
        found = await find(world, query)
        assert (names(found.shops), found.total, found.ignored) == (expected, len(expected), ()), query


_WINES = [
    shop("Grape Hall", id="w1", popularity=3, categories=["wine"], countries=["FR"]),
    shop("Vine Yard", id="w2", popularity=2, categories=["wine"]),
    *(shop(f"Red House {n}", id=f"r{n}", popularity=9 - n, categories=["decor"], countries=["DE"]) for n in range(7)),
    shop("Oak Barrel", id="o", categories=["wood"]),
    shop("Red Hidden Wine", visibility="under_review", categories=["wine"]),
]


def _broader(found: Found) -> list[tuple[str, tuple[str, ...], int, list[str]]] | None:
    if found.broader is None:
        return None
    return [(one.query, one.left_out, one.total, [shown.id for shown in one.shops]) for one in found.broader]


@pytest.mark.rule("M6.broader")
async def test_without_a_match_the_queries_of_fewer_words_that_find_shops_are_named(directory: Directory) -> None:
    world = await directory(*_WINES)
    wine, red = ("wine", ("red",), 2, ["w1", "w2"]), ("red", ("wine",), 7, ["r0", "r1", "r2", "r3", "r4"])
    # The query that keeps a category's name comes first, though the other finds more.
    assert _broader(await find(world, "red wine")) == [wine, red]
    assert _broader(await find(world, "where can I buy red wine")) == [wine, red]
    assert _broader(await find(world, "Red Wine qqxx")) == [("Wine", ("Red",), *wine[2:]), ("Red", ("Wine",), *red[2:])]
    # Filters apply; so do those that leave nothing.
    assert _broader(await find(world, "red wine", country="FR")) == [("wine", ("red",), 2, ["w1", "w2"])]
    assert _broader(await find(world, "red wine", category="wood")) == []
    # There are none where something is found, and without two words that are no table words.
    assert [_broader(await find(world, query)) for query in ("wine", "wine shop", "qqxx shop", "qqxx", "")] == [
        None
    ] * 5


@pytest.mark.rule("M6.broader")
async def test_where_no_query_of_one_word_less_finds_any_more_words_are_left_out(directory: Directory) -> None:
    world = await directory(*_WINES)
    # Words of fewer shops are left out before others.
    one = ("red", ("oak", "wine"), 7, ["r0", "r1", "r2", "r3", "r4"])
    assert _broader(await find(world, "red oak wine")) == [one]
    four = await find(world, "red oak grape house")
    assert _broader(four) == [("red house", ("oak", "grape"), 7, ["r0", "r1", "r2", "r3", "r4"])]


@pytest.mark.rule("M6.broader")
async def test_each_broader_query_finds_what_it_is_said_to_find(directory: Directory) -> None:
    world = await directory(*_WINES)
    for query in ("red wine", "oak wine", "red oak wine", "grape yard house", "wine germany oak"):
        found = await find(world, query, country="DE")
        assert found.total == 0
        for one in found.broader or ():
            again = await find(world, one.query, country="DE", limit=5)
            assert (again.total, [shown.id for shown in again.shops]) == (one.total, [shown.id for shown in one.shops])
