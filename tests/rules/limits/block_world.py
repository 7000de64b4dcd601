"""Processes that take blocks from one store, on one clock, and a suggest request."""

from dataclasses import dataclass, field
from typing import Final

from service.limits.blocks import BlockLimiter
from service.limits.policy import Bucket, Decision, Limiter, Quota
from tests.rules.limits.clocks import HandClock
from tests.rules.limits.plain import PlainCount

SUGGEST: Final = Quota(Bucket.SUGGEST, 1_200, 60)
BLOCK: Final = 24


async def suggest(limiter: Limiter, quota: Quota = SUGGEST, key: str = "k") -> Decision:
    """One suggest request: without waiting where that is possible."""
    return limiter.take(key, quota) or await limiter.hit(key, quota)


@dataclass
class World:
    """One store, and processes that take blocks from it."""

    processes: int = 1
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.store = PlainCount(self.clock)
        self.limiters = [BlockLimiter(self.store, clock=self.clock) for _ in range(self.processes)]

    @property
    def limiter(self) -> BlockLimiter:
        return self.limiters[0]
