"""The interface of a limiter: one step that decides, counts and returns the remainder.

Every limiter guarantees that no period of `window` seconds, whenever it starts, has more than `limit` allowed units of
a key, and that the whole quota is available after `window` seconds without calls. To need only a few bytes a key, units
taken within the same sixtieth of the window expire together, when the last of them is a window old: a unit may count up
to a sixtieth of the window too long, never too short. Refused units do not count. A limiter that takes units in blocks
(`service.limits.blocks`) deviates from both guarantees by a bound that it states.

Why not the library `limits` (5.8): its `hit` decides and its `get_window_stats` returns the remainder, and another call
can come between the two, where headers on every answer need one step; its Redis extra needs a client below version 8.
Why not a leaky bucket (GCRA): one that admits a burst of the whole quota allows nearly twice the quota in the first
window, so "120 a minute" would not be true.
"""

from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from service.limits.policy import Quota
from service.runtime.store_waits import StoreUnavailable

Headers = tuple[tuple[bytes, bytes], ...]
SLOTS: Final = 60


class LimiterUnavailable(StoreUnavailable):
    """There was no decision; the units may have been counted."""


class Decision(NamedTuple):
    """The result of a hit: a named tuple, as every suggest request makes one and a dataclass costs twice as much.

    Attributes:
        allowed: whether the call may go on; only then it was counted.
        remaining: units that could be taken right after the hit.
        reset_seconds: whole seconds, at least 1, after which some units become available again.
        retry_after: whole seconds after which the same hit would be allowed if no other came; None if it was allowed.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int
    retry_after: int | None


class Limiter(Protocol):
    """Counts units against quotas."""

    @property
    def degraded(self) -> bool:
        """Whether the last decision was made without the shared count."""

    def take(self, key: str, quota: Quota) -> Decision | None:
        """Take one unit if the limiter can decide without I/O; None when only `hit` can. Never waits, never raises."""

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take `cost` units, at least 1, from a key's quota if they are available. Raises LimiterUnavailable."""

    async def close(self) -> None:
        """Close connections."""


def quota_headers(quota: Quota, decision: Decision) -> Headers:
    """The headers RateLimit-Policy and RateLimit of every counted answer, allowed or refused.

    They follow draft-ietf-httpapi-ratelimit-headers-11. They are structured fields (RFC 9651): a list of one string,
    the bucket's name, with integers as parameters. `q` units are allowed in `w` seconds; `r` of them remain, and more
    become available after `t` seconds.
    """
    policy, pattern = quota_pattern(quota)
    return policy, (b"ratelimit", pattern % (decision.remaining, decision.reset_seconds))


@lru_cache(maxsize=256)
def quota_pattern(quota: Quota) -> tuple[tuple[bytes, bytes], bytes]:
    """The RateLimit-Policy header of a quota, and a pattern for the value of RateLimit."""
    name = quota.bucket.value
    policy = f'"{name}";q={quota.limit};w={quota.window}'.encode()
    return (b"ratelimit-policy", policy), f'"{name}";r=%d;t=%d'.encode()


def slot_milliseconds(quota: Quota) -> int:
    """The length of a slot: units that are taken within one expire together."""
    return max(1, quota.window * 1000 // SLOTS)


def whole_seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, rounded up, at least 1."""
    return max(1, -(-milliseconds // 1000))
