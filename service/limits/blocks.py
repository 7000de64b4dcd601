"""Quotas of /suggest without a Redis call for each request: a process takes a block of units at a time (Q2).

A block is a fiftieth of the quota, or less when little of the quota remains. Redis counts its units when the process
takes it; the process allows requests from it until it is used up or a window old, and repeats a refusal for up to a
second. With W processes and blocks of B units, for any caller and any period of one window:

* at most `quota + W * B` requests are allowed, as each process may hold a block when the period starts;
* a request may be refused while other processes hold up to `W * B` unused units. The units of a killed process become
  available again after a window.

A subject of OAuth can have tokens of several classes, which count under one key: it has a block for each quota. Reads,
reports and quotas under 100 are counted one by one and are exact.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from typing import Final, Protocol

from service.limits.policy import Bucket, Decision, Quota

SHARE: Final = 50
_MIN_BLOCK: Final = 2
# Requests of refused callers must not cost a Redis call each.
_REFUSAL_SECONDS: Final = 1.0
_MAX_KEYS: Final = 20_000


class SharedCount(Protocol):
    """Counts the units of all workers."""

    async def count(self, key: str, quota: Quota, units: int, least: int) -> tuple[Decision, int]:
        """Count units, some of which may be used later: as many as requested, or at least `least`, or none.

        Returns the decision on all of them together, whose `remaining` does not include them, and how many were
        counted. Raises LimiterUnavailable.
        """

    async def close(self) -> None:
        """Close connections."""


class _Block:
    """The units that this process holds for one caller, or the last refusal."""

    __slots__ = ("expires_at", "quota", "remaining_in_store", "requested", "reset_at", "retry_at", "units")

    def __init__(self, quota: Quota, now: float) -> None:
        self.quota = quota
        # Whether a block has been requested from the store and not yet granted.
        self.requested = False
        self.units = 0
        # Until then the units may be used, or the refusal is repeated.
        self.expires_at = now
        self.remaining_in_store = 0
        self.reset_at = now
        self.retry_at: float | None = None

    def take(self, now: float) -> Decision | None:
        """Use one unit, or repeat a recent refusal; None when there is neither."""
        if now >= self.expires_at:
            return None
        reset = max(1, ceil(self.reset_at - now))
        if self.retry_at is not None:
            return Decision(False, self.quota.limit, 0, reset, max(1, ceil(self.retry_at - now)))
        if not self.units:
            return None
        self.units -= 1
        return Decision(True, self.quota.limit, self.remaining_in_store + self.units, reset, None)

    def store(self, decision: Decision, units: int, requested_at: float, now: float) -> None:
        self.units, self.remaining_in_store = units, decision.remaining
        self.reset_at = now + decision.reset_seconds
        if decision.allowed:
            self.retry_at = None
            self.expires_at = requested_at + self.quota.window
        else:
            self.retry_at = now + (decision.retry_after or 1)
            self.expires_at = min(self.retry_at, now + _REFUSAL_SECONDS)


class BlockLimiter:
    """A shared count, and the blocks that this process has taken from it."""

    # It decides with the shared count or not at all.
    degraded: Final = False

    def __init__(
        self, shared: SharedCount, *, max_keys: int = _MAX_KEYS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """At most `max_keys` callers have a block, and requests of others are counted one by one; closes `shared`."""
        self._shared = shared
        self._max_keys = max_keys
        self._clock = clock
        # By key and limit, in the order of the last request to the store, which is nearly the order of expiry.
        self._blocks: OrderedDict[tuple[str, int], _Block] = OrderedDict()

    def take(self, key: str, quota: Quota) -> Decision | None:
        block = self._blocks.get((key, quota.limit))
        return None if block is None else block.take(self._clock())

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are available, for /suggest from a block."""
        size = quota.limit // SHARE
        if quota.bucket is not Bucket.SUGGEST or size < _MIN_BLOCK or cost != 1:
            decision, _ = await self._shared.count(key, quota, cost, cost)
            return decision
        requested_at = self._clock()
        block = self._block(key, quota, requested_at)
        if block is None or block.requested:
            # A second block would break the bound, and waiting for the first would depend on another request.
            decision, _ = await self._shared.count(key, quota, 1, 1)
            return decision
        if (held := block.take(requested_at)) is not None:
            return held
        block.requested = True
        try:
            decision, units = await self._shared.count(key, quota, size, 1)
        finally:
            block.requested = False
        now = self._clock()
        block.store(decision, units, requested_at, now)
        return block.take(now) or decision

    async def close(self) -> None:
        self._blocks.clear()
        await self._shared.close()

    def _block(self, key: str, quota: Quota, now: float) -> _Block | None:
        """The caller's block, created if necessary; None when there are too many."""
        name = key, quota.limit
        block = self._blocks.get(name)
        if block is None:
            self._remove_expired(now)
            if len(self._blocks) >= self._max_keys:
                return None
            block = self._blocks[name] = _Block(quota, now)
        self._blocks.move_to_end(name)
        return block

    def _remove_expired(self, now: float) -> None:
        while self._blocks:
            key, block = next(iter(self._blocks.items()))
            if block.requested or block.expires_at > now:
                return
            del self._blocks[key]
