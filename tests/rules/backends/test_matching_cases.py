"""What people type, written by hand: the table of cases, and words for a shop, filters and unknown hosts."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.table_words import TABLE_WORDS
from indexer.catalogue.new_catalogue import category_records
from shop_directory.search.protocol import Snapshot, WordCount
from tests.rules.backends.asking import find, names, suggest
from tests.rules.backends.backends import Opener
from tests.rules.backends.conftest import Directory
from tests.rules.backends.strategies import SLUGS, catalogues, category_names
from tests.rules.backends.test_engines_agree import MANY, OPENSEARCH, compare
from tests.support.catalogues import shop
from tests.support.sample import SAMPLE, records

_SECTIONS: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("matching_cases.toml").read_text(encoding="utf-8")
)
# Queries of find_shop with their whole answers, by catalogue; the file says what its tables may hold.
WISHES: Final = _SECTIONS.pop("wishes")
_TYPING: Final = _SECTIONS.pop("typing")
_NAMES: Final = _SECTIONS.pop("names")
_TYPED: Final[dict[str, list[str]]] = _NAMES["typed"]
_PLAIN: Final[dict[str, Any]] = {"total": 1, "ignored": (), "did_you_mean": [], "word_counts": None}
_EMPTY: Final[dict[str, Any]] = {"shops": [], **_PLAIN, "total": 0}
_ROWS: Final[dict[str, tuple[list[dict[str, Any]], dict[str, Any]]]] = {
    "Marks & Spencer": ([shop("Marks & Spencer")], {"shops": ["Marks & Spencer"], **_PLAIN}),
    "mcdonald s": ([shop("McDonald's")], {"shops": ["McDonald's"], **_PLAIN}),
    "stewart´s": ([shop("Stewart's Shops")], {"shops": ["Stewart's Shops"], **_PLAIN}),
    "tui.co.uk": ([shop("TUI", "tui.co.uk")], {"shops": ["TUI"], **_PLAIN}),
    "zalando qqxx": ([shop("Zalando")], {"shops": ["Zalando"], **_PLAIN, "ignored": ("qqxx",)}),
    "amazon de": ([shop("Amazon", "amazon.de")], {"shops": ["Amazon"], **_PLAIN}),
    "amazon uk": (
        [shop("Amazon", "amazon.com", popularity=9), shop("Amazon Marketplace", "amazon.co.uk")],
        {"shops": ["Amazon Marketplace"], **_PLAIN},
    ),
    "nike mx": (
        [shop("Nike", "nike.com"), shop("Zapatos", "zapatos.mx")],
        {**_EMPTY, "did_you_mean": ["Nike"], "word_counts": (WordCount("nike", 1), WordCount("mx", 1))},
    ),
    "body shop": (
        [shop("The Body Shop"), shop("Body Shop Supplies", popularity=9)],
        {"shops": ["The Body Shop", "Body Shop Supplies"], **_PLAIN, "total": 2},
    ),
    # One word, as a part of a host's public suffix and by itself.
    "nike.shoes shoes": ([shop("Nike", "nike.com", categories=[("care", "Shoe care")])], {"shops": ["Nike"], **_PLAIN}),
    "???": ([shop("???")], {"shops": ["???"], **_PLAIN}),
    "qqxx": ([shop("Zalando")], {**_EMPTY, "ignored": ("qqxx",)}),
    "qqyx": ([shop("Qqxy")], {**_EMPTY, "ignored": ("qqyx",), "did_you_mean": ["Qqxy"]}),
}


def _lines(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of `shops`; the indexer refuses unknown members."""
    return [shop(row["name"], row.get("domain"), **row) for row in rows]


async def wrong_answers(world: Snapshot, cases: Iterable[dict[str, Any]], *, by_id: bool = False) -> list[str]:
    """The wishes that are not answered as they say: shops by id in a world of the file, else by name."""
    wrong = []
    for case in cases:
        found = await find(world, case["q"], limit=1)
        first, meant = ([one.id if by_id else one.name for one in some] for some in (found.shops, found.did_you_mean))
        answer = {"first": "".join(first), "total": found.total, "ignored": [*found.ignored], "meant": meant}
        if {"q": case["q"], **answer} != {"ignored": [], "meant": [], **case}:
            wrong.append(f"{answer}, expected {case}")
    return wrong


@pytest.mark.rule("X1", "X2", "X2.articles", "X2.unspaced", "X3", "M4", "M9")
async def test_the_expected_shop_is_first_in_a_search_and_among_suggestions(directory: Directory) -> None:
    world = await directory(*_lines(row for section in _SECTIONS.values() for row in section["shops"]))
    wrong = []
    for language, case in ((language, case) for language, section in _SECTIONS.items() for case in section["cases"]):
        found = (await find(world, case["q"], country=case.get("country"))).shops
        suggested = (await suggest(world, case["q"], country=case.get("country"))).shops
        answered = (found[0].id if found else "", suggested[0].shop.id if suggested else "")
        if answered != _expected(case):
            wrong.append(f"[{language}] {case['q']!r}: {answered}, expected {_expected(case)}")
    assert wrong == []


