"""Offers with their shops, and the two checkout tools (A1, A2, A10, A11, M11)."""

from typing import Any, Final

import pytest

from service.errors import NoValidCheckoutUrlError, OfferNotFoundError, ShopNotFoundError
from service.tools.find_shop import FIND_SHOP
from service.tools.get_shop import GET_SHOP
from service.tools.monetize_offer import MONETIZE_OFFER
from service.tools.resolve_checkout_url import RESOLVE_CHECKOUT_URL
from service.tools.tool import Tool
from shop_directory.search.protocol import Snapshot
from tests.rules.backends.asking import call
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import offer, program, shop

URL: Final = "https://nord.internal/a?b=c"
NETWORK_URL: Final = "https://go.network.internal/click?to=https%3A%2F%2Fnord.internal%2Fa%3Fb%3Dc"
NORD: Final = shop("Nord", "nord.internal", id="s1", popularity=1)
NO_PROGRAM: Final = {"applied": False, "network": None, "reason": "no_program"}
# What the two tools say of an offer, and of its URL through the network.
PAID: Final[dict[str, Any]] = {
    "offer_id": "paid",
    "shop": {"id": "s1", "domain": "nord.internal"},
    "checkout_url": URL,
    "affiliate": {"applied": False, "network": None, "reason": "not_requested"},
}
THROUGH: Final = {
    **PAID, "checkout_url": NETWORK_URL, "affiliate": {"applied": True, "network": "Net", "reason": None},
}  # fmt: skip


def _ids(view: dict[str, Any]) -> list[str]:
    return [listed["offer_id"] for listed in view["offers"]]


@pytest.mark.rule("A1.offers", "A2", "I38", "M11.other_lists")
async def test_a_shop_comes_with_its_newest_offers_three_in_a_search_and_a_hundred_by_itself(
    directory: Directory,
) -> None:
    timed = [offer(f"o{n:03}", "s1", updated_at=f"2031-05-{1 + n // 24:02}T{n % 24:02}:00:00Z") for n in range(150)]
    world = await directory(
        NORD, shop("Sud", id="s2"), offers=[*timed, offer("sud", "s2", updated_at="2032-01-01T00:00:00Z")]
    )
    newest = [f"o{n:03}" for n in range(149, -1, -1)]
    (found,) = (await call(world, FIND_SHOP, query="nord"))["results"]
    assert (_ids(found), found["offers_total"]) == (newest[:3], 150)
    for reference in ("s1", "nord.internal"):
        known = await call(world, GET_SHOP, shop_domain=reference)
        assert (_ids(known), known["offers_total"]) == (newest[:100], 150)
    assert {**found, "offers": ()} == {**known, "offers": ()}
    assert found["offers"] == known["offers"][:3]


@pytest.mark.rule("A1.offers", "A14")
async def test_offers_are_read_on_from_an_offset_and_past_the_last_there_are_none(directory: Directory) -> None:
    world = await directory(NORD, offers=[offer(f"o{n:03}", "s1") for n in range(150)])
    in_order = [f"o{n:03}" for n in range(150)]
    for offset in (0, 1, 100, 149, 150, 99_999, 100_000):
        view = await call(world, GET_SHOP, shop_domain="s1", offers_offset=offset)
        assert (_ids(view), view["offers_total"]) == (in_order[offset : offset + 100], 150), offset
    with pytest.raises(ShopNotFoundError):
        await call(world, GET_SHOP, shop_domain="nobody", offers_offset=100_000)


@pytest.mark.rule("M11.other_lists", "A2")
async def test_offers_of_one_time_or_none_are_in_the_order_of_their_ids_those_without_a_time_last(
    directory: Directory,
) -> None:
    time = "2031-05-06T07:08:09Z"
    times = {"b": None, "B": None, "d": time, "C": time, "a": "2031-05-06T07:08:09.000001Z"}
    world = await directory(NORD, offers=[offer(offer_id, "s1", updated_at=at) for offer_id, at in times.items()])
    assert _ids(await call(world, GET_SHOP, shop_domain="s1")) == ["a", "C", "d", "B", "b"]
    (found,) = (await call(world, FIND_SHOP, query=""))["results"]
    assert _ids(found) == ["a", "C", "d"]


