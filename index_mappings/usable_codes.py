"""The times at which a shop has a usable coupon code, as terms (F3, F4).

Time is counted in ticks from 1970: each second has one for its beginning and one for the rest of it, so that bounds of
whole seconds are exact to the microsecond. A tick is nine hexadecimal digits, and an interval whose length is a power
of 16 is the common beginning of its ticks. A window is cut into the fewest such intervals, at most 15 of each length at
either end; a moment is in the window exactly if one of the beginnings of its tick, the empty one included, is a term.

A term is `channel:caller:place:status:digits`. The channel is ANY_CHANNEL for codes that no channel hides. The caller
is ANY_COUNTRY for codes that are blocked in no country; the others only count for callers of a known country that is
not blocked. They are under each country that one of them names, and under OTHERS for all countries that none names:
`channel:-:country` tells which are named. The place is ANYWHERE for codes that state no countries or WORLDWIDE; the
others are under each country that they state, and under SOMEWHERE. The status is ANY_STATUS, and APPLIED as well for
codes that worked in a real checkout.

A shop has at most MAX_TERMS. If its codes need more, their windows are cut to coarser intervals that begin later and
end earlier, and then the last terms are dropped: terms never say that there is a code where there is none.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from index_mappings.countries import WORLDWIDE
from index_mappings.documents import CouponDocument

CHANNELS: Final = ("rest", "mcp", "stdio")
ANY_CHANNEL: Final = "*"
ANY_COUNTRY: Final = "*"
OTHERS: Final = "+"
ANYWHERE: Final = "*"
SOMEWHERE: Final = "+"
ANY_STATUS: Final = "*"
APPLIED: Final = "a"
MAX_TERMS: Final = 10_000
_DIGITS: Final = 9
# The most digits of an interval: 34 minutes are 6 digits, 9 hours 5, and 6 days 4.
_PRECISIONS: Final = (_DIGITS, 6, 5, 4)
_END: Final = 16**_DIGITS
_SECOND_US: Final = 1_000_000

_Coupons = Sequence[CouponDocument]


class CodeTerms(NamedTuple):
    """The terms of a shop, and whether they are exact: else a code may count later, shorter or not at all."""

    terms: tuple[str, ...]
    exact: bool


def code_terms(coupons: Iterable[CouponDocument]) -> CodeTerms:
    """The terms of all coupons of a shop."""
    usable = [coupon for coupon in coupons if coupon.status != "verified_rejected" and coupon.reserved == "no"]
    if not usable:
        return CodeTerms((), exact=True)
    found: tuple[str, ...] = ()
    for digits in _PRECISIONS:
        found = tuple(islice(_terms(usable, digits), MAX_TERMS + 1))
        if len(found) <= MAX_TERMS:
            return CodeTerms(found, exact=digits == _DIGITS)
    return CodeTerms(found[:MAX_TERMS], exact=False)


def named_term(channel: str, country: str) -> str:
    """The term of a shop that has a code on a channel which names a country as blocked."""
    return f"{channel}:-:{country}"


def moment_terms(
    channels: Iterable[str], callers: Iterable[str], places: Iterable[str], status: str, now_us: int
) -> tuple[str, ...]:
    """The terms that a moment may have, some of which are those of a shop's windows, on any of the channels."""
    seconds, rest = divmod(now_us, _SECOND_US)
    tick = f"{2 * seconds + bool(rest):0{_DIGITS}x}"
    beginnings = [tick[:length] for length in range(_DIGITS + 1)]
    audiences = [(channel, caller, place) for channel in channels for caller in callers for place in places]
    return tuple([f"{':'.join(audience)}:{status}:{digits}" for audience in audiences for digits in beginnings])


def _terms(coupons: _Coupons, digits: int) -> Iterator[str]:
    """The terms, those first that take codes away from callers, then those that count for the most callers."""
    by_channel: dict[str, list[CouponDocument]] = defaultdict(list)
    for coupon in coupons:
        shown = [channel for channel in CHANNELS if channel not in coupon.blocked_channels]
        for channel in shown if coupon.blocked_channels else (ANY_CHANNEL,):
            by_channel[channel].append(coupon)
    callers: dict[str, dict[str, _Coupons]] = {ANY_COUNTRY: {}, OTHERS: {}}
    for channel, some in sorted(by_channel.items()):
        blocked = [coupon for coupon in some if coupon.blocked_countries]
        callers[ANY_COUNTRY][channel] = [coupon for coupon in some if not coupon.blocked_countries]
        callers[OTHERS][channel] = blocked
        for country in sorted({country for coupon in blocked for country in coupon.blocked_countries}):
            yield named_term(channel, country)
            shown_there = [coupon for coupon in blocked if country not in coupon.blocked_countries]
            callers.setdefault(country, {})[channel] = shown_there
    for caller, channels in callers.items():
        for channel, shown_coupons in channels.items():
            yield from _terms_of_audience(f"{channel}:{caller}", shown_coupons, digits)


def _terms_of_audience(audience: str, coupons: _Coupons, digits: int) -> Iterator[str]:
    # ANYWHERE and SOMEWHERE are sorted before countries.
    for place, good in sorted(_by_place(coupons).items()):
        applied = [coupon for coupon in good if coupon.status == "verified_applied"]
        for status, some in ((ANY_STATUS, good), (APPLIED, applied)):
            yield from (f"{audience}:{place}:{status}:{beginning}" for beginning in _intervals(some, digits))


def _by_place(coupons: _Coupons) -> Mapping[str, _Coupons]:
    found: dict[str, list[CouponDocument]] = defaultdict(list)
    for coupon in coupons:
        countries = coupon.view["countries"] or (WORLDWIDE,)
        for place in (ANYWHERE,) if WORLDWIDE in countries else (SOMEWHERE, *countries):
            found[place].append(coupon)
    return found


def _intervals(coupons: Iterable[CouponDocument], digits: int) -> Iterator[str]:
    """The aligned intervals of the joined windows of coupons, with at most so many digits."""
    end = start = 0
    for first, after in sorted(map(_window, coupons)):
        if first > end:
            yield from _aligned(start, end, digits)
            start = end = first
        end = max(end, after)
    yield from _aligned(start, end, digits)


def _window(coupon: CouponDocument) -> tuple[int, int]:
    """The first tick of a coupon's validity, and the one after the last; ticks of which a part is missing are none."""
    first = -2 * (-coupon.valid_from_us // _SECOND_US)
    seconds, rest = divmod(coupon.valid_until_us, _SECOND_US)
    # The last microsecond counts too.
    after = 2 * seconds + 1 + (rest == _SECOND_US - 1)
    return min(max(first, 0), _END), min(max(after, 0), _END)


# The codes of a shop have the same windows in each place, and those of many shops end on the same day.
@lru_cache(maxsize=256)
def _aligned(start: int, end: int, most_digits: int) -> tuple[str, ...]:
    found: list[str] = []
    least = 16 ** (_DIGITS - most_digits)
    start = -(-start // least) * least
    while start + least <= end:
        digits, size = most_digits, least
        while not start % (16 * size) and start + 16 * size <= end:
            digits, size = digits - 1, 16 * size
        found.append(f"{start:0{_DIGITS}x}"[:digits])
        start += size
    return tuple(found)