def _expected(case: dict[str, Any]) -> tuple[str, str]:
    return (case["first"], case["first"]) if "first" in case else (case["find_shop"], case["suggest"])


@pytest.mark.rule("M3.labels", "M3.wishes", "M3.hosts", "M3.category_words", "M4.one_word", "M5.stems", "M6.ignored")
async def test_wishes_in_words_and_countries_and_hosts_are_understood(directory: Directory) -> None:
    awkward = WISHES["awkward"]
    world = await directory(*_lines(awkward["shops"]), categories=awkward["categories"])
    assert await wrong_answers(world, awkward["cases"], by_id=True) == []


@pytest.mark.rule("M3.wishes", "M5", "M5.stems", "M5.runs", "M6.did_you_mean")
async def test_wishes_about_the_shops_of_the_sample_are_understood(directory: Directory) -> None:
    shops, categories = (records(SAMPLE / f"{kind}.ndjson") for kind in ("shops", "categories"))
    assert await wrong_answers(await directory(*shops, categories=categories), WISHES["sample"]["cases"]) == []


@pytest.mark.rule("M3.wishes", "M3.category_words", "M4.one_word", "M5", "M5.levels", "M5.runs", "M6.ignored")
async def test_wishes_are_understood_by_the_kinds_of_shops_that_a_catalogue_may_begin_with(
    directory: Directory,
) -> None:
    kinds, categories = WISHES["kinds"], category_records("shops")
    world = await directory(*_lines(kinds["shops"]), categories=categories)
    assert await wrong_answers(world, kinds["cases"], by_id=True) == []


@pytest.mark.rule("M6", "M6.ignored", "M6.did_you_mean", "M6.word_counts", "M3.labels")
@pytest.mark.parametrize("query", _ROWS)
async def test_each_row_is_answered_as_the_table_says(directory: Directory, query: str) -> None:
    shops, expected = _ROWS[query]
    found = await find(await directory(*shops), query)
    assert {
        "shops": names(found.shops),
        "total": found.total,
        "ignored": found.ignored,
        "did_you_mean": names(found.did_you_mean),
        "word_counts": found.word_counts,
    } == expected


async def _world(directory: Directory, *crowd: str) -> Snapshot:
    known = [shop(name, _NAMES["domains"].get(name), id=f"shop_{number}") for number, name in enumerate(_TYPED)]
    return await directory(*known, *(shop(name, popularity=9) for name in crowd))


async def _first(world: Snapshot, typed: str) -> tuple[str | None, str | None]:
    found, suggested = await find(world, typed), await suggest(world, typed, limit=1)
    assert found.ignored == (), typed
    return next(iter(names(found.shops)), None), next((first.shop.name for first in suggested.shops), None)


def _without_punctuation(name: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in name.replace("'", "")).split())


@pytest.mark.rule("X1", "X2", "M4", "M9")
async def test_a_name_typed_exactly_in_lower_case_or_without_punctuation_is_first(directory: Directory) -> None:
    world = await _world(directory, *_NAMES["crowd"])
    for name in _TYPED:
        for typed in (name, name.lower(), name.upper(), f"  {name} ", _without_punctuation(name)):
            assert await _first(world, typed) == (name, name), typed


@pytest.mark.rule("X1", "X2", "X3", "M4", "M9")
async def test_a_name_is_first_by_each_other_way_to_type_it(directory: Directory) -> None:
    world = await _world(directory, *_NAMES["crowd"])
    for name, ways in _TYPED.items():
        for typed in ways:
            assert await _first(world, typed) == (name, name), typed


@pytest.mark.rule("X2.keys", "M9", "I69")
async def test_a_name_is_suggested_by_its_beginning_and_by_each_of_its_words(directory: Directory) -> None:
    world = await _world(directory)
    begun = {
        "ゲ": "ゲオ", "쿠": "쿠팡", "spenc": "Marks & Spencer", "stewart": "Stewart's Shops", "c!t": "C!ty'super",
        "!xt": "!Xtend-Life", "life": "!Xtend-Life", "am:p": "AM:PM", "v.i": "V.I.M.", "niko and .": "niko and ...",
        "ша": "Шар@", "юла": "Youla / Юла", "you": "Youla / Юла", "36,": "36,6", "401g": "401 Games",
        "scrubs": "PulseUniform - Nursing Uniforms, Medical Scrubs", "store.401": "401 Games", "xn--ob": "ÖoB",
    }  # fmt: skip
    found = {typed: [found.shop.name for found in (await suggest(world, typed)).shops] for typed in begun}
    assert {typed: name for typed, (name, *_) in found.items()} == begun


