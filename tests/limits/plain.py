"""The arithmetic of quotas written as plainly as it can be: what the limiters are held against.

As a lender it does at once what Redis does in a script; it can be switched off.
"""

from dataclasses import dataclass, field

from service.limits.lending import Lent
from service.limits.policy import Quota
from service.limits.protocol import Decision, LimiterUnavailable, slot_milliseconds, whole_seconds
from tests.limits.clocks import HandClock


@dataclass
class Taken:
    """Units of one slot, and when the last of them came."""

    slot: int
    latest: int
    units: int


@dataclass
class PlainLender:
    """Counts in lists, looks at all of them each time.

    Attributes:
        clock: of all.
        away: whether it answers nothing.
        asked: the units of each question that it answered.
        returned: the units that were given back.
    """

    clock: HandClock
    away: bool = False
    asked: list[int] = field(default_factory=list)
    returned: int = 0
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    @property
    def degraded(self) -> bool:
        return False

    def take(self, key: str, quota: Quota) -> Decision | None:  # noqa: ARG002 - as `Limiter` has it
        return None

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        return (await self._counted(key, quota, cost, cost, 0)).decision

    async def lend(self, key: str, quota: Quota, units: int, seconds: float) -> Lent:
        return await self._counted(key, quota, units, 1, round(seconds * 1000))

    async def give_back(self, key: str, slot: str, units: int) -> None:
        self._answer()
        self.returned += units
        for taken in self.taken.get(key, []):
            if taken.slot == int(slot):
                taken.units -= units
        self.taken[key] = [taken for taken in self.taken.get(key, []) if taken.units > 0]

    async def close(self) -> None:
        """What was counted stays, as in a server."""

    def used(self, key: str, quota: Quota) -> int:
        """Units that count now."""
        return sum(taken.units for taken in self._counting(key, quota))

    def _answer(self) -> None:
        if self.away:
            raise LimiterUnavailable("away")

    def _counting(self, key: str, quota: Quota) -> list[Taken]:
        horizon = self.clock.milliseconds - quota.window * 1000
        return sorted(
            (taken for taken in self.taken.get(key, []) if taken.latest > horizon), key=lambda taken: taken.latest
        )

    async def _counted(self, key: str, quota: Quota, units: int, least: int, ahead: int) -> Lent:
        self._answer()
        now, window = self.clock.milliseconds, quota.window * 1000
        at = now + ahead
        slot = at // slot_milliseconds(quota)
        counting = self._counting(key, quota)
        used = sum(taken.units for taken in counting)
        units = min(units, max(least, (quota.limit - used) // 8))
        if used + units <= quota.limit:
            self.asked.append(units)
            for taken in counting:
                if taken.slot == slot:
                    taken.units, taken.latest = taken.units + units, max(taken.latest, at)
                    break
            else:
                counting.append(Taken(slot, at, units))
            self.taken[key] = counting
            reset = min(taken.latest for taken in counting) + window - now
            return Lent(
                Decision(True, quota.limit, quota.limit - used - units, whole_seconds(reset), None), units, str(slot)
            )
        reset = min((taken.latest for taken in counting), default=now) + window - now
        retry, left = window, used
        for taken in counting:
            left -= taken.units
            if left + least <= quota.limit:
                retry = taken.latest + window - now
                break
        refused = Decision(False, quota.limit, max(0, quota.limit - used), whole_seconds(reset), whole_seconds(retry))
        return Lent(refused, 0, str(slot))
