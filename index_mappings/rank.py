"""The one order within a tier: popularity descending, then id ascending by code point, as one sortable key (M1)."""

import struct
from typing import Final

_ALL_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF


def rank_key(popularity: float | None, shop_id: str) -> str:
    """A text whose ascending order is M1's order.

    Args:
        popularity: any finite number from 0 up; None counts as 0.
        shop_id: the shop's id (ASCII).

    Returns:
        16 hexadecimal digits, the inverted bits of the popularity (those of a number >= 0 sort like the number), and
        the id.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", (popularity or 0.0) + 0.0))
    return f"{_ALL_BITS - bits:016x}{shop_id}"


def suggestion_score(tier: int, popularity: float | None) -> float:
    """What /suggest shows: the tier, and within it the popularity p as p / (1 + p) (M9)."""
    p = popularity or 0.0
    return tier + p / (1.0 + p)
