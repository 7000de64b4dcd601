"""What is said of one shop: its look-up, categories (M11), shipping (A7), policies (F8) and trust (A8)."""

import json
from typing import Any, Final

import pytest

from index_mappings.countries import COUNTRY_CODES
from index_mappings.documents import TRUST_KINDS, Category, Shop
from service.errors import InvalidInputError, ShopNotFoundError
from service.tools.find_shop import FIND_SHOP
from service.tools.get_shipping_policy import GET_SHIPPING_POLICY
from service.tools.get_shop import GET_SHOP
from service.tools.get_shop_policies import GET_SHOP_POLICIES
from service.tools.get_shops import GET_SHOPS
from service.tools.get_trust import GET_TRUST
from service.tools.list_coupons import LIST_COUPONS
from service.tools.tool import Tool
from shop_directory.runtime.request_context import bind_request, new_request_context
from tests.rules.backends.asking import call, find, names, suggest
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import coupon, offer, policy, shipping, shop, trust
from tests.support.reference.backend import ReferenceBackend

TIME: Final = "2031-05-06T07:08:09Z"
ABSENT: Final = ("nobody", "nobody.internal", "hidden", "hidden.internal", "removed", "loser", "!", "a b.", "x.")


@pytest.mark.rule("I10", "V1", "V2", "I6", "I55")
async def test_a_public_shop_is_known_by_its_id_and_its_domain_and_no_other_shop_is(directory: Directory) -> None:
    world = await directory(
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
        *(shop(f"Shop {n}", f"shop-{n}.internal", id=f"s{n}", popularity=n) for n in range(100)),
        shop("Quiet", "quiet.internal", id="quiet", visibility="under_review"),
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


@pytest.mark.rule("F21", "A13")
async def test_a_logo_is_shown_with_its_shop_and_nothing_where_there_is_none(directory: Directory) -> None:
    logo = "https://img.nord.internal/Logo.svg?v=2"
    world = await directory(
        shop("Nord", "nord.internal", id="s1", logo="HTTPS://IMG.nord.internal/a/../Logo.svg?v=2"),
        shop("Sud", "sud.internal", id="s2"),
        shop("West", "west.internal", id="s3", logo="https://elsewhere.internal/west.svg"),
    )
    for shop_id, shown in (("s1", {"logo_url": logo}), ("s2", {}), ("s3", {})):
        views = [
            await call(world, GET_SHOP, shop_domain=shop_id),
            (await call(world, GET_SHOPS, shop_domains=[shop_id]))["results"][0]["shop"],
            *(found for found in (await call(world, FIND_SHOP, query=""))["results"] if found["id"] == shop_id),
        ]
        assert [{name: view[name] for name in view if name == "logo_url"} for view in views] == [shown] * 3


@pytest.mark.rule("F19", "V1")
async def test_all_public_domains_are_listed_part_by_part(directory: Directory) -> None:
    hidden = [shop(f"Quiet {n}", f"quiet-{n}.internal", visibility="under_review") for n in range(3)]
    public = [shop(f"Shop {n}", f"shop-{n}.internal", popularity=n) for n in range(40)]
    world = await directory(*public, *hidden)
    listed = world.domains(0, 100)
    assert sorted(listed) == sorted(one["domain"] for one in public)
    assert [world.domains(start, start + 7) for start in range(0, 49, 7)] == [
        listed[start : start + 7] for start in range(0, 49, 7)
    ]


@pytest.mark.rule("A1")
async def test_long_aliases_are_cut_by_their_characters_but_in_get_shop(directory: Directory) -> None:
    aliases = tuple(f"{n} {'x' * 147}" for n in range(1, 9))
    world = await directory(shop("Nord", "nord.internal", aliases=list(aliases)))
    (view,) = (await call(world, FIND_SHOP, query="nord"))["results"]
    assert (view["aliases"], view["aliases_total"]) == (aliases[:2], 8)
    whole = await call(world, GET_SHOP, shop_domain="nord.internal")
    assert (whole["aliases"], whole["aliases_total"]) == (aliases, 8)


@pytest.mark.rule("A14", "A1")
async def test_get_shops_shows_each_shop_as_a_search_does(directory: Directory) -> None:
    aliases = [f"Alias {n}" for n in range(12)]
    world = await directory(shop("Nord", "nord.internal", id="s1", aliases=aliases), shop("Sud", id="s2"))
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


@pytest.mark.rule("F17", "A14", "V2")
async def test_several_shops_are_each_answered_as_alone_in_one_round_trip(directory: Directory) -> None:
    world = await directory(
        *_shops(),
        coupons=[coupon("TEN", "s1"), coupon("OLD", "s1", valid_until="2031-05-01"), coupon("FIVE", "hidden")],
        shipping=[shipping("s1", destinations=["AT"]), shipping("hidden", destinations=["AT"])],
        policies=[policy("s1", "returns", "AT"), policy("hidden", "returns")],
    )
    asked = ["https://www.nord.internal/new", "s2", "hidden", "!", "nobody.internal", "s1", "sud.internal", "s1"]
    known = {"https://www.nord.internal/new", "s2", "s1", "sud.internal"}
    asks: list[tuple[Any, str, dict[str, Any]]] = [
        (LIST_COUPONS, "coupons", {}),
        (GET_SHIPPING_POLICY, "shipping", {"country": "AT"}),
        (GET_SHOP_POLICIES, "policies", {"country": "AT"}),
    ]
    for tool, name, fields in asks:
        alone = {reference: await call(world, tool, shop_domain=reference, **fields) for reference in known}
        with bind_request(new_request_context("several")) as several:
            answer = await call(world, tool, shop_domains=asked, **fields)
        shops = [{"shop_domain": reference, name: alone.get(reference)} for reference in asked]
        assert answer == {"shops": shops, "found": 5}
        assert several.engine_calls == (0 if isinstance(world, ReferenceBackend) else 1)
        absent = await call(world, tool, shop_domains=["!"], **fields)
        assert absent == {"shops": [{"shop_domain": "!", name: None}], "found": 0}


@pytest.mark.rule("A14", "A1.offers")
async def test_a_hundred_shops_are_one_round_trip_and_so_is_a_shop_with_its_offers(directory: Directory) -> None:
    shops = [shop(f"Shop {n}", f"shop-{n}.internal", id=f"s{n}") for n in range(100)]
    world = await directory(*shops, offers=[offer(f"o{n}", "s1") for n in range(5)])
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
        shop("Falcon Secret", "falcon.internal", id="s", popularity=9, visibility="under_review"),
        shop("Falcon Former", "falcon.internal", id="f", popularity=8, visibility="removed"),
        shop("Falcon Open", "falcon.internal", id="o", popularity=1),
        shop("Falcon Later", "falcon.internal", id="l", popularity=0),
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
        shop("One", categories=["books", "garden"]),
        shop("Two", categories=["books", "art", "books"]),
        shop("Three", categories=["garden"]),
        shop("Four", categories=["zoo"], countries=["FR"]),
        shop("Five", visibility="under_review", categories=["falconry", "zoo"]),
        shop("Six", visibility="removed", categories=["falconry", "art"]),
        shop("Lost", "same.internal", id="lost", categories=["lost", "art"]),
        shop("Kept", "same.internal", id="kept", categories=["art"]),
    )
    assert await world.categories() == (
        Category("art", "Art", 2),
        Category("books", "Books", 2),
        Category("garden", "Garden", 2),
        Category("zoo", "Zoo", 1),
    )


