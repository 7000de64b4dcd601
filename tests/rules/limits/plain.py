"""The arithmetic of quotas written as plainly as it can be: what the limiters are held against.

It also hands out blocks, as Redis does in a script; it can be switched off.
"""

from dataclasses import dataclass, field

from service.limits.policy import Decision, LimiterUnavailable, Quota, slot_milliseconds, whole_seconds
from tests.rules.limits.clocks import HandClock


@dataclass
class Taken:
    """Units of one slot, and when the last of them came."""

    slot: int
    latest: int
    units: int


@dataclass
class PlainCount:
    """Counts in lists, looks at all of them each time; `asked` has the units of each question that it answered."""

    clock: HandClock
    away: bool = False
    asked: list[int] = field(default_factory=list)
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    async def close(self) -> None:
        """What was counted stays, as in a server."""

    def used(self, key: str, quota: Quota) -> int:
        """Units that count now."""
        return sum(taken.units for taken in self._counting(key, quota))

    def _counting(self, key: str, quota: Quota) -> list[Taken]:
        horizon = self.clock.milliseconds - quota.window * 1000
        return sorted(
            (taken for taken in self.taken.get(key, []) if taken.latest > horizon), key=lambda taken: taken.latest
        )

    async def count(self, key: str, quota: Quota, units: int, least: int) -> tuple[Decision, int]:
        if self.away:
            raise LimiterUnavailable("away")
        now, window = self.clock.milliseconds, quota.window * 1000
        slot = now // slot_milliseconds(quota)
        counting = self._counting(key, quota)
        used = sum(taken.units for taken in counting)
        units = min(units, max(least, (quota.limit - used) // 8))
        if used + units <= quota.limit:
            self.asked.append(units)
            if counting and counting[-1].slot == slot:
                counting[-1] = Taken(slot, now, counting[-1].units + units)
            else:
                counting.append(Taken(slot, now, units))
            self.taken[key] = counting
            reset = counting[0].latest + window - now
            return Decision(True, quota.limit, quota.limit - used - units, whole_seconds(reset), None), units
        reset = min((taken.latest for taken in counting), default=now) + window - now
        retry, left = window, used
        for taken in counting:
            left -= taken.units
            if left + least <= quota.limit:
                retry = taken.latest + window - now
                break
        refused = Decision(False, quota.limit, max(0, quota.limit - used), whole_seconds(reset), whole_seconds(retry))
        return refused, 0
