"""Which words of a query are left out, how that is told, and what is named instead (M6)."""

import pytest

from service.search.protocol import Found
from tests.catalogues import shop
from tests.conformance.asking import find, names
from tests.conformance.conftest import Directory

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


@pytest.mark.rule("M6")
async def test_the_worked_table_of_the_decision_holds_row_by_row(directory: Directory) -> None:
    world = await directory(_SHOPS)
    rows: list[tuple[str, list[str], tuple[str, ...]]] = [
        ("Marks & Spencer", ["Marks & Spencer"], ()),
        ("mcdonald s", ["McDonald's"], ()),
        ("stewart´s", ["Stewart's Shops"], ()),
        ("tui.co.uk", ["TUI"], ()),
        ("zalando qqxx", ["Zalando"], ("qqxx",)),
        ("amazon de", ["Amazon"], ()),
        ("???", ["???"], ()),
        ("qqxx", [], ("qqxx",)),
    ]
    for query, expected, ignored in rows:
        found = await find(world, query)
        assert (names(found.shops), found.total, found.ignored) == (expected, len(expected), ignored), query
        assert found.did_you_mean == (), query


@pytest.mark.rule("M6.ignored", "I23")
async def test_dropped_words_are_listed_once_as_typed_in_query_order(directory: Directory) -> None:
    world = await directory(_SHOPS)
    listed = {
        "zalando QQxx!": ("QQxx!",),
        "(Qqxx) zalando": ("(Qqxx)",),
        "qqxx zalando QQXX Qqxx": ("qqxx",),
        "wwyy zalando QQXX aaxx": ("wwyy", "QQXX", "aaxx"),
        "zalando QQ-XX": ("qq", "xx"),
        "zalando QQXX-WWYY QQXX": ("QQXX", "wwyy"),
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
    world = await directory(_SHOPS)
    for query in ("zalando amazon", "zalando food", "marks clothing travel", "tui zalando marks"):
        assert await find(world, query) == Found((), 0, (), category_truncated=False, did_you_mean=()), query
    # No shop has the words "co" and "uk", but one has the whole query; "uk" alone is unknown.
    assert (await find(world, "tui.co.uk")).ignored == ()
    assert (await find(world, "zalando uk")).ignored == ("uk",)


@pytest.mark.rule("M6", "M7")
async def test_filters_do_not_decide_which_words_are_known(directory: Directory) -> None:
    world = await directory(_SHOPS)
    nothing = Found((), 0, (), category_truncated=False, did_you_mean=())
    assert await find(world, "zalando", country="FR") == nothing
    assert await find(world, "zalando", category="food") == nothing
    assert await find(world, "zalando clothing", country="FR") == nothing
    assert await find(world, "tui.co.uk", category="food") == nothing
    assert await find(world, "???", category="food") == nothing
    assert await find(world, "zalando qqxx", country="FR") == Found(
        (), 0, ("qqxx",), category_truncated=False, did_you_mean=()
    )


@pytest.mark.rule("M6", "V1", "I6")
async def test_a_word_that_only_hidden_shops_have_is_unknown(directory: Directory) -> None:
    world = await directory(_SHOPS)
    for word in ("Kestrel", "merlin", "falconry", "kes"):
        found = await find(world, f"zalando {word}")
        assert (names(found.shops), found.total, found.ignored) == (["Zalando"], 1, (word,)), word
        assert (await find(world, word)).ignored == (word,)
    assert await find(world, "kestrle") == Found((), 0, ("kestrle",), category_truncated=False, did_you_mean=())


@pytest.mark.rule("M6.nothing_left", "M6")
async def test_when_nothing_is_left_a_category_is_browsed_and_nothing_else_is(directory: Directory) -> None:
    world = await directory(_SHOPS)
    for query, ignored in (("qqxx", ("qqxx",)), ("QQxx - wwyy", ("QQxx", "wwyy")), ("!!!", ())):
        assert await find(world, query) == Found((), 0, ignored, category_truncated=False, did_you_mean=()), query
        browsed = await find(world, query, category="clothing")
        assert (set(names(browsed.shops)), browsed.total) == ({"Marks & Spencer", "Zalando"}, 2), query
        assert browsed.ignored == ignored
        in_france = await find(world, query, category="clothing", country="FR")
        assert names(in_france.shops) == ["Marks & Spencer"], query


@pytest.mark.rule("M6", "X1.last_form")
async def test_a_query_of_punctuation_alone_is_compared_as_it_is(directory: Directory) -> None:
    world = await directory(_SHOPS)
    for query, expected in (("???", ["???"]), (" ??? ", ["???"]), ("?", ["???"]), ("????", []), ("!?", [])):
        found = await find(world, query)
        assert (names(found.shops), found.total, found.ignored) == (expected, len(expected), ()), query


_NEAR = [
    shop("Kestrel", id="k1", popularity=1, countries=["DE"], categories=["birds"]),
    shop("Kestrelo", id="k2", popularity=2, countries=["FR"], categories=["birds"]),
    shop("Kestrelia", id="k3", popularity=3, countries=["FR"], categories=["toys"]),
    shop("Xestral", id="k4", popularity=4, categories=["birds"]),
    shop("Kastralbird", id="k5", popularity=5, categories=["birds"]),
    shop("Wren", id="w", popularity=9, categories=["birds"]),
]


@pytest.mark.rule("M6.did_you_mean")
async def test_what_was_meant_is_named_at_most_three_fewest_typos_first(directory: Directory) -> None:
    world = await directory(_NEAR)

    async def meant(query: str, *, country: str | None = None, category: str | None = None) -> list[str]:
        found = await find(world, query, country=country, category=category)
        assert (found.shops, found.total) == ((), 0), query
        return [near.id for near in found.did_you_mean]

    assert await meant("kestrl") == ["k3", "k2", "k1"]
    assert await meant("kasterlbird") == ["k5"]
    assert await meant("xestrel") == ["k4", "k3", "k2"]
    assert await meant("xestrel", country="DE") == ["k4", "k1"]
    assert await meant("xestrel", country="FR") == ["k4", "k3", "k2"]
    # Both of these are names, of shops that the filters keep out: their neighbours are what could be meant.
    assert await meant("kestrelo", category="toys") == ["k3"]
    assert await meant("kestrelia", country="DE") == ["k1"]
    # Too short to be misspelt, and further away than two typing errors.
    assert await meant("kex") == []
    assert await meant("kzzzrelbird") == []


@pytest.mark.rule("M6.did_you_mean")
async def test_a_shop_in_the_results_is_not_named_again_and_a_plain_answer_names_none(directory: Directory) -> None:
    world = await directory([*_NEAR, shop("Estrelqx", id="e", popularity=1)])

    plain = await find(world, "kestrel")
    assert [found.id for found in plain.shops] == ["k1", "k3", "k2"]
    assert (plain.ignored, plain.did_you_mean) == ((), ())

    # "kestrel qx" as one word is one letter from Estrelqx, and three shops that are shown are two from it.
    dropped = await find(world, "kestrel qx")
    assert [found.id for found in dropped.shops] == ["k1", "k3", "k2"]
    assert (dropped.ignored, [near.id for near in dropped.did_you_mean]) == (("qx",), ["e"])

    # The browsed category shows them all.
    browsed = await find(world, "kestrl", category="birds")
    assert [found.id for found in browsed.shops] == ["w", "k5", "k4", "k2", "k1"]
    assert (browsed.ignored, browsed.did_you_mean) == (("kestrl",), ())

    # On a page of its own the first is shown, and the others may be named.
    one = await find(world, "kestrel qx", limit=1)
    assert [found.id for found in one.shops] == ["k1"]
    assert [near.id for near in one.did_you_mean] == ["e", "k3", "k2"]