def _shops() -> list[dict[str, Any]]:
    return [
        shop("Nord", "nord.internal", id="s1", popularity=1),
        shop("Sud", "sud.internal", id="s2"),
        shop("Hidden", "hidden.internal", id="hidden", visibility="under_review"),
        shop("Removed", id="removed", visibility="removed"),
        shop("Loser", "nord.internal", id="loser"),
    ]


@pytest.mark.rule("A7", "I25", "I26", "I28")
async def test_a_shipping_statement_is_shown_whole_and_ships_to_only_when_a_country_is_given(
    directory: Directory,
) -> None:
    free = {"free_shipping_threshold": {"amount": "49.00", "currency": "EUR"}}
    same: dict[str, Any] = {"destinations_exhaustive": True, **free, "checked_at": TIME, "source": "policy_page"}
    time = {"min_days": 2, "as_stated": "from 2 days"}
    given = shipping("s1", destinations=["EU", "CH"], excluded=["MT"], delivery_time=time, **same)
    world = await directory(*_shops(), shipping=[given])
    stated = {
        "shop": {"id": "s1", "domain": "nord.internal"},
        "collected": True,
        "destinations": ("EU", "CH"),
        "excluded": ("MT",),
        "delivery_time": {**time, "max_days": None},
        **same,
    }
    for reference in ("s1", "nord.internal", "https://www.nord.internal/shipping"):
        assert await call(world, GET_SHIPPING_POLICY, shop_domain=reference) == stated
    for country, verdict in {"at": "yes", "CH": "yes", "MT": "no", "US": "no"}.items():
        answer = await call(world, GET_SHIPPING_POLICY, shop_domain="s1", country=country)
        assert answer == {**stated, "ships_to": verdict}


