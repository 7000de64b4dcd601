"""The moments at which a shop has a usable coupon code, as terms (F3, F4).

Time is counted in ticks from 1970: each second has one for its beginning and one for the rest of it, so that bounds of
whole seconds are exact to the microsecond. A tick is nine hexadecimal digits, and an interval whose length is a power
of 16 is the common beginning of its ticks. A window is cut into the fewest such intervals, at most 15 of each length at
either end; a moment is in the window exactly if one of the beginnings of its tick, the empty one included, is a term.

A term is `channel:country:digits`. Usable codes that no channel hides are under ANY_CHANNEL. Those that are blocked in
no country are under ANY_COUNTRY; the others only count for callers of a known country that is not blocked. They are
under each country that one of them names, and under OTHERS for all countries that none names: `channel:-:country` tells
which are named.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from index_mappings.documents import CouponDocument

CHANNELS: Final = ("rest", "mcp", "stdio")
ANY_CHANNEL: Final = "*"
ANY_COUNTRY: Final = "*"
OTHERS: Final = "+"
_DIGITS: Final = 9
_END: Final = 16**_DIGITS
_SECOND_US: Final = 1_000_000


def code_terms(coupons: Iterable[CouponDocument]) -> tuple[str, ...]:
    """The terms of all coupons of a shop."""
    by_channel: dict[str, list[CouponDocument]] = defaultdict(list)
    for coupon in coupons:
        if coupon.status != "verified_rejected" and coupon.reserved == "no":
            shown = [channel for channel in CHANNELS if channel not in coupon.blocked_channels]
            for channel in shown if coupon.blocked_channels else (ANY_CHANNEL,):
                by_channel[channel].append(coupon)
    terms: list[str] = []
    for channel, shown_coupons in sorted(by_channel.items()):
        blocked = [coupon for coupon in shown_coupons if coupon.blocked_countries]
        by_country = {ANY_COUNTRY: [coupon for coupon in shown_coupons if not coupon.blocked_countries]}
        if blocked:
            by_country[OTHERS] = blocked
        for country in sorted({country for coupon in blocked for country in coupon.blocked_countries}):
            by_country[country] = [coupon for coupon in blocked if country not in coupon.blocked_countries]
            terms.append(named_term(channel, country))
        for country, usable in by_country.items():
            terms += (f"{channel}:{country}:{digits}" for digits in _intervals(usable))
    return tuple(terms)


def named_term(channel: str, country: str) -> str:
    """The term of a shop that has a code on a channel which names a country as blocked."""
    return f"{channel}:-:{country}"


def moment_terms(channels: Iterable[str], countries: Iterable[str], now_us: int) -> tuple[str, ...]:
    """The terms that a moment may have on channels and in countries, some of which are those of its windows."""
    seconds, rest = divmod(now_us, _SECOND_US)
    tick = f"{2 * seconds + bool(rest):0{_DIGITS}x}"
    audiences = [f"{channel}:{country}" for channel in channels for country in countries]
    return tuple([f"{audience}:{tick[:length]}" for audience in audiences for length in range(_DIGITS + 1)])


def _intervals(coupons: Iterable[CouponDocument]) -> Iterator[str]:
    """The aligned intervals of the joined windows of coupons."""
    end = start = 0
    for first, after in sorted(map(_window, coupons)):
        if first > end:
            yield from _aligned(start, end)
            start = end = first
        end = max(end, after)
    yield from _aligned(start, end)


def _window(coupon: CouponDocument) -> tuple[int, int]:
    """The first tick of a coupon's validity, and the one after the last; ticks of which a part is missing are none."""
    first = -2 * (-coupon.valid_from_us // _SECOND_US)
    seconds, rest = divmod(coupon.valid_until_us, _SECOND_US)
    # The last microsecond counts too.
    after = 2 * seconds + 1 + (rest == _SECOND_US - 1)
    return min(max(first, 0), _END), min(max(after, 0), _END)


def _aligned(start: int, end: int) -> Iterator[str]:
    while start < end:
        digits, size = _DIGITS, 1
        while not start % (16 * size) and start + 16 * size <= end:
            digits, size = digits - 1, 16 * size
        yield f"{start:0{_DIGITS}x}"[:digits]
        start += size