@pytest.mark.rule("A2", "A13")
async def test_an_offer_is_shown_without_its_url_and_with_null_for_what_is_not_stated(directory: Directory) -> None:
    price = {"amount": "19.90", "currency": "EUR"}
    lamp = {"title": "A lamp", "price": price, "availability": "preorder", "updated_at": "2031-05-06T07:08:09Z"}
    offers = [offer("o1", "s1", url=URL, **lamp), offer("o2", "s1", title="Another")]
    world = await directory(NORD, shop("Sud", id="s2"), offers=offers)
    view = await call(world, GET_SHOP, shop_domain="s1")
    assert view["offers"] == (
        {"offer_id": "o1", **lamp},
        {"offer_id": "o2", "title": "Another", "price": None, "availability": None, "updated_at": None},
    )
    without = await call(world, GET_SHOP, shop_domain="s2")
    assert (without["offers"], without["offers_total"]) == ((), 0)


async def _checkout_world(directory: Directory) -> Snapshot:
    return await directory(
        NORD,
        shop("Sud", "sud.internal", id="s2", checkout_hosts=["pay.internal"]),
        shop("Hidden", "hidden.internal", id="h", visibility="under_review"),
        shop("Loser", "nord.internal", id="l"),
        offers=[
            offer("plain", "s2", url="https://pay.internal/x"),
            offer("paid", "s1", url=URL),
            offer("none", "s1"),
            offer("bad", "s1", url="https://nord.internal.evil.internal/"),
            offer("network", "s1", url="https://go.network.internal/a"),
            offer("hidden", "h", url="https://hidden.internal/"),
            offer("lost", "l", url=URL),
            offer("orphan", "nobody", url=URL),
        ],
        affiliate_programs=[
            program("s1", "Net", commission_stated="4 %", disclosure="Advertisement"),
            program("h", "Net"),
        ],
    )


@pytest.mark.rule("A10", "I65")
async def test_a_checkout_url_is_plain_unless_the_network_is_asked_for(directory: Directory) -> None:
    world = await _checkout_world(directory)
    assert await call(world, RESOLVE_CHECKOUT_URL, offer_id="paid") == PAID
    assert await call(world, RESOLVE_CHECKOUT_URL, offer_id="paid", affiliate=False) == PAID
    assert await call(world, RESOLVE_CHECKOUT_URL, offer_id="paid", affiliate=True, shop_domain="ignored") == THROUGH
    assert await call(world, RESOLVE_CHECKOUT_URL, offer_id="plain", affiliate=True) == {
        "offer_id": "plain",
        "shop": {"id": "s2", "domain": "sud.internal"},
        "checkout_url": "https://pay.internal/x",
        "affiliate": NO_PROGRAM,
    }


@pytest.mark.rule("A11", "I64")
async def test_a_monetised_offer_shows_its_programme_or_that_there_is_none(directory: Directory) -> None:
    world = await _checkout_world(directory)
    terms = {"network": "Net", "program_id": "p-s1", "commission_stated": "4 %", "disclosure": "Advertisement"}
    assert await call(world, MONETIZE_OFFER, offer_id="paid") == {**THROUGH, "monetization": terms}
    assert await call(world, MONETIZE_OFFER, offer_id="paid", affiliate=False) == {**PAID, "monetization": None}
    without = await call(world, MONETIZE_OFFER, offer_id="plain")
    shown = (without["checkout_url"], without["affiliate"], without["monetization"])
    assert shown == ("https://pay.internal/x", NO_PROGRAM, None)


@pytest.mark.rule("A10", "A11")
@pytest.mark.parametrize("tool", [RESOLVE_CHECKOUT_URL, MONETIZE_OFFER], ids=lambda tool: tool.name)
@pytest.mark.parametrize("affiliate", [True, False])
async def test_an_offer_without_a_valid_url_has_none_through_the_network_either(
    directory: Directory, tool: Tool[Any], *, affiliate: bool
) -> None:
    world = await _checkout_world(directory)
    for offer_id in ("none", "bad", "network"):
        found = await world.offer(offer_id)
        assert found is not None
        assert (found.checkout_url, found.affiliate) == (None, None)
        with pytest.raises(NoValidCheckoutUrlError):
            await call(world, tool, offer_id=offer_id, affiliate=affiliate)


@pytest.mark.rule("A10", "V2", "I6", "V1.dependents")
@pytest.mark.parametrize("tool", [RESOLVE_CHECKOUT_URL, MONETIZE_OFFER], ids=lambda tool: tool.name)
async def test_an_unknown_offer_and_a_hidden_shops_are_one_absence(directory: Directory, tool: Tool[Any]) -> None:
    world = await _checkout_world(directory)
    problems = set[str]()
    for offer_id in ("nothing", "hidden", "lost", "orphan", "PAID", "paid ", "a" * 2_048, "s1"):
        with pytest.raises(OfferNotFoundError) as error:
            await call(world, tool, offer_id=offer_id)
        problems.add(repr(error.value.problem()))
    assert len(problems) == 1
