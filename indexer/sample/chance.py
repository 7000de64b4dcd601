"""Chance that repeats itself: every choice of the sample hangs on the seed and on the name of what is chosen for.

No clock and no shared stream of random numbers: a new shop in a table leaves the records of all others as they are.
"""

from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from random import Random
from typing import Final

SEED: Final = "sample-catalogue-1"
REFERENCE: Final = datetime(2026, 11, 1, tzinfo=UTC)


def chance(*purpose: str) -> Random:
    """The random numbers of one purpose, such as ``("coupons", shop_id)``: the same in every run."""
    return Random("/".join((SEED, *purpose)))  # noqa: S311  reproducible sample records, nothing secret


def digest(*parts: str) -> str:
    """Twelve hex digits that stand for the parts; used in the ids of coupons and offers."""
    return sha256("/".join(parts).encode()).hexdigest()[:12]


def moment_before(luck: Random, *, days: int) -> str:
    """A moment in the given number of days before the reference date, RFC 3339 in UTC, to the second."""
    return _text(REFERENCE - timedelta(seconds=luck.randint(1, days * 86_400)))


def day_before(luck: Random, *, days: int) -> str:
    """A bare date in the given number of days before the reference date."""
    earlier: date = (REFERENCE - timedelta(days=luck.randint(1, days))).date()
    return earlier.isoformat()


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