@pytest.mark.rule("A7", "A13", "I27")
async def test_a_shop_without_a_statement_is_a_gap_and_unknown_for_every_country(directory: Directory) -> None:
    world = await directory(*_shops(), shipping=[shipping("s1", destinations=["AT"])])
    gap = {
        "shop": {"id": "s2", "domain": "sud.internal"}, "collected": False, "destinations": None, "excluded": None,
        "destinations_exhaustive": False, "delivery_time": None, "free_shipping_threshold": None, "checked_at": None,
        "source": None,
    }  # fmt: skip
    assert await call(world, GET_SHIPPING_POLICY, shop_domain="s2") == gap
    assert await call(world, GET_SHIPPING_POLICY, shop_domain="s2", country="AT") == {**gap, "ships_to": "unknown"}
    collected = await call(world, GET_SHIPPING_POLICY, shop_domain="s1", country="DE")
    assert (collected["collected"], collected["ships_to"], collected["source"]) == (True, "unknown", None)


@pytest.mark.rule("F8", "F9", "F10", "F11", "A13")
async def test_the_statement_of_exactly_the_country_counts_else_that_without_one_and_two_are_never_merged(
    directory: Directory,
) -> None:
    finite = {"category": "finite", "days": 30, "fees": "free", "methods": ["by_mail", "in_store"]}
    world = await directory(
        *_shops(),
        shipping=[shipping("s1", destinations=["AT"])],
        policies=[
            policy("s1", "returns", counted_from="delivered", countries=["DE", "AT"], as_stated="30 days", **finite),
            policy("s1", "returns", "LI", countries=["AT"]),
            policy("s1", "returns", "NO", days=7, countries=["NO", "SE"]),
            policy("s2", "returns", countries=["WORLDWIDE"]),
            policy("s1", "returns", "AT", days=14, source="https://nord.internal/at"),
            policy("s1", "returns", "CH", category="not_permitted"),
            policy("s1", "payment_methods", "AT", methods=["invoice", "card"], as_stated="as you like"),
            policy("s1", "buyer_protection", checked_at="2031-05-06T09:08:10+02:00"),
        ],
        # Methods that were measured are never shown here.
        trust=[trust(owner, "payment_methods", ["cash"]) for owner in ("s1", "s2")],
    )
    read = {"source": "test", "checked_at": TIME}
    protection = {"country": None, "source": "test", "checked_at": "2031-05-06T07:08:10Z", "as_stated": "as agreed"}
    unstated = {"days": None, "counted_from": None, "fees": "unknown", "methods": None, "countries": None}
    anywhere = {
        **read, "country": None, "category": "finite", "days": 30, "counted_from": "delivered", "fees": "free",
        "methods": ("by_mail", "in_store"), "countries": ("DE", "AT"), "as_stated": "30 days",
    }  # fmt: skip
    in_austria = {
        **unstated, "country": "AT", "category": "finite", "days": 14, "as_stated": None,
        "source": "https://nord.internal/at", "checked_at": TIME,
    }  # fmt: skip
    nowhere = {**read, **unstated, "country": "CH", "category": "not_permitted", "as_stated": None}
    in_norway = {**nowhere, "country": "NO", "category": "finite", "days": 7, "countries": ("NO", "SE")}
    paid = {**read, "country": "AT", "methods": ("invoice", "card"), "as_stated": "as you like"}
    for country, returns, payment in (
        (None, anywhere, None), ("DE", anywhere, None), ("AT", in_austria, paid), ("CH", nowhere, None),
        ("NO", in_norway, None), ("SE", None, None), ("FR", None, None), ("LI", None, None),
    ):  # fmt: skip
        answer = await call(world, GET_SHOP_POLICIES, shop_domain="nord.internal", country=country)
        shipping_policy = await call(world, GET_SHIPPING_POLICY, shop_domain="s1", country=country)
        assert json.dumps(answer.pop("shipping")) == json.dumps(shipping_policy)
        assert answer == {
            "shop": {"id": "s1", "domain": "nord.internal"},
            "returns": returns,
            "payment_methods": payment,
            "buyer_protection": protection,
        }
    assert await call(world, GET_SHOP_POLICIES, shop_domain="s2", country="AT") == {
        "shop": {"id": "s2", "domain": "sud.internal"},
        "returns": {**anywhere, **unstated, "countries": ("WORLDWIDE",), "as_stated": None},
        "payment_methods": None,
        "buyer_protection": None,
        "shipping": await call(world, GET_SHIPPING_POLICY, shop_domain="s2", country="AT"),
    }


