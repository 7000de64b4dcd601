"""list_coupons: which codes may be shown now, what is withheld and why, and that nothing is cut (A4 to A6, M11)."""

from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from index_mappings.usable_codes import CHANNELS
from service.errors import ShopNotFoundError, TooManyCouponsError
from service.runtime.caller import Channel
from service.tools.find_shop import FIND_SHOP
from service.tools.list_coupons import LIST_COUPONS
from service.tools.resolve_conflict import RESOLVE_CONFLICT
from shop_directory.search.protocol import Snapshot
from tests.rules.backends.asking import NOW, call
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import coupon, shipping, shop

APPLIED: Final = {"verification_status": "verified_applied", "last_verified_at": "2031-05-01T00:00:00Z"}
REJECTED: Final = {"verification_status": "verified_rejected", "last_verified_at": "2031-05-01T00:00:00Z"}
PAST: Final = "2031-05-05T00:00:00Z"
FUTURE: Final = "2031-05-07T00:00:00Z"
ABSENT: Final = ("nobody", "nobody.internal", "hidden", "hidden.internal", "removed", "loser", "!", "a b.")
MANY: Final = 1_203


async def _list(directory: Snapshot, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """The answer, after a look that its balance holds and that its sentence has the same numbers."""
    answer = await call(directory, LIST_COUPONS, **asked)
    withheld = answer["withheld"]
    assert len(answer["results"]) + sum(withheld.values()) == answer["total_count"]
    codes = "code" if answer["total_count"] == 1 else "codes"
    assert answer["note"] == (
        f"{answer['total_count']} {codes} found: {len(answer['results'])} usable, {withheld['expired']} expired, "
        f"{withheld['verified_rejected']} rejected in a real checkout, {withheld['reserved_test_domain']} on reserved "
        f"test domains, {withheld['policy']} withheld by display policy."
    )
    return answer


def _codes(answer: dict[str, Any]) -> list[str]:
    return [found["code"] for found in answer["results"]]


def _numbers(answer: dict[str, Any]) -> tuple[int, ...]:
    return (len(answer["results"]), *answer["withheld"].values())


@pytest.mark.rule("A9", "Q5")
async def test_codes_of_any_script_are_listed_in_nfc_and_compared_by_their_case_fold(directory: Directory) -> None:
    shops = [shop("Nord", "nord.internal", id="s1"), shop("Sud", "sud.internal", id="s2")]
    world = await directory(
        *shops,
        coupons=[
            coupon("A\u0308RGER", "s1", id="c1"),
            coupon("割引10", "s1", id="c2"),
            coupon("Straße", "s1", id="c3"),
            coupon("ärger", "s2", id="c4"),
            coupon("STRASSE", "s2", id="c5"),
        ],
    )
    assert _codes(await _list(world, shop_domain="s1")) == ["ÄRGER", "割引10", "Straße"]
    audit = await call(world, RESOLVE_CONFLICT, from_shop_id="s1", to_shop_id="s2")
    assert audit["effects"]["duplicate_codes"] == 2


@pytest.mark.rule("A4", "A13", "I16", "I17", "I18", "I39")
async def test_a_coupon_is_shown_with_all_that_is_stated_and_null_for_the_rest(directory: Directory) -> None:
    discount, least = {"kind": "amount", "value": "5.00", "currency": "EUR"}, {"amount": "20", "currency": "EUR"}
    same = {"title": "Five off", "discount": discount, "countries": ["DE"], "source": "newsletter"}
    valid = {"valid_from": "2031-05-06T13:59:59+02:00", "valid_until": "2031-05-06"}
    stated = coupon("SAVE5", "s1", **same, min_order=least, **valid, **APPLIED)
    unstated = coupon("PLAIN", "s1", discount={"kind": "free_shipping"})
    world = await directory(shop("Nord", "nord.internal", id="s1"), coupons=[stated, unstated])
    nord = {"id": "s1", "domain": "nord.internal", "name": "Nord"}
    five = {
        **same, "code": "SAVE5", "minOrder": least, "shop": nord,
        "validFrom": "2031-05-06T11:59:59Z", "validUntil": "2031-05-06T23:59:59Z",
        "verificationStatus": "verified_applied", "lastVerifiedAt": "2031-05-01T00:00:00Z",
    }  # fmt: skip
    free = {"kind": "free_shipping", "value": None, "currency": None}
    plain = {**dict.fromkeys(five), "code": "PLAIN", "discount": free, "shop": nord, "verificationStatus": "unverified"}
    assert await _list(world, shop_domain="nord.internal") == {
        "results": [five, plain],
        "total_count": 2,
        "withheld": {"expired": 0, "verified_rejected": 0, "reserved_test_domain": 0, "policy": 0},
        "note": "2 codes found: 2 usable, 0 expired, 0 rejected in a real checkout, 0 on reserved test domains, "
        "0 withheld by display policy.",
    }


@pytest.mark.rule("A4", "I18", "I20", "I40", "I41")
async def test_each_reason_withholds_and_of_several_the_first_counts(directory: Directory) -> None:
    blocked = {"blocked_channels": ["rest"]}
    expired = {"valid_until": PAST}
    world = await directory(
        shop("Nord", "nord.internal", id="s1"),
        shop("Try", "try.test", id="t1"),
        coupons=[
            coupon("GOOD", "s1", valid_until=FUTURE),
            coupon("EXPIRED", "s1", **expired),
            coupon("REJECTED", "s1", **REJECTED),
            coupon("BLOCKED", "s1", **blocked),
            coupon("EXPIRED-ALL", "s1", **expired, **REJECTED, **blocked),
            coupon("REJECTED-BLOCKED", "s1", **REJECTED, **blocked),
            coupon("RESERVED", "t1"),
            coupon("RESERVED-EXPIRED", "t1", **expired),
            coupon("RESERVED-REJECTED", "t1", **REJECTED),
            coupon("RESERVED-BLOCKED", "t1", **blocked),
            coupon("RESERVED-ALL", "t1", **expired, **REJECTED, **blocked),
        ],
    )
    both = await _list(world)
    assert (_codes(both), _numbers(both)) == (["GOOD"], (1, 4, 3, 2, 1))
    assert _numbers(await _list(world, shop_domain="s1")) == (1, 2, 2, 0, 1)
    assert _numbers(await _list(world, shop_domain="try.test")) == (0, 2, 1, 2, 0)


@pytest.mark.rule("A4")
async def test_a_code_that_has_not_begun_is_in_neither_number(directory: Directory) -> None:
    later = NOW + timedelta(microseconds=1)
    world = await directory(
        shop("Nord", id="s1"),
        coupons=[
            coupon("NOW", "s1", valid_from=NOW.isoformat()),
            coupon("LATER", "s1", valid_from=later.isoformat()),
            coupon("LATER-REJECTED", "s1", valid_from=FUTURE, **REJECTED),
            coupon("LATER-BLOCKED", "s1", valid_from=FUTURE, blocked_channels=["rest"]),
            # A bad period, but stated so: not begun counts before expired.
            coupon("LATER-EXPIRED", "s1", valid_from=FUTURE, valid_until=PAST),
        ],
    )
    assert (_codes(await _list(world)), _numbers(await _list(world))) == (["NOW"], (1, 0, 0, 0, 0))
    assert sorted(_codes(await _list(world, now=later))) == ["LATER", "NOW"]


@pytest.mark.rule("A4")
@pytest.mark.parametrize(
    ("until", "last_second"),
    [
        ("2031-05-06", "2031-05-06T23:59:59+00:00"),
        ("2031-05-06T12:00:00Z", "2031-05-06T12:00:00+00:00"),
        ("2031-05-06T12:00:00.000001+02:00", "2031-05-06T10:00:00.000001+00:00"),
    ],
)
async def test_a_code_is_usable_at_its_last_microsecond_and_expired_one_later(
    directory: Directory, until: str, last_second: str
) -> None:
    world = await directory(shop("Nord", id="s1"), coupons=[coupon("SAVE", "s1", valid_until=until)])
    last = datetime.fromisoformat(last_second)
    assert _numbers(await _list(world, shop_domain="s1", now=last)) == (1, 0, 0, 0, 0)
    assert _numbers(await _list(world, now=last + timedelta(microseconds=1))) == (0, 1, 0, 0, 0)


@pytest.mark.rule("F3", "F4", "V2")
async def test_a_shop_is_found_by_a_code_from_its_first_to_its_last_second(directory: Directory) -> None:
    world = await directory(
        shop("Nord", id="s1"),
        shop("Sud", id="s2"),
        shop("Hidden", id="h", visibility="under_review"),
        coupons=[
            coupon("FIRST", "s1", valid_from="2031-05-06T10:00:00Z", valid_until="2031-05-06T11:00:00Z"),
            coupon("SECOND", "s1", valid_from="2031-05-06T10:30:00Z", valid_until="2031-05-06T12:59:59Z"),
            coupon("THIRD", "s1", valid_from="2031-05-06T13:00:01Z", valid_until="2031-05-06T14:00:00Z"),
            coupon("NEVER", "s2", **REJECTED),
            coupon("SECRET", "h"),
        ],
    )
    ends = [datetime.fromisoformat(f"2031-05-06T{end}Z") for end in ("10:00:00", "12:59:59", "13:00:01", "14:00:00")]
    moments = [end + timedelta(microseconds=ticks) for end in ends for ticks in (-1_000_000, -1, 0, 1, 1_000_000)]
    for now in (*moments, datetime.fromisoformat("1969-12-31T00:00:00Z"), datetime.fromisoformat("9999-12-31T00:00Z")):
        found = await call(world, FIND_SHOP, query="", has_code=True, now=now)
        listed = await _list(world, now=now)
        assert [one["id"] for one in found["results"]] == (["s1"] if listed["results"] else []), now


@pytest.mark.rule("A5", "I41", "F3")
async def test_a_policy_hides_a_code_on_its_channels_and_in_its_countries_where_the_country_is_known(
    directory: Directory,
) -> None:
    world = await directory(
        shop("Nord", id="s1"),
        coupons=[
            coupon("NOT-MCP", "s1", blocked_channels=["mcp"]),
            coupon("NOT-AT", "s1", blocked_countries=["AT", "CH"]),
            coupon("NEITHER", "s1", blocked_channels=["mcp", "stdio"], blocked_countries=["AT"]),
        ],
    )
    shown = {
        (channel, country): sorted(_codes(await _list(world, channel=channel, caller_country=country)))
        for channel in CHANNELS
        for country in (None, "AT", "DE")
    }
    assert set(CHANNELS) == set(Channel)
    # A code that is blocked somewhere is promised to callers of known countries only.
    for audience, codes in shown.items():
        promised = codes if audience[1] else [code for code in codes if code == "NOT-MCP"]
        found = await call(world, FIND_SHOP, query="", has_code=True, channel=audience[0], caller_country=audience[1])
        assert [one["id"] for one in found["results"]] == (["s1"] if promised else []), audience
    assert shown == {
        ("rest", None): ["NEITHER", "NOT-AT", "NOT-MCP"],
        ("rest", "AT"): ["NOT-MCP"],
        ("rest", "DE"): ["NEITHER", "NOT-AT", "NOT-MCP"],
        ("mcp", None): ["NOT-AT"],
        ("mcp", "AT"): [],
        ("mcp", "DE"): ["NOT-AT"],
        ("stdio", None): ["NOT-AT", "NOT-MCP"],
        ("stdio", "AT"): ["NOT-MCP"],
        ("stdio", "DE"): ["NOT-AT", "NOT-MCP"],
    }


@pytest.mark.rule("F3")
async def test_a_code_counts_only_where_it_is_valid_and_with_verified_code_only_if_it_worked(
    directory: Directory,
) -> None:
    ships = {"destinations": ["AT", "DE", "CH"]}
    world = await directory(
        *[shop(name, id=name.lower(), countries=["AT", "DE"]) for name in ("Nord", "Ost", "Sud", "West", "Mitte")],
        shipping=[shipping(shop_id, **ships) for shop_id in ("nord", "ost", "sud", "west", "mitte")],
        coupons=[
            coupon("GERMAN", "nord", countries=["DE"]),
            coupon("GERMAN", "ost", countries=["DE"], **APPLIED),
            coupon("AUSTRIAN", "ost", countries=["AT"]),
            coupon("ANYWHERE", "sud", **APPLIED),
            coupon("WORLD", "west", countries=["WORLDWIDE"]),
            coupon("REJECTED", "mitte", **REJECTED),
        ],
    )

    async def found(**asked: Any) -> list[str]:  # noqa: ANN401 - JSON values
        return [one["id"] for one in (await call(world, FIND_SHOP, query="", **asked))["results"]]

    assert await found(has_code=True) == ["nord", "ost", "sud", "west"]
    assert await found(verified_code=True) == await found(verified_code=True, has_code=True) == ["ost", "sud"]
    assert await found(verified_code=False) == await found() == ["mitte", "nord", "ost", "sud", "west"]
    for place in ({"ships_to": "AT"}, {"country": "AT"}, {"countries": ["AT"]}):
        assert await found(has_code=True, **place) == ["ost", "sud", "west"], place
        assert await found(verified_code=True, **place) == ["sud"], place
    assert await found(has_code=True, ships_to="DE") == ["nord", "ost", "sud", "west"]
    assert await found(verified_code=True, ships_to="DE") == ["ost", "sud"]
    assert await found(has_code=True, countries=["AT", "DE"]) == ["nord", "ost", "sud", "west"]
    # The destination is where the code is used; the other filter is of shops.
    assert await found(has_code=True, country="DE", ships_to="AT") == ["ost", "sud", "west"]
    assert await found(has_code=True, ships_to="CH") == ["sud", "west"]
    # A facet counts as the call without the filter of its kind finds.
    counted = await call(world, FIND_SHOP, query="", has_code=True, country="AT", facets=["country"])
    assert [one["count"] for one in counted["facets"]["country"]["values"]] == [4, 4]


@pytest.mark.rule("F1", "F3", "F17")
async def test_a_bike_shop_that_ships_to_austria_and_has_a_code_that_works_is_one_search_and_one_list(
    directory: Directory,
) -> None:
    names = ("Right", "German", "Untested", "Expired", "Elsewhere", "Home")
    right, german, untested, expired, elsewhere, home = [name.lower() for name in names]
    world = await directory(
        *[shop(name, f"{name}.internal".lower(), id=name.lower(), categories=["bicycles"]) for name in names],
        categories=[{"slug": "bicycles", "name": "Bicycles", "synonyms": ["bike"]}],
        shipping=[
            *(shipping(name, destinations=["EU"]) for name in (right, german, untested, expired)),
            shipping(elsewhere, destinations=["CH"], destinations_exhaustive=True),
        ],
        coupons=[
            coupon("AUSTRIA", right, countries=["AT", "DE"], **APPLIED),
            coupon("GERMANY", right, countries=["DE"], **APPLIED),
            coupon("GERMANY", german, countries=["DE"], **APPLIED),
            coupon("MAYBE", german),
            coupon("MAYBE", untested, countries=["AT"]),
            coupon("OVER", expired, valid_until=PAST, **APPLIED),
            *(coupon("GOOD", name, **APPLIED) for name in (elsewhere, home)),
        ],
    )
    found = await call(world, FIND_SHOP, query="bike shop", ships_to="AT", verified_code=True)
    assert [(one["id"], one["ships_to"]) for one in found["results"]] == [(right, "yes")]
    assert (found["total_count"], found["unsettled_count"]) == (1, 1)  # it is not known whether the last one ships
    domains = [one["domain"] for one in found["results"]]
    listed = await call(world, LIST_COUPONS, shop_domains=domains)
    codes = listed["shops"][0]["coupons"]["results"]
    assert [code["code"] for code in codes if "AT" in code["countries"]] == ["AUSTRIA"]
    assert listed["found"] == 1


@pytest.mark.rule("M11.other_lists", "A4")
async def test_applied_codes_come_first_then_the_last_verified_then_the_smaller_id(directory: Directory) -> None:
    times = (None, "2031-05-01T00:00:00Z", "2031-05-02T00:00:00Z", "2031-05-02T00:00:00.000001Z")
    unverified = [coupon(f"U{n}", "s1", id=f"a{n}", last_verified_at=time) for n, time in enumerate(times)]
    applied = [
        coupon(f"A{n}", "s1", id=f"b{n}", **{**APPLIED, "last_verified_at": time})
        for n, time in enumerate(times)
        if time
    ]
    same = [coupon("SAME-2", "s2", id="B"), coupon("SAME-1", "s2", id="A"), coupon("SAME-3", "s2", id="_")]
    world = await directory(shop("Nord", id="s1"), shop("Sud", id="s2"), coupons=[*unverified, *applied, *same])
    assert _codes(await _list(world)) == ["A3", "A2", "A1", "U3", "U2", "U1", "SAME-1", "SAME-2", "SAME-3", "U0"]
    assert _codes(await _list(world, shop_domain="s1")) == ["A3", "A2", "A1", "U3", "U2", "U1", "U0"]


@pytest.mark.rule("A6", "A6.ceiling", "I18", "I20", "I56", "M11.other_lists")
async def test_over_a_thousand_usable_codes_are_all_listed_in_order_of_one_shop_and_of_all(
    directory: Directory,
) -> None:
    numbered = [coupon(f"C{n:04}", "s1", id=f"c{n:04}") for n in range(MANY)]
    world = await directory(
        shop("Nord", id="s1"),
        shop("Sud", id="s2"),
        coupons=[*reversed(numbered), coupon("OLD", "s1", valid_until=PAST), coupon("FIRST", "s2", **APPLIED)],
    )
    codes = [f"C{n:04}" for n in range(MANY)]
    one, every = await _list(world, shop_domain="s1"), await _list(world)
    assert (_codes(one), _numbers(one)) == (codes, (MANY, 1, 0, 0, 0))
    assert (_codes(every), _numbers(every)) == (["FIRST", *codes], (MANY + 1, 1, 0, 0, 0))
    assert _codes(await _list(world, most_coupons=MANY + 1)) == ["FIRST", *codes]
    with pytest.raises(TooManyCouponsError):
        await _list(world, most_coupons=MANY)
    # The ceiling is that of listings of all shops and of several.
    assert _codes(await _list(world, shop_domain="s1", most_coupons=1)) == codes
    both = await call(world, LIST_COUPONS, shop_domains=["s2", "s1"], most_coupons=MANY + 1)
    assert [_codes(found["coupons"]) for found in both["shops"]] == [["FIRST"], codes]
    with pytest.raises(TooManyCouponsError):
        await call(world, LIST_COUPONS, shop_domains=["s2", "s1", "s2"], most_coupons=MANY + 1)


@pytest.mark.rule("I57", "V2", "I6", "V1.dependents")
async def test_an_unknown_or_hidden_shop_is_not_found_and_its_codes_are_in_no_list(directory: Directory) -> None:
    world = await directory(
        shop("Nord", "nord.internal", id="s1", popularity=1),
        shop("Hidden", "hidden.internal", id="hidden", visibility="under_review"),
        shop("Removed", id="removed", visibility="removed"),
        shop("Loser", "nord.internal", id="loser"),
        coupons=[coupon("A", owner) for owner in ("hidden", "removed", "loser", "nobody")],
    )
    # The advice depends on whether a domain is asked for, and on nothing else.
    problems: dict[bool, set[str]] = {False: set(), True: set()}
    for reference in ABSENT:
        with pytest.raises(ShopNotFoundError) as error:
            await _list(world, shop_domain=reference)
        problems[reference.endswith(".internal")].add(repr(error.value.problem()))
    assert {is_domain: len(found) for is_domain, found in problems.items()} == {False: 1, True: 1}
    assert _numbers(await _list(world)) == _numbers(await _list(world, shop_domain="s1")) == (0, 0, 0, 0, 0)


@pytest.mark.rule("I19", "A6", "I56")
async def test_a_list_without_codes_is_a_whole_answer_and_shop_names_are_alike(directory: Directory) -> None:
    world = await directory(shop("Nord", "nord.internal", id="s1"), coupons=[coupon("A", "s1", valid_until=PAST)])
    for reference in ("s1", "nord.internal", "https://www.NORD.internal/x"):
        assert _numbers(await _list(world, shop_id_or_domain=reference)) == (0, 1, 0, 0, 0)
    assert (await _list(world))["note"].startswith("1 code found: 0 usable, 1 expired, ")