@pytest.mark.rule("M1", "M2")
async def test_shops_of_one_name_all_come_first_the_most_popular_ahead(directory: Directory) -> None:
    world = await directory(
        shop("Coop", "coop.internal", id="c1", popularity=0.5),
        shop("Coop", "coop-two.internal", id="c2", popularity=0.75),
        shop("COOP", "co-op.internal", id="c3"),
        shop("Coop Forum", id="c4", popularity=9),
        shop("Jumbo", "jumbo.internal", id="j1", popularity=0.5),
        shop("Jumbo [AR]", id="j2", popularity=9, countries=["AR"]),
    )
    for typed, expected in (("coop", ["c2", "c1", "c3", "c4"]), ("jumbo", ["j1", "j2"])):
        assert [found.id for found in (await find(world, typed)).shops] == expected
    # Of so few characters only one shop is ahead of better-known names that begin so.
    for typed, expected in (("coop", ["c2", "c4", "c1", "c3"]), ("jumbo", ["j1", "j2"])):
        assert [found.shop.id for found in (await suggest(world, typed)).shops] == expected


_WORDS = sorted(word for word in TABLE_WORDS if len(word) > 1)
_NAMED = st.sampled_from(sorted({word for slug in SLUGS for word in slug.split("-") if len(word) > 2} - {"buecher"}))
_UNKNOWN = st.sampled_from(("qqxx.de", "www.qqxx-wwyy.co.uk", "https://qqxx.internal/shoes", "qqxx.рф", "a.qqxx.com"))


@pytest.mark.timeout(1_800)
@pytest.mark.rule("M3.wishes", "M3.hosts", "M6.ignored")
@pytest.mark.parametrize("opener", ["embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=catalogues, categories=category_names, asked=st.lists(
    st.tuples(_NAMED, st.sampled_from(_WORDS), _UNKNOWN).map(list), min_size=3, max_size=6))  # fmt: skip
def test_a_word_for_a_shop_loses_none_and_an_unknown_host_finds_none(
    opener: Opener, catalogue: list[dict[str, Any]], categories: tuple[dict[str, Any], ...], asked: list[list[str]]
) -> None:
    async def ask(_: Snapshot, world: Snapshot) -> None:
        for named, optional, host in asked:
            whole = (await find(world, named, limit=100)).shops
            alone = {found.id for found in whole}
            # Next to another word, the name of a category is no part of a shop's name.
            carrying = {found.id for found in whole if named in found.categories}
            for text in (f"{named} {optional}", f"{optional} {named}"):
                found = await find(world, text, limit=100)
                assert carrying <= {one.id for one in found.shops}, text
                assert not carrying or found.ignored == (), text
            unknown = await find(world, host)
            assert (unknown.shops, unknown.total, unknown.ignored) == ((), 0, (host,))
            beside = await find(world, f"{named} {host}", limit=100)
            assert carrying <= {one.id for one in beside.shops} <= alone
            assert beside.ignored[-1] == host

    compare(opener, ask, catalogue, categories=categories)


