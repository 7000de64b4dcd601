"""What words for a shop, unknown hosts, filters unknown categories do in any catalogue (M3 to M6, M10, E4)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.search.protocol import Snapshot
from service.search.query_words import OPTIONAL_WORDS
from tests.rules.backends.agreement import MANY, OPENSEARCH, compare
from tests.rules.backends.asking import find, names, suggest
from tests.rules.backends.backends import Opener
from tests.rules.backends.conftest import Directory
from tests.rules.backends.strategies import SLUGS, catalogues, category_names
from tests.support.catalogues import shop

_WORDS = sorted(word for word in OPTIONAL_WORDS if len(word) > 1)
_NAMED = st.sampled_from(sorted({word for slug in SLUGS for word in slug.split("-") if len(word) > 2} - {"buecher"}))
_UNKNOWN = st.sampled_from(("qqxx.de", "www.qqxx-wwyy.co.uk", "https://qqxx.internal/shoes", "qqxx.рф", "a.qqxx.com"))


@pytest.mark.timeout(1_800)
@pytest.mark.rule("M3.wishes", "M3.hosts", "M6.ignored")
@pytest.mark.parametrize("opener", ["embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=catalogues, categories=category_names, asked=st.lists(
    st.tuples(_NAMED, st.sampled_from(_WORDS), _UNKNOWN).map(list), min_size=3, max_size=6))  # fmt: skip
def test_a_word_for_a_shop_loses_none_and_an_unknown_host_finds_none(
    opener: Opener,
    catalogue: list[dict[str, Any]],
    categories: tuple[dict[str, Any], ...],
    asked: list[list[str]],
) -> None:
    async def ask(_: Snapshot, world: Snapshot) -> None:
        for named, optional, host in asked:
            alone = {found.id for found in (await find(world, named, limit=100)).shops}
            for text in (f"{named} {optional}", f"{optional} {named}"):
                found = await find(world, text, limit=100)
                assert alone <= {one.id for one in found.shops}, text
                assert not alone or found.ignored == (), text
            unknown = await find(world, host)
            assert (unknown.shops, unknown.total, unknown.ignored) == ((), 0, (host,))
            beside = await find(world, f"{named} {host}", limit=100)
            assert {one.id for one in beside.shops} == alone
            assert beside.ignored[-1] == host

    compare(opener, ask, catalogue, categories=categories)


@pytest.mark.rule("M4.first_category", "M4.country")
async def test_the_first_category_and_then_the_country_decide_before_popularity(directory: Directory) -> None:
    world = await directory(
        [
            shop("Second", popularity=9, categories=["toys", "lamps"], countries=["FR"]),
            shop("Silent", popularity=8, categories=["lamps"]),
            shop("Home", "home.fr", popularity=7, categories=["lamps"]),
            shop("Stated", popularity=6, categories=["lamps"], countries=["DE", "FR"]),
            shop("World", popularity=5, categories=["lamps"], countries=["WORLDWIDE"]),
            shop("Elsewhere", popularity=4, categories=["lamps"], countries=["DE"]),
        ]
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
        [
            shop("Nike", "nike.com", popularity=1),
            shop("The Body Shop", "thebodyshop.com", countries=["DE"]),
            shop("Body Wear", "bodywear.com", popularity=9, countries=["FR"]),
        ]
    )
    found = {
        "nike online shop": ["Nike"], "nike qqxx store": ["Nike"], "body shop": ["The Body Shop"],
        "online shop": ["The Body Shop"], "qqxx shop": ["The Body Shop"], "qqxx store": [], "store": [],
    }  # fmt: skip
    assert {query: names((await find(world, query)).shops) for query in found} == found
    # Another filter does not make it count: the shop that matches without it is there.
    abroad = await find(world, "body shop", country="FR")
    assert (abroad.total, abroad.ignored) == (0, ())
    lost = await find(world, "nike body store")
    assert [(count.word, count.shops) for count in lost.word_counts or ()] == [("nike", 1), ("body", 2), ("store", 3)]


@pytest.mark.rule("M6.did_you_mean")
async def test_what_may_be_meant_is_a_whole_name_or_more_than_half_of_one(directory: Directory) -> None:
    world = await directory(
        [
            shop("Nike", "nike.com", popularity=1),
            shop("Nikkei Asia Books", "nikkei-asia.com", popularity=9),
            shop("Carrefour", "carrefour.com", popularity=2),
            shop("Carrefouzr Market Stores", "carrefourmarketstores.com", popularity=9),
        ]
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
        [shop("Lampe", f"lampe{n}.com", id=f"s{n:02}", popularity=n, countries=["DE"] * (n > 3)) for n in range(70)]
    )
    found = await find(world, "lampe germany lampx", limit=1)
    assert (found.total, found.ignored, [near.id for near in found.did_you_mean]) == (
        66,
        ("lampx",),
        ["s03", "s02", "s01"],
    )


@pytest.mark.rule("M10", "X3")
async def test_a_domain_has_no_categories_and_a_scheme_is_cut_off_while_typing(directory: Directory) -> None:
    world = await directory([shop("Nike", "nike.com", categories=["com-goods", "nike-like"])])
    suggested = {}
    for text in ("nike", "nike.com", "nike.", "https://nik", "//nike", "http://nike.com/x", "https://"):
        result = await suggest(world, text)
        suggested[text] = (len(result.shops), len(result.categories))
    assert suggested == {
        "nike": (1, 1), "nike.com": (1, 0), "nike.": (1, 0), "https://nik": (1, 1), "//nike": (1, 1),
        "http://nike.com/x": (1, 0), "https://": (1, 2),
    }  # fmt: skip


@pytest.mark.rule("E4", "V2")
async def test_the_closest_categories_are_those_meant_then_those_spelt_alike_else_none(directory: Directory) -> None:
    world = await directory(
        [
            shop("One", popularity=1, categories=["lighting", "maps-globes", "garden", "garden-tools"]),
            shop("Two", popularity=2, categories=["garden-tools"]),
            shop("Hidden", visibility="under_review", categories=["secrets"]),
        ],
        categories=[{"slug": "lighting", "synonyms": ["lamps"]}],
    )
    closest = {
        "lamps": ("lighting",), "Lamp": ("lighting",), "gardn": ("garden",), "Garden Tools": ("garden-tools", "garden"),
        "secrets": (), "qqxx": (), "": (), "map-globes": ("maps-globes",),
    }  # fmt: skip
    assert {text: await world.closest_categories(text, 3) for text in closest} == closest
