"""Which words of a query are left out, and how that is shown (M6)."""

import pytest

from service.search.protocol import Found
from tests.rules.backends.asking import find, names
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop

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


@pytest.mark.rule("M6.ignored", "I23")
async def test_dropped_words_are_listed_once_as_typed_in_query_order(directory: Directory) -> None:
    world = await directory(_SHOPS)
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
    world = await directory(_SHOPS)
    for query in ("zalando amazon", "zalando food", "marks clothing travel", "tui zalando marks"):
        found = await find(world, query)
        assert (found.shops, found.total, found.ignored, found.category_truncated) == ((), 0, (), False), query
    # No shop has the words "co" and "uk", but one has the whole query.
    assert (await find(world, "tui.co.uk")).ignored == ()


@pytest.mark.rule("M6", "M3.labels")
async def test_a_label_of_some_domain_is_known_in_a_query_of_several_words_only(directory: Directory) -> None:
    world = await directory(_SHOPS)
    ignored = {"zalando uk": (), "uk": ("uk",), "uk uk": (), "qqxx uk": ("qqxx",), "zalando co": ("co",)}
    assert {query: (await find(world, query)).ignored for query in ignored} == ignored


@pytest.mark.rule("M6", "M7")
async def test_filters_do_not_decide_which_words_are_known(directory: Directory) -> None:
    world = await directory(_SHOPS)
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
        empty = await find(world, query)
        assert (empty.shops, empty.total, empty.ignored, empty.did_you_mean) == ((), 0, ignored, ()), query
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
