"""Reproducible randomness: every random choice of the sample depends only on the seed and on the name of its purpose.

There is no clock and no shared stream of random numbers, so a new shop changes no record of another shop.
"""

from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from random import Random
from typing import Final

SEED: Final = "sample-catalogue-1"
REFERENCE: Final = datetime(2026, 11, 1, tzinfo=UTC)


def seeded_random(*purpose: str) -> Random:
    """A generator for one purpose, such as ``("coupons", shop_id)``; it gives the same numbers in every run."""
    return Random("/".join((SEED, *purpose)))  # noqa: S311  reproducible sample records, nothing secret


def digest(*parts: str) -> str:
    """Twelve hex digits made from the parts; used in the ids of coupons and offers."""
    return sha256("/".join(parts).encode()).hexdigest()[:12]


def time_before(rng: Random, *, days: int) -> str:
    """A random time in the given number of days before the reference date, RFC 3339 in UTC, to the second."""
    return (REFERENCE - timedelta(seconds=rng.randint(1, days * 86_400))).strftime("%Y-%m-%dT%H:%M:%SZ")


def day_before(rng: Random, *, days: int) -> str:
    """A random bare date in the given number of days before the reference date."""
    earlier: date = (REFERENCE - timedelta(days=rng.randint(1, days))).date()
    return earlier.isoformat()
