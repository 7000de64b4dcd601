"""The counts of queries, and the interface of the stores that hold them for all workers.

A store holds a query's text only once LEAST_GROUPS address groups asked it on one day; until then a keyed hash.
The key of a day is random, and is deleted with all hashes of groups when the day is over.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Protocol

from service.runtime.store_waits import StoreUnavailable

# The address groups that have to ask a query on one day.
LEAST_GROUPS: Final = 5
KEPT_DAYS: Final = 30
# The queries of a day in memory of a worker, and in the store.
MOST_QUERIES: Final = 10_000
KEY_BYTES: Final = 32
_MARK_BYTES: Final = 8


class InsightsUnavailable(StoreUnavailable):
    """The store did not answer; counts that were to be added may have been."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a query was asked and found nothing since the last tally, and the marks of the groups that asked it."""

    query: str
    mark: str
    asked: int
    not_found: int
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryCount:
    """How often a query was asked, and how often it found nothing."""

    query: str
    asked: int
    not_found: int


class InsightStore(Protocol):
    """Holds the counts of the last days. Every method may raise InsightsUnavailable."""

    async def key_of(self, day: str) -> bytes:
        """The key of a day (an ISO date in UTC), the same for all workers; what belongs to former keys is deleted."""

    async def add(self, day: str, tallies: Sequence[Tally]) -> None:
        """Add tallies of a day whose key is known still; those of another day are dropped."""

    async def counts(self, since: str) -> tuple[QueryCount, ...]:
        """The queries that enough groups asked on one day, from a day on: all days together, the most asked first."""

    async def erase(self) -> None:
        """Delete everything, keys included."""

    async def close(self) -> None:
        """Close connections and files."""


def first_day(days: int) -> str:
    """The first of a number of days in UTC, of which the last one is today."""
    return (datetime.now(UTC) - timedelta(days=days - 1)).date().isoformat()


def mark_of(key: bytes, text: str) -> str:
    """The keyed hash of a query or of an address group, as 16 hexadecimal digits."""
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")[:_MARK_BYTES].hex()


def first_of(counts: Sequence[QueryCount], field: Literal["asked", "not_found"], most: int) -> tuple[QueryCount, ...]:
    """The first queries by how often they were asked, or found nothing."""
    counted = (one for one in counts if getattr(one, field))
    return tuple(sorted(counted, key=lambda one: (-getattr(one, field), one.query))[:most])
