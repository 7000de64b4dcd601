"""Quotas of /suggest without a question to Redis for each request: a process takes a block of units at a time (Q2).

A block is a fiftieth of the quota, less when little of the quota is left, and is counted in the store when it is taken.
The process hands its units out until they are used up or a window old. With W processes and blocks of B units, for any
caller and any stretch of a window:

* at most `quota + W * B` requests are allowed: what each process still held when the stretch began comes on top;
* a request may be refused while up to `W * B` units lie unused in other processes. What a killed process held comes
  back with its window.

A refusal is repeated for up to a second without asking. Reads and reports, and quotas under 100, are asked for one by
one and are exact.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, Protocol

from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, Limiter

SHARE: Final = 50
_FEWEST: Final = 2
# Refused callers must not cost Redis a question for each request.
_REPEATED_SECONDS: Final = 1.0
_MAX_KEYS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of asking for a block.

    Attributes:
        decision: on the units together: what is left without them, or why there are none.
        units: how many were taken; 0 when refused.
    """

    decision: Decision
    units: int


class BlockSource(Limiter, Protocol):
    """A limiter that also hands out several units at a time."""

    async def take_block(self, key: str, quota: Quota, units: int) -> Taken:
        """Count units now that may be used later: those asked for, or fewer when few are left, or none.

        Raises:
            LimiterUnavailable: nothing is known of them.
        """


class _Block:
    """The units that one process holds for one caller, or the last refusal."""

    __slots__ = ("asking", "ends", "in_store", "left", "quota", "reset_at", "retry_at")

    def __init__(self, quota: Quota, now: float) -> None:
        self.quota = quota
        self.asking = False
        self.left = 0
        # Until then the units may be used, or the refusal is repeated.
        self.ends = now
        self.in_store = 0
        self.reset_at = now
        self.retry_at: float | None = None

    def take(self, now: float) -> Decision | None:
        """Hand out one unit, or repeat a fresh refusal; None when there is neither."""
        if now >= self.ends:
            return None
        reset = max(1, ceil(self.reset_at - now))
        if self.retry_at is not None:
            return Decision(False, self.quota.limit, 0, reset, max(1, ceil(self.retry_at - now)))
        if not self.left:
            return None
        self.left -= 1
        return Decision(True, self.quota.limit, self.in_store + self.left, reset, None)

    def fill(self, taken: Taken, asked_at: float, now: float) -> None:
        """Note what came of asking."""
        decision = taken.decision
        self.left, self.in_store = taken.units, decision.remaining
        self.reset_at = now + decision.reset_seconds
        if decision.allowed:
            self.retry_at = None
            self.ends = asked_at + self.quota.window
        else:
            self.retry_at = now + (decision.retry_after or 1)
            self.ends = min(self.retry_at, now + _REPEATED_SECONDS)


class BlockLimiter:
    """A shared limiter, and the blocks that this process took from it."""

    def __init__(
        self, shared: BlockSource, *, max_keys: int = _MAX_KEYS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Hold nothing yet.

        Args:
            shared: counts; it belongs to this one.
            max_keys: callers that blocks are held for; any other's units are asked for one by one.
            clock: seconds that never go back.
        """
        self._shared = shared
        self._max_keys = max_keys
        self._clock = clock
        # In the order in which they were asked for, which is nearly that in which they end.
        self._blocks: OrderedDict[str, _Block] = OrderedDict()

    def __len__(self) -> int:
        """For how many callers something is held."""
        return len(self._blocks)

    @property
    def degraded(self) -> bool:
        """As the shared one."""
        return self._shared.degraded

    def take(self, key: str, quota: Quota) -> Decision | None:
        """Take one unit of a block; None when there is none."""
        block = self._blocks.get(key)
        if block is None or (block.quota is not quota and block.quota != quota):
            return None
        return block.take(self._clock())

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there; one of a block's where there is one."""
        size = quota.limit // SHARE
        if quota.bucket is not Bucket.SUGGEST or size < _FEWEST or cost != 1:
            return await self._shared.hit(key, quota, cost)
        asked_at = self._clock()
        block = self._block(key, quota, asked_at)
        if block is None or block.asking:
            # A second block would break the bound; and nobody waits for another caller's question.
            return await self._shared.hit(key, quota)
        if (decision := block.take(asked_at)) is not None:
            return decision
        block.asking = True
        try:
            taken = await self._shared.take_block(key, quota, size)
        finally:
            block.asking = False
        now = self._clock()
        block.fill(taken, asked_at, now)
        return block.take(now) or taken.decision

    async def close(self) -> None:
        """Close the shared one; what was not used comes back with its window."""
        self._blocks.clear()
        await self._shared.close()

    def _block(self, key: str, quota: Quota, now: float) -> _Block | None:
        """The caller's block, made if need be; None when there are too many."""
        block = self._blocks.get(key)
        if block is None or block.quota != quota:
            self._forget_ended(now)
            if block is None and len(self._blocks) >= self._max_keys:
                return None
            block = self._blocks[key] = _Block(quota, now)
        self._blocks.move_to_end(key)
        return block

    def _forget_ended(self, now: float) -> None:
        while self._blocks:
            key, block = next(iter(self._blocks.items()))
            if block.asking or block.ends > now:
                return
            del self._blocks[key]
