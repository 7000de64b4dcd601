"""Sortable keys of the orders: within a tier popularity descending, then id ascending by code point (M1); M11's."""

import struct
from typing import Final

_ALL_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF
# Added to signed numbers of 64 bits so that they sort as unsigned ones.
_SIGN: Final = 2**63


def rank_key(popularity: float | None, shop_id: str) -> str:
    """A text whose ascending order is M1's order.

    A popularity is finite and from 0 up; None counts as 0. The text is the inverted bits of the popularity as 16
    hexadecimal digits (the bits of a number >= 0 sort like the number), and the ASCII id.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", (popularity or 0.0) + 0.0))
    return f"{_ALL_BITS - bits:016x}{shop_id}"


def suggestion_score(tier: int, popularity: float | None) -> float:
    """The score that /suggest shows: the tier plus p / (1 + p), where p is the popularity (M9)."""
    p = popularity or 0.0
    return tier + p / (1.0 + p)


def newest_first_key(timestamp_us: int | None, record_id: str) -> str:
    """A text whose ascending order is newest first, none last, then the ASCII id (M11)."""
    bits = 0 if timestamp_us is None else timestamp_us + _SIGN
    return f"{_ALL_BITS - bits:016x}{record_id}"


def coupon_rank_key(*, applied: bool, last_verified_us: int | None, coupon_id: str) -> str:
    """A text whose ascending order is M11's of coupons: applied ones first, then the last verified, then id."""
    return f"{0 if applied else 1}{newest_first_key(last_verified_us, coupon_id)}"