@pytest.mark.rule("M4.first_category", "M4.country")
async def test_the_first_category_and_then_the_country_decide_before_popularity(directory: Directory) -> None:
    world = await directory(
        shop("Second", popularity=9, categories=["toys", "lamps"], countries=["FR"]),
        shop("Silent", popularity=8, categories=["lamps"]),
        shop("Home", "home.fr", popularity=7, categories=["lamps"]),
        shop("Stated", popularity=6, categories=["lamps"], countries=["DE", "FR"]),
        shop("World", popularity=5, categories=["lamps"], countries=["WORLDWIDE"]),
        shop("Elsewhere", popularity=4, categories=["lamps"], countries=["DE"]),
    )
    first = ["Silent", "Home", "Stated", "World", "Elsewhere", "Second"]
    known = ["Home", "Stated", "World", "Silent", "Second"]
    assert names((await find(world, "lamp")).shops) == first
    assert names((await find(world, "", category="lamps")).shops) == first
    assert names((await find(world, "lamp shop", country="FR")).shops) == known
    assert names((await find(world, "", country="FR", category="lamps")).shops) == known
    assert names((await find(world, "", country="FR")).shops) == ["Second", "Home", "Stated", "World", "Silent"]
    pages = [await find(world, "", country="FR", category="lamps", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [one for page in pages for one in names(page.shops)] == known


@pytest.mark.rule("M3.wishes", "M6.word_counts")
async def test_a_word_for_a_shop_is_evidence_next_to_any_word_only_where_nothing_else_matches(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Nike", "nike.com", popularity=1),
        shop("The Body Shop", "thebodyshop.com", countries=["DE"]),
        shop("Body Wear", "bodywear.com", popularity=9, countries=["FR"]),
    )
    found = {
        "nike online shop": ["Nike"], "nike qqxx store": ["Nike"], "body shop": ["The Body Shop"],
        "online shop": [], "qqxx shop": [], "qqxx store": [], "store": [],
    }  # fmt: skip
    assert {query: names((await find(world, query)).shops) for query in found} == found
    # Another filter does not make it count: the shop that matches without it is there.
    abroad = await find(world, "body shop", country="FR")
    assert (abroad.total, abroad.ignored) == (0, ())
    lost = await find(world, "nike body store")
    assert [(count.word, count.shops) for count in lost.word_counts or ()] == [("nike", 1), ("body", 2)]


@pytest.mark.rule("M6.did_you_mean")
async def test_what_may_be_meant_is_a_whole_name_or_more_than_half_of_one(directory: Directory) -> None:
    world = await directory(
        shop("Nike", "nike.com", popularity=1),
        shop("Nikkei Asia Books", "nikkei-asia.com", popularity=9),
        shop("Carrefour", "carrefour.com", popularity=2),
        shop("Carrefouzr Market Stores", "carrefourmarketstores.com", popularity=9),
    )
    meant = {
        "nikei": ["Nike"], "nkie": ["Nike"], "nikex": ["Nike"], "xike": ["Nike"], "nik": [],
        "carrefuor": ["Carrefour"], "karrefourr": [], "carrffuor": ["Carrefour"],
        # Of 22 characters without spaces: half of them are asked for, one less is not.
        "carrefuozrm": ["Carrefouzr Market Stores"], "carrefuozr": ["Carrefour"],
        "nikei qqxx carrefuor": ["Nike", "Carrefour"],
    }  # fmt: skip
    assert {query: names((await find(world, query)).did_you_mean) for query in meant} == meant


@pytest.mark.rule("M6.did_you_mean", "M3.labels")
async def test_no_match_by_a_country_is_named_wherever_the_shop_is_in_the_index(directory: Directory) -> None:
    # More shops than a bitmap's word has bits; all but the least popular ones state the country.
    world = await directory(
        *[shop("Lampe", f"lampe{n}.com", id=f"s{n:02}", popularity=n, countries=["DE"] * (n > 3)) for n in range(70)]
    )
    found = await find(world, "lampe germany lampx", limit=1)
    assert (found.total, found.ignored, [near.id for near in found.did_you_mean]) == (
        66,
        ("lampx",),
        ["s03", "s02", "s01"],
    )


@pytest.mark.rule("M10", "X3")
async def test_a_domain_has_no_categories_and_a_scheme_is_cut_off_while_typing(directory: Directory) -> None:
    world = await directory(shop("Nike", "nike.com", categories=["com-goods", "nike-like"]))
    suggested = {}
    for text in ("nike", "nike.com", "nike.", "https://nik", "//nike", "http://nike.com/x", "https://"):
        result = await suggest(world, text)
        suggested[text] = (len(result.shops), len(result.categories))
    assert suggested == {
        "nike": (1, 1), "nike.com": (1, 0), "nike.": (1, 0), "https://nik": (1, 1), "//nike": (1, 1),
        "http://nike.com/x": (1, 0), "https://": (1, 2),
    }  # fmt: skip


@pytest.mark.rule("M10", "M5")
async def test_the_kinds_of_shops_that_a_catalogue_may_begin_with_are_shown_while_typing(directory: Directory) -> None:
    typing = _TYPING
    lines = [shop(f"Qq {slug}", f"{slug}.internal", categories=[slug]) for slug in typing["categories"]]
    world = await directory(*lines, categories=category_records("shops"))
    wrong = []
    for case in typing["cases"]:
        shown = [found.slug for found in (await suggest(world, case["q"])).categories]
        if "".join(shown[:1]) != case["first"] or not set(shown).isdisjoint(case.get("none_of", ())):
            wrong.append(f"{case}: {shown}")
    assert wrong == []


@pytest.mark.rule("E4", "V2")
async def test_the_closest_categories_are_those_meant_then_those_spelt_alike_else_none(directory: Directory) -> None:
    world = await directory(
        shop("One", popularity=1, categories=["lighting", "maps-globes", "garden", "garden-tools"]),
        shop("Two", popularity=2, categories=["garden-tools"]),
        shop("Hidden", visibility="under_review", categories=["secrets"]),
        categories=[{"slug": "lighting", "synonyms": ["lamps"]}],
    )
    closest = {
        "lamps": ("lighting",), "Lamp": ("lighting",), "gardn": ("garden",), "Garden Tools": ("garden-tools",),
        "secrets": (), "qqxx": (), "": (), "map-globes": ("maps-globes",),
    }  # fmt: skip
    assert {text: await world.closest_categories(text, 3) for text in closest} == closest
