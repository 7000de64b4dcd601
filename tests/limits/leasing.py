"""Processes that borrow from one store, on one clock, and a key press."""

from dataclasses import dataclass, field
from typing import Final

from service.limits.leased import LeasedLimiter
from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, Limiter
from tests.limits.clocks import HandClock
from tests.limits.plain import PlainLender

SUGGEST: Final = Quota(Bucket.SUGGEST, 1_200, 60)


async def press(limiter: Limiter, quota: Quota = SUGGEST, key: str = "k") -> Decision:
    """One key press: at once where that is possible."""
    return limiter.take(key, quota) or await limiter.hit(key, quota)


@dataclass
class World:
    """One store, and processes that it lends to."""

    processes: int = 1
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.lender = PlainLender(self.clock)
        self.limiters = [LeasedLimiter(self.lender, clock=self.clock) for _ in range(self.processes)]

    @property
    def limiter(self) -> LeasedLimiter:
        return self.limiters[0]

    async def settle(self) -> None:
        for limiter in self.limiters:
            limiter.sweep()
            await limiter.settled()

    async def close(self) -> None:
        """Close the processes; what counts in the store stays."""
        for limiter in self.limiters:
            await limiter.close()