@pytest.mark.rule("A7", "F11", "V2", "I6", "V1.dependents")
@pytest.mark.parametrize("tool", [GET_SHIPPING_POLICY, GET_SHOP_POLICIES], ids=lambda tool: tool.name)
async def test_the_statements_of_an_unknown_or_hidden_shop_are_not_found(directory: Directory, tool: Tool[Any]) -> None:
    hidden = ("hidden", "removed", "loser")
    world = await directory(
        *_shops(), shipping=map(shipping, hidden), policies=[policy(owner, "returns") for owner in hidden]
    )
    for reference in ABSENT:
        with pytest.raises(ShopNotFoundError):
            await call(world, tool, shop_domain=reference, country="AT")


# No statement, an open and a complete list, groups, territories, exceptions of either kind.
STATEMENTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"destinations": ["AT", "DE"]},
    {"destinations": ["DE", "FR"], "destinations_exhaustive": True},
    {"destinations": ["EU", "CH"], "excluded": ["MT"], "destinations_exhaustive": True},
    {"destinations": ["WORLDWIDE"], "excluded": ["DACH", "US"]},
    {"destinations": ["WORLDWIDE", "CH"], "excluded": ["EFTA"]},
    {"excluded": ["AT"]},
    {"destinations": [], "destinations_exhaustive": True},
)


@pytest.mark.rule("F1", "F2", "V2")
async def test_a_search_by_destination_finds_what_the_statement_of_each_shop_says(directory: Directory) -> None:
    stating = [f"s{number}" for number in range(len(STATEMENTS))]
    hidden = shop("Hidden", id="hidden", visibility="under_review")
    world = await directory(
        *(shop(shop_id.upper(), id=shop_id) for shop_id in (*stating, "silent")),
        hidden,
        shipping=[
            *(shipping(shop_id, **stated) for shop_id, stated in zip(stating, STATEMENTS, strict=True)),
            shipping("hidden", destinations=["WORLDWIDE"]),
        ],
    )
    named = {"AT", "CH", "DE", "FR", "GP", "IS", "LI", "MT", "NO", "RE", "SJ", "US", "XK"}
    for country in sorted(named.union(sorted(COUNTRY_CODES)[::9])):
        verdicts: dict[str, list[str]] = {"yes": [], "no": [], "unknown": []}
        for shop_id in sorted((*stating, "silent")):
            answer = await call(world, GET_SHIPPING_POLICY, shop_domain=shop_id, country=country)
            verdicts[answer["ships_to"]].append(shop_id)
        settled = await call(world, FIND_SHOP, query="", ships_to=country)
        whole = await call(world, FIND_SHOP, query="", ships_to=country, include_unsettled=True)
        assert settled["unsettled_count"] == whole["unsettled_count"] == len(verdicts["unknown"])
        marked = [("yes", shop_id) for shop_id in verdicts["yes"]]
        assert [(found["ships_to"], found["id"]) for found in settled["results"]] == marked
        marked += [("unknown", shop_id) for shop_id in verdicts["unknown"]]
        assert [(found["ships_to"], found["id"]) for found in whole["results"]] == marked
        assert (settled["total_count"], whole["total_count"]) == (len(verdicts["yes"]), len(marked))
        pages = [
            await call(world, FIND_SHOP, query="", ships_to=country, include_unsettled=True, limit=2, offset=offset)
            for offset in range(0, len(marked), 2)
        ]
        assert [(found["ships_to"], found["id"]) for page in pages for found in page["results"]] == marked


