"""The terms of usable codes: exact while they are few, and never a promise of a code that is not there (F4)."""

import random
from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import pytest

from index_mappings.countries import COUNTRY_CODES
from index_mappings.documents import CouponDocument
from index_mappings.usable_codes import (
    ANY_CHANNEL,
    ANY_COUNTRY,
    ANY_STATUS,
    ANYWHERE,
    APPLIED,
    CHANNELS,
    MAX_TERMS,
    OTHERS,
    SOMEWHERE,
    code_terms,
    moment_terms,
    named_term,
)
from index_mappings.values import FAR_AHEAD, LONG_AGO

HOUR_US: Final = 3_600_000_000
START_US: Final = 1_935_835_200_000_000
SECOND_US: Final = 1_000_000
COUNTRIES: Final = tuple(sorted(COUNTRY_CODES))


def _coupon(start: int, end: int, **fields: Any) -> CouponDocument:  # noqa: ANN401 - values of fields
    """A coupon that is valid between two hours from a fixed time on."""
    countries = fields.pop("countries", None)
    times = {"valid_from_us": START_US + start * HOUR_US, "valid_until_us": START_US + end * HOUR_US}
    policy = {"blocked_channels": (), "blocked_countries": ()}
    rest = {"status": "unverified", "reserved": "no", "folded_code": "c", "view": {"countries": countries}}
    return CouponDocument(id="c", rank="c", shop_refs=("s",), **{**times, **policy, **rest, **fields})


def _promised(terms: frozenset[str], now_us: int, channel: str, caller: str, place: str | None, status: str) -> bool:
    """Whether the terms promise a code to a caller of a known country, as the filter of a search reads them (F3)."""
    places = (ANYWHERE, SOMEWHERE if place is None else place)

    def has(channels: Sequence[str], callers: Sequence[str]) -> bool:
        return not terms.isdisjoint(moment_terms(channels, callers, places, status, now_us))

    channels = (ANY_CHANNEL, channel)
    return has(channels, (ANY_COUNTRY, caller)) or any(
        has((some,), (OTHERS,)) and named_term(some, caller) not in terms for some in channels
    )


def _is_good(coupon: CouponDocument, now_us: int, channel: str, caller: str, place: str | None, status: str) -> bool:
    stated = coupon.view["countries"]
    return (
        coupon.valid_from_us <= now_us <= coupon.valid_until_us
        and channel not in coupon.blocked_channels
        and caller not in coupon.blocked_countries
        and (place is None or stated is None or place in stated)
        and status in (ANY_STATUS, APPLIED if coupon.status == "verified_applied" else ANY_STATUS)
    )


def _chance_coupons(chance: random.Random, count: int, countries: Sequence[str], most: int) -> list[CouponDocument]:
    def some() -> tuple[str, ...]:
        return tuple(chance.sample(countries, chance.randint(1, most))) if chance.random() < 0.6 else ()

    return [
        _coupon(
            start,
            start + chance.choice((0, 3, 50, 9_000)),
            countries=some() or None,
            blocked_countries=some(),
            blocked_channels=chance.choice(((), (), ("mcp",), ("rest", "stdio"))),
            status=chance.choice(("unverified", "verified_applied")),
        )
        for start in (chance.randrange(20_000) for _ in range(count))
    ]


def _audiences(countries: Sequence[str]) -> list[tuple[str, str, str | None, str]]:
    return list(product(CHANNELS, countries, (None, *countries), (ANY_STATUS, APPLIED)))


@pytest.mark.rule("F3", "F4")
def test_the_terms_of_few_codes_say_exactly_when_and_for_whom_there_is_a_code() -> None:
    chance = random.Random(1)  # noqa: S311 - a repeatable test
    for _ in range(20):
        coupons = _chance_coupons(chance, chance.randint(1, 5), ("AT", "CH", "DE"), 3)
        terms, exact = code_terms(coupons)
        assert exact
        for now_us in (START_US + chance.randrange(30_000) * HOUR_US for _ in range(20)):
            for asked in _audiences(("AT", "CH", "DE", "FR")):
                good = any(_is_good(coupon, now_us, *asked) for coupon in coupons)
                assert _promised(frozenset(terms), now_us, *asked) == good, asked


@pytest.mark.rule("F4")
def test_many_codes_have_a_bounded_number_of_terms_that_promise_no_code_that_is_not_there() -> None:
    chance = random.Random(2)  # noqa: S311 - a repeatable test
    promised = 0
    for most in (3, 40, len(COUNTRIES)):
        coupons = _chance_coupons(chance, 300, COUNTRIES, most)
        terms, exact = code_terms(coupons)
        assert not exact
        assert len(terms) == len({*terms}) <= MAX_TERMS
        # Nor does the order of the coupons matter: a comparison with the state computes the terms again.
        assert code_terms(coupons[::-1]).terms == terms
        moments = [
            (START_US + chance.randrange(30_000) * HOUR_US, chance.choice((None, *COUNTRIES))) for _ in range(200)
        ]
        # A second before a window begins and after it ends, where one that is cut outwards has a code.
        for coupon in coupons:
            place = chance.choice(coupon.view["countries"] or (None,))
            moments += [(coupon.valid_from_us - SECOND_US, place), (coupon.valid_until_us + SECOND_US, place)]
        for now_us, place in moments:
            asked = chance.choice(CHANNELS), chance.choice(COUNTRIES), place, ANY_STATUS
            if _promised(frozenset(terms), now_us, *asked):
                promised += 1
                assert any(_is_good(coupon, now_us, *asked) for coupon in coupons), asked
    assert promised > 100


@pytest.mark.rule("F4")
def test_windows_are_cut_to_coarser_ones_within_them() -> None:
    # Open ends, and weeks with a gap of an hour between them, each for one country.
    weeks = [(168 * week, 168 * (week + 1) - 1) for week in range(200)]
    coupons = [_coupon(*week, countries=[place]) for week, place in zip(weeks, COUNTRIES, strict=False)]
    open_end = _coupon(0, 0, valid_from_us=LONG_AGO, valid_until_us=FAR_AHEAD, countries=["XK"])
    terms, exact = code_terms([*coupons, open_end])
    assert not exact
    assert f"*:*:XK:{ANY_STATUS}:" in terms
    found = {place: frozenset(term for term in terms if term.startswith(f"*:*:{place}:")) for place in COUNTRIES}

    def promises(place: str, hour: int) -> bool:
        return not found[place].isdisjoint(
            moment_terms((ANY_CHANNEL,), (ANY_COUNTRY,), (place,), ANY_STATUS, START_US + hour * HOUR_US)
        )

    for (start, end), place in zip(weeks[::10], COUNTRIES[::10], strict=False):
        hours = [hour for hour in range(start - 20, end + 20) if promises(place, hour)]
        # At most an interval of nine hours is missing at each end.
        assert start <= hours[0] <= start + 9
        assert end - 10 <= hours[-1] <= end
