"""Quotas in the memory of one process, in bounded space (Q4): the embedded default, and what Redis falls back to."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from service.limits.policy import Quota
from service.limits.protocol import Decision, slot_milliseconds, whole_seconds

_MAX_KEYS: Final = 100_000
# More than a hit can add, little enough to take no time.
_FORGOTTEN_A_SLOT: Final = 8


class _Taken:
    """Units that are forgotten together.

    Attributes:
        slot: the sixtieth of a window in which they came.
        latest: when the last of them came, in milliseconds.
        units: how many.
    """

    __slots__ = ("latest", "slot", "units")

    def __init__(self, slot: int, latest: int, units: int) -> None:
        self.slot = slot
        self.latest = latest
        self.units = units


class _Count:
    """What one key has taken: mutable, as it changes on every key press.

    Attributes:
        taken: some sixty at most, the oldest first.
        used: the units of all of them.
    """

    __slots__ = ("taken", "used")

    def __init__(self) -> None:
        self.taken: deque[_Taken] = deque()
        self.used = 0


class _Window:
    """The keys of quotas with one window length.

    Attributes:
        length: in milliseconds.
        slot: a sixtieth of it.
        counts: by key, in the order of the last allowed hit: so the next one to forget is always the first.
    """

    __slots__ = ("counts", "length", "slot")

    def __init__(self, quota: Quota) -> None:
        self.length = quota.window * 1000
        self.slot = slot_milliseconds(quota)
        self.counts: OrderedDict[str, _Count] = OrderedDict()


class MemoryLimiter:
    """A limiter that forgets a key when its quota is whole again, and the longest idle when there are too many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_keys: int = _MAX_KEYS) -> None:
        """Count from nothing.

        Args:
            clock: seconds that never go back.
            max_keys: how many keys of one window length are remembered. Beyond it the one that was last allowed
                something longest ago starts anew, which can only be in its favour.
        """
        self._clock = clock
        self._max_keys = max_keys
        self._windows: dict[int, _Window] = {}

    def __len__(self) -> int:
        """How many keys are remembered."""
        return sum(len(window.counts) for window in self._windows.values())

    @property
    def degraded(self) -> bool:
        """Never: there is nothing that it could lack."""
        return False

    def take(self, key: str, quota: Quota) -> Decision:
        """Take one unit from a key's quota if it is there; always decides."""
        return self._decision(key, quota, 1)

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there."""
        return self._decision(key, quota, cost)

    async def close(self) -> None:
        """Forget everything."""
        self._windows.clear()

    # In one piece: on every key press, calls of parts would cost as much as the work.
    def _decision(self, key: str, quota: Quota, cost: int) -> Decision:
        now = round(self._clock() * 1000)
        window = self._windows.get(quota.window)
        if window is None:
            window = self._windows[quota.window] = _Window(quota)
        horizon = now - window.length
        count = window.counts.get(key) or _Count()
        taken = count.taken
        while taken and taken[0].latest <= horizon:
            count.used -= taken.popleft().units
        used = count.used + cost
        if used > quota.limit:
            return _refused(count, quota, cost, now)
        count.used = used
        slot = now // window.slot
        if taken and taken[-1].slot == slot:
            last = taken[-1]
            last.latest = now
            last.units += cost
            window.counts.move_to_end(key)
        else:
            taken.append(_Taken(slot, now, cost))
            self._keep(window.counts, key, count, horizon)
        # Whole seconds, rounded up: at least one, as what is there is not a window old.
        return Decision(True, quota.limit, quota.limit - used, -((horizon - taken[0].latest) // 1000), None)

    def _keep(self, counts: OrderedDict[str, _Count], key: str, count: _Count, horizon: int) -> None:
        """Remember a key that has begun another slot, and forget others: no fewer than can have come meanwhile."""
        counts[key] = count
        counts.move_to_end(key)
        for idle in tuple(islice(counts, _FORGOTTEN_A_SLOT)):
            taken = counts[idle].taken
            if taken and taken[-1].latest > horizon:
                break
            del counts[idle]
        if len(counts) > self._max_keys:
            counts.popitem(last=False)


def _refused(count: _Count, quota: Quota, cost: int, now: int) -> Decision:
    """The refusal; what can never be allowed may ask again after a window."""
    window = quota.window * 1000
    retry, used = window, count.used
    for taken in count.taken:
        used -= taken.units
        if used + cost <= quota.limit:
            retry = taken.latest + window - now
            break
    reset = count.taken[0].latest + window - now if count.taken else window
    remaining = max(0, quota.limit - count.used)
    return Decision(False, quota.limit, remaining, whole_seconds(reset), whole_seconds(retry))