@pytest.mark.rule("F1")
async def test_unsettled_shops_are_added_to_a_search_by_destination_only(directory: Directory) -> None:
    world = await directory(*_shops())
    with pytest.raises(InvalidInputError) as error:
        await call(world, FIND_SHOP, query="", include_unsettled=True)
    assert error.value.problem()["errors"] == [{"field": "include_unsettled", "message": "needs ships_to"}]
    plain = await call(world, FIND_SHOP, query="")
    assert await call(world, FIND_SHOP, query="", include_unsettled=False, has_code=False, ships_to=None) == plain
    assert "unsettled_count" not in plain
    assert all("ships_to" not in found for found in plain["results"])


@pytest.mark.rule("A8", "I29", "I30", "I31", "I33", "I34", "M11.other_lists")
async def test_signals_are_shown_in_one_order_with_what_is_missing_and_why(directory: Directory) -> None:
    world = await directory(
        *_shops(),
        trust=[
            trust("s1", "payment_methods", ["card", "invoice"]),
            trust("s1", "tls_issuer", "An Authority"),
            trust("s1", "tls_grade", None),
            trust("s1", "hosting_isp", ""),
            trust("s1", "hosting_country", "DE", source=None),
            trust("s1", "domain_registered_at", []),
            trust("s1", "registrar", "R", checked_at=None),
            trust("s2", "registrar", "R"),
            trust("s2", "tls_grade", None, source=None),
            trust("s2", "hosting_isp", "I", source=""),
        ],
    )
    answer = await call(world, GET_TRUST, shop_domain="nord.internal")
    assert answer == {
        "status": "signals_collected",
        "signals": (
            {"kind": "tls_issuer", "value": "An Authority", "source": "test", "checked_at": TIME},
            {"kind": "payment_methods", "value": ("card", "invoice"), "source": "test", "checked_at": TIME},
        ),
        "signal_coverage": {
            "present": 2,
            "total": 7,
            "missing": (
                {"kind": "tls_grade", "reason": "pipeline_gap"},
                {"kind": "hosting_isp", "reason": "pipeline_gap"},
                {"kind": "hosting_country", "reason": "not_collected_yet"},
                {"kind": "domain_registered_at", "reason": "pipeline_gap"},
                {"kind": "registrar", "reason": "not_collected_yet"},
            ),
        },
    }
    other = await call(world, GET_TRUST, shop_domain="s2")
    assert [signal["kind"] for signal in other["signals"]] == ["registrar"]
    assert {gap["reason"] for gap in other["signal_coverage"]["missing"]} == {"not_collected_yet"}


@pytest.mark.rule("A8", "V2", "I6", "I32", "I60", "V1.dependents")
async def test_unknown_hidden_and_unmeasured_are_the_same_answer_to_the_byte(directory: Directory) -> None:
    world = await directory(
        *_shops(),
        trust=[
            trust("s1", "registrar", "R"),
            # Checks that ran and found nothing: without a present signal that is nothing either.
            *(trust("s2", kind, None) for kind in TRUST_KINDS),
            *(trust(owner, "registrar", "R") for owner in ("hidden", "removed", "loser", "nobody")),
        ],
    )
    answers = {
        json.dumps(await call(world, GET_TRUST, shop_domain=reference)) for reference in ("s2", "sud.internal", *ABSENT)
    }
    (only,) = map(json.loads, answers)
    assert only == {
        "status": "no_signals_collected",
        "signals": [],
        "signal_coverage": {
            "present": 0,
            "total": 7,
            "missing": [{"kind": kind, "reason": "not_collected_yet"} for kind in TRUST_KINDS],
        },
    }
