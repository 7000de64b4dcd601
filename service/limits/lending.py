"""What a limiter must offer that lends units ahead: some at once, counted as long as they may be used, and taken back.

A lease never lets a window hold more than its quota: what may be used until its end counts as if used then.
"""

from dataclasses import dataclass
from typing import Protocol

from service.limits.policy import Quota
from service.limits.protocol import Decision, Limiter


@dataclass(frozen=True, slots=True)
class Lent:
    """What came of asking for a lease.

    Attributes:
        decision: on the units together: what is left without them, or why there are none.
        units: how many were lent; 0 when refused.
        slot: where they are counted, for giving some of them back.
    """

    decision: Decision
    units: int
    slot: str


class Lender(Limiter, Protocol):
    """A limiter that lends."""

    async def lend(self, key: str, quota: Quota, units: int, seconds: float) -> Lent:
        """Count units that may be used within some seconds: those asked for, or fewer when few are left, or none.

        Raises:
            LimiterUnavailable: nothing is known of them.
        """

    async def give_back(self, key: str, slot: str, units: int) -> None:
        """Forget units of a lease that were not used.

        Raises:
            LimiterUnavailable: perhaps they still count.
        """
