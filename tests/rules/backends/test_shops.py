"""Looking one shop up, and the list of categories with their counts (M11)."""

import pytest

from index_mappings.documents import Category, Shop
from service.runtime.request_context import bind_request, new_request_context
from service.tools.find_shop import FIND_SHOP
from service.tools.get_shop import GET_SHOP
from service.tools.get_shops import GET_SHOPS
from service.tools.resolve_conflict import RESOLVE_CONFLICT
from tests.rules.backends.asking import call, find, names, suggest
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import offer, shop
from tests.support.reference.backend import ReferenceBackend


@pytest.mark.rule("I10", "V1", "V2", "I6", "I55")
async def test_a_public_shop_is_known_by_its_id_and_its_domain_and_no_other_shop_is(directory: Directory) -> None:
    world = await directory(
        [
            shop(
                "Öob",
                "www.öob.se",
                id="Shop_1",
                categories=["garden", "books"],
                countries=["SE", "NO"],
                popularity=0.5,
                aliases=["OB", "Öob", "OB"],
            ),
            shop("Plain", "plain.internal", id="2", categories=["books"], countries=["WORLDWIDE"]),
            shop("Quiet", "quiet.internal", id="under-review", visibility="under_review"),
            shop("Gone", "gone.internal", id="removed", visibility="removed"),
        ]
    )
    full = Shop("Shop_1", "Öob", ("OB",), "xn--ob-eka.se", ("garden", "books"), ("SE", "NO"), 0.5)
    assert (await world.shop("Shop_1"), await world.shop("xn--ob-eka.se")) == (full, full)
    plain = Shop("2", "Plain", (), "plain.internal", ("books",), ("WORLDWIDE",), None)
    assert (await world.shop("2"), await world.shop("plain.internal")) == (plain, plain)
    unknown = (
        "shop_1", "1", "nobody", "nobody.internal", "shop.plain.internal", "internal", "Plain", "",
        "under-review", "quiet.internal", "removed", "gone.internal",
    )  # fmt: skip
    assert {reference: await world.shop(reference) for reference in unknown} == dict.fromkeys(unknown)


@pytest.mark.rule("A14", "V1", "V2", "R1")
async def test_many_shops_are_looked_up_together_in_the_order_asked(directory: Directory) -> None:
    world = await directory(
        [
            *(shop(f"Shop {n}", f"shop-{n}.internal", id=f"s{n}", popularity=n) for n in range(100)),
            shop("Quiet", "quiet.internal", id="quiet", visibility="under_review"),
        ],
        offers=[offer(f"o{n}", "s7", updated_at=f"2031-05-0{n + 1}T00:00:00Z") for n in range(5)],
    )
    assert await world.shops(()) == ()
    references = ("s7", "nobody", "shop-3.internal", "S7", "quiet", "quiet.internal", "shop-7.internal", "s7", "s99")
    expected = [await world.shop(reference) for reference in references]
    assert [found and found.id for found in expected] == ["s7", None, "s3", None, None, None, "s7", "s7", "s99"]
    assert await world.shops(references) == tuple(expected)
    (seventh,) = await world.shops(("s7",))
    assert seventh is not None
    assert ([view["offer_id"] for view in seventh.offers], seventh.offers_total) == (["o4", "o3", "o2"], 5)
    all_of_them = tuple(f"shop-{n}.internal" for n in range(100))
    assert [found and found.id for found in await world.shops(all_of_them)] == [f"s{n}" for n in range(100)]


@pytest.mark.rule("A14", "A1")
async def test_get_shops_shows_each_shop_as_a_search_does(directory: Directory) -> None:
    aliases = [f"Alias {n}" for n in range(12)]
    world = await directory([shop("Nord", "nord.internal", id="s1", aliases=aliases), shop("Sud", id="s2")])
    (view,) = (await call(world, FIND_SHOP, query="nord"))["results"]
    assert (view["aliases"], view["aliases_total"]) == (tuple(aliases[:10]), 12)
    asked = ["nord.internal", "no id", " S1 ", "s1"]
    assert await call(world, GET_SHOPS, shop_domains=asked) == {
        "results": [
            {"shop_domain": "nord.internal", "shop": view},
            {"shop_domain": "no id", "shop": None},
            {"shop_domain": " S1 ", "shop": None},
            {"shop_domain": "s1", "shop": view},
        ],
        "found": 2,
    }
    assert await call(world, GET_SHOPS, shop_domains=["no id"]) == {
        "results": [{"shop_domain": "no id", "shop": None}],
        "found": 0,
    }
    whole = await call(world, GET_SHOP, shop_domain="s1")
    assert whole == {**view, "aliases": tuple(aliases)}
    audit = await call(world, RESOLVE_CONFLICT, from_shop_id="s1", to_shop_id="s2")
    assert (audit["from"], audit["to"]["aliases_total"]) == (view, 0)


