"""The units that one process has at hand for one caller: lent ahead, handed out one by one, as many as he is quick.

They are never more than a given share of his quota, and none is handed out after its lease's end. Plain and pure: it
asks nobody, and time is told to it.
"""

from math import ceil
from typing import Final

from service.limits.lending import Lent
from service.limits.policy import Quota
from service.limits.protocol import Decision

# How much more than the last time may be wanted at once: three questions reach the most of an anonymous caller.
_GROWTH: Final = 4
# With this share of the units left, or of the time, more are wanted.
_LOW: Final = 4
# Fewer are not worth it: taking them, and giving back what is not used, would be as many questions as key presses.
FEWEST: Final = 3
_USED_BEFORE_RENEWAL: Final = 1 - 1 / _LOW
# So long a refusal is repeated without asking; what others give back meanwhile waits.
REPEATED_SECONDS: Final = 1.0
_INSTANT: Final = 0.001


class _Lease:
    """Units of one question.

    Attributes:
        left: of them.
        until: when they may be used no more.
        slot: where the lender counts them.
    """

    __slots__ = ("left", "slot", "until")

    def __init__(self, left: int, until: float, slot: str) -> None:
        self.left = left
        self.until = until
        self.slot = slot


class Hand:
    """Of one caller: at most a lease that is used, and one that waits behind it."""

    __slots__ = (
        "_began", "_in_store", "_lapsed", "_lease", "_low", "_most", "_next", "_refused_until", "_renew_at",
        "_reset_at", "_retry_at", "_seconds", "_size", "_used", "asking", "ends", "quota",
    )  # fmt: skip

    def __init__(self, quota: Quota, most: int, seconds: float, now: float) -> None:
        """Nothing is at hand.

        Args:
            quota: of the caller.
            most: units that may be at hand at once.
            seconds: how long a lease lasts.
            now: seconds that never go back, as everywhere here.
        """
        self.quota = quota
        self.asking = False  # whether a question for more is under way
        self.ends = now + seconds  # when nothing here is of use any more
        self._most = most
        self._seconds = seconds
        self._lease = _Lease(0, now, "")
        self._next: _Lease | None = None
        self._lapsed: list[tuple[str, int]] = []
        self._size = 1
        self._low = 0
        self._used = 0
        self._began = now
        self._renew_at = now
        self._in_store = 0
        self._reset_at = now
        self._refused_until = self._retry_at = now

    @property
    def held(self) -> int:
        """Units that are at hand; those whose lease has ended count until they are given back."""
        return self._lease.left + (self._next.left if self._next is not None else 0)

    def take(self, now: float) -> Decision | None:
        """Hand out one unit, or repeat a fresh refusal; None when there is neither."""
        lease = self._lease
        if not lease.left or now >= lease.until:
            if not self._turned(now):
                return self._repeated(now)
            lease = self._lease
        lease.left -= 1
        self._used += 1
        left = lease.left if self._next is None else lease.left + self._next.left
        return Decision(True, self.quota.limit, self._in_store + left, max(1, ceil(self._reset_at - now)), None)

    def wants_more(self, now: float) -> bool:
        """Whether what is at hand will soon be used up or over, and nothing is done about it."""
        lease = self._lease
        return (
            (lease.left <= self._low or now >= self._renew_at)
            and not self.asking
            and self._next is None
            and now >= self._refused_until
        )

    def wanted(self, now: float) -> int:
        """How many units to ask for: at the pace since the last question, what is used until the next one."""
        pace = self._used / max(now - self._began, _INSTANT)
        size = min(self._most, _GROWTH * self._size, round(pace * self._seconds * _USED_BEFORE_RENEWAL))
        self._size = size if size >= FEWEST else 1
        self._low = self._size // _LOW
        self._used, self._began = 0, now
        self.ends = max(self.ends, now + self._seconds)
        return min(self._size, self._most - self.held)

    def lent(self, lent: Lent, asked_at: float, now: float) -> None:
        """Take what was asked for into the hand, or note that it was refused."""
        decision = lent.decision
        self._reset_at = now + decision.reset_seconds
        if not decision.allowed:
            self._in_store = 0
            self._retry_at = now + (decision.retry_after or 1)
            self._refused_until = min(self._retry_at, now + REPEATED_SECONDS)
            return
        self._in_store = decision.remaining
        until = asked_at + self._seconds
        self.ends = max(self.ends, until)
        self._renew_at = until - self._seconds / _LOW
        self._next = _Lease(lent.units, until, lent.slot)

    def counted(self, decision: Decision, now: float) -> None:
        """Note the decision on one unit that was asked for alone."""
        if decision.allowed:
            self._used += 1
        else:
            self.lent(Lent(decision, 0, ""), now, now)

    def lapsed(self, now: float) -> list[tuple[str, int]]:
        """The slots and units to give back, of leases that have ended by then; they are gone from here."""
        if now >= self._lease.until:
            self._turned(now)
        found, self._lapsed = self._lapsed, []
        return found

    def _turned(self, now: float) -> bool:
        """Go on to the next lease; whether there is one to use."""
        for lease in (self._lease, self._next):
            if lease is not None and lease.left and now >= lease.until:
                self._lapsed.append((lease.slot, lease.left))
                lease.left = 0
        if self._next is None:
            return False
        self._lease, self._next = self._next, None
        return self._lease.left > 0

    def _repeated(self, now: float) -> Decision | None:
        if now >= self._refused_until:
            return None
        reset, retry = max(1, ceil(self._reset_at - now)), max(1, ceil(self._retry_at - now))
        return Decision(False, self.quota.limit, 0, reset, retry)
