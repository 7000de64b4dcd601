"""Quotas in the memory of one process, in bounded space (Q4): the default, and the fallback for Redis."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from service.limits.policy import Decision, Quota, slot_milliseconds, whole_seconds

_MAX_KEYS: Final = 100_000
# More than a hit can add, and few enough to cost no noticeable time.
_MAX_REMOVED: Final = 8


@dataclass(slots=True)
class _Slot:
    """Units that expire together: those of one sixtieth of a window, the last taken at `latest` milliseconds."""

    index: int
    latest: int
    units: int


@dataclass(slots=True)
class _Count:
    """The units that one key has taken, in some sixty slots at most, the oldest first."""

    slots: deque[_Slot] = field(default_factory=deque)
    used: int = 0


class _Window:
    """The keys of all quotas with the same window length; length and slots are in milliseconds."""

    __slots__ = ("counts", "length", "slot")

    def __init__(self, quota: Quota) -> None:
        self.length = quota.window * 1000
        self.slot = slot_milliseconds(quota)
        # In the order of the last allowed hit, so that the first key expires first.
        self.counts: OrderedDict[str, _Count] = OrderedDict()


class MemoryLimiter:
    """A limiter that removes a key when its whole quota is available again, and idle keys when there are too many."""

    degraded: Final = False

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_keys: int = _MAX_KEYS) -> None:
        """Beyond `max_keys` keys of one window length, the one idle longest is removed, and so has its whole quota."""
        self._clock = clock
        self._max_keys = max_keys
        self._windows: dict[int, _Window] = {}

    def take(self, key: str, quota: Quota) -> Decision:
        return self._decide(key, quota, 1)

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        return self._decide(key, quota, cost)

    async def close(self) -> None:
        self._windows.clear()

    # One function, as calls of smaller ones would cost each suggest request as much as the work itself.
    def _decide(self, key: str, quota: Quota, cost: int) -> Decision:
        now = round(self._clock() * 1000)
        window = self._windows.get(quota.window)
        if window is None:
            window = self._windows[quota.window] = _Window(quota)
        horizon = now - window.length
        count = window.counts.get(key) or _Count()
        slots = count.slots
        while slots and slots[0].latest <= horizon:
            count.used -= slots.popleft().units
        used = count.used + cost
        if used > quota.limit:
            return _refused(count, quota, cost, now)
        count.used = used
        index = now // window.slot
        if slots and slots[-1].index == index:
            last = slots[-1]
            last.latest = now
            last.units += cost
            window.counts.move_to_end(key)
        else:
            slots.append(_Slot(index, now, cost))
            self._store(window.counts, key, count, horizon)
        # Whole seconds, rounded up; at least one, as the oldest slot has not expired.
        return Decision(True, quota.limit, quota.limit - used, -((horizon - slots[0].latest) // 1000), None)

    def _store(self, counts: OrderedDict[str, _Count], key: str, count: _Count, horizon: int) -> None:
        """Store a key with a new slot, and remove expired keys: faster than new ones can be added."""
        counts[key] = count
        counts.move_to_end(key)
        for idle in tuple(islice(counts, _MAX_REMOVED)):
            slots = counts[idle].slots
            if slots and slots[-1].latest > horizon:
                break
            del counts[idle]
        if len(counts) > self._max_keys:
            counts.popitem(last=False)


def _refused(count: _Count, quota: Quota, cost: int, now: int) -> Decision:
    """The refusal; with a cost above the limit, `retry_after` is the whole window."""
    window = quota.window * 1000
    retry, used = window, count.used
    for slot in count.slots:
        used -= slot.units
        if used + cost <= quota.limit:
            retry = slot.latest + window - now
            break
    reset = count.slots[0].latest + window - now if count.slots else window
    remaining = max(0, quota.limit - count.used)
    return Decision(False, quota.limit, remaining, whole_seconds(reset), whole_seconds(retry))
