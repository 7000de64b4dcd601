"""Quotas in the memory of one process, in bounded space (Q4): the embedded default, and what Redis falls back to."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.limits.policy import Quota
from service.limits.protocol import Decision, slot_milliseconds, whole_seconds

_MAX_KEYS: Final = 100_000
# More than a hit can add, little enough to take no time.
_FORGOTTEN_A_HIT: Final = 8


@dataclass(frozen=True, slots=True)
class _Taken:
    """Units that are forgotten together.

    Attributes:
        slot: the sixtieth of a window in which they came.
        latest: when the last of them came, in milliseconds.
        units: how many.
    """

    slot: int
    latest: int
    units: int


_Entries = tuple[_Taken, ...]


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
        # By window, each in the order of the last allowed hit: so the next one to forget is always the first.
        self._taken: dict[int, OrderedDict[str, _Entries]] = {}

    def __len__(self) -> int:
        """How many keys are remembered."""
        return sum(map(len, self._taken.values()))

    @property
    def degraded(self) -> bool:
        """Never: there is nothing that it could lack."""
        return False

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there."""
        now = round(self._clock() * 1000)
        window = quota.window * 1000
        keys = self._taken.setdefault(quota.window, OrderedDict())
        _forget_idle(keys, now - window)
        entries = tuple(taken for taken in keys.get(key, ()) if taken.latest + window > now)
        used = sum(taken.units for taken in entries)
        if used + cost > quota.limit:
            return _refused(entries, quota, used, cost, now)
        entries = _with(entries, now // slot_milliseconds(quota), now, cost)
        keys[key] = entries
        keys.move_to_end(key)
        if len(keys) > self._max_keys:
            keys.popitem(last=False)
        reset = whole_seconds(entries[0].latest + window - now)
        return Decision(True, quota.limit, quota.limit - used - cost, reset, None)

    async def close(self) -> None:
        """Forget everything."""
        self._taken.clear()


def _with(entries: _Entries, slot: int, now: int, cost: int) -> _Entries:
    if entries and entries[-1].slot == slot:
        return (*entries[:-1], _Taken(slot, now, entries[-1].units + cost))
    return (*entries, _Taken(slot, now, cost))


def _refused(entries: _Entries, quota: Quota, used: int, cost: int, now: int) -> Decision:
    """The refusal; what can never be allowed may ask again after a window."""
    window = quota.window * 1000
    waits = [taken.latest + window - now for taken in entries]
    retry = window
    for taken, wait in zip(entries, waits, strict=True):
        used -= taken.units
        if used + cost <= quota.limit:
            retry = wait
            break
    remaining = max(0, quota.limit - sum(taken.units for taken in entries))
    return Decision(False, quota.limit, remaining, whole_seconds(min(waits, default=window)), whole_seconds(retry))


def _forget_idle(keys: OrderedDict[str, _Entries], horizon: int) -> None:
    """Drop the keys whose quota is whole again, a few at a time."""
    for _ in range(min(_FORGOTTEN_A_HIT, len(keys))):
        key = next(iter(keys))
        if keys[key][-1].latest > horizon:
            return
        del keys[key]