@pytest.mark.rule("A14", "A1.offers")
async def test_a_hundred_shops_are_one_round_trip_and_so_is_a_shop_with_its_offers(directory: Directory) -> None:
    shops = [shop(f"Shop {n}", f"shop-{n}.internal", id=f"s{n}") for n in range(100)]
    world = await directory(shops, offers=[offer(f"o{n}", "s1") for n in range(5)])
    round_trips = 0 if isinstance(world, ReferenceBackend) else 1
    with bind_request(new_request_context("many")) as many:
        found = await call(world, GET_SHOPS, shop_domains=[f"shop-{n}.internal" for n in range(100)])
    with bind_request(new_request_context("one")) as one:
        view = await call(world, GET_SHOP, shop_domain="s1", offers_offset=2)
    assert (found["found"], len(view["offers"]), view["offers_total"]) == (100, 3, 5)
    assert (many.engine_calls, one.engine_calls) == (round_trips, round_trips)


@pytest.mark.rule("V1", "I6")
async def test_a_hidden_shop_is_in_no_answer_and_leaves_its_domain_to_a_public_one(directory: Directory) -> None:
    world = await directory(
        [
            shop("Falcon Secret", "falcon.internal", id="s", popularity=9, visibility="under_review"),
            shop("Falcon Former", "falcon.internal", id="f", popularity=8, visibility="removed"),
            shop("Falcon Open", "falcon.internal", id="o", popularity=1),
            shop("Falcon Later", "falcon.internal", id="l", popularity=0),
        ]
    )
    domain = await world.shop("falcon.internal")
    assert domain is not None
    assert (domain.id, await world.shop("s"), await world.shop("f"), await world.shop("l")) == ("o", None, None, None)
    for text in ("falcon", "falcon.internal", "", "falcno", "secret falcon"):
        assert names((await find(world, text)).shops) in (["Falcon Open"], []), text
        assert names(found.shop for found in (await suggest(world, text)).shops) in (["Falcon Open"], []), text
    assert names((await find(world, "falcon")).shops) == ["Falcon Open"]
    assert await world.categories() == (Category("things", "Things", 1),)


@pytest.mark.rule("M11", "I14", "I15", "I52")
async def test_categories_are_listed_with_the_public_shops_that_carry_them(directory: Directory) -> None:
    world = await directory(
        [
            shop("One", categories=["books", "garden"]),
            shop("Two", categories=["books", "art", "books"]),
            shop("Three", categories=["garden"]),
            shop("Four", categories=["zoo"], countries=["FR"]),
            shop("Five", visibility="under_review", categories=["falconry", "zoo"]),
            shop("Six", visibility="removed", categories=["falconry", "art"]),
            shop("Lost", "same.internal", id="lost", categories=["lost", "art"]),
            shop("Kept", "same.internal", id="kept", categories=["art"]),
        ]
    )
    assert await world.categories() == (
        Category("art", "Art", 2),
        Category("books", "Books", 2),
        Category("garden", "Garden", 2),
        Category("zoo", "Zoo", 1),
    )


@pytest.mark.rule("A13", "I15")
async def test_a_directory_of_hidden_shops_answers_with_nothing(directory: Directory) -> None:
    world = await directory([shop("Quiet", "quiet.internal", visibility="under_review")])
    assert await world.categories() == ()
    for text in ("", "quiet", "quite"):
        found, suggested = await find(world, text), await suggest(world, text)
        assert (found.shops, found.total, suggested.shops, suggested.categories) == ((), 0, (), ()), text
    assert await world.shop("quiet.internal") is None
