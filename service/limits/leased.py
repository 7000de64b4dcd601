"""Quotas of /suggest without a question to Redis on each key press: each process takes some units ahead (Q2).

A caller's first key press asks for one unit; quicker callers have more lent, asked for while there still are some, so
that nobody waits. The bounds, with W processes that may each hold M units of a caller, for leases of L seconds:

* No stretch of a window ever holds more than the quota: a unit counts until a window after its lease's end.
* A caller may be refused while up to W * M units of his are unused in processes that he does not ask just then, or on
  their way back. M is a fiftieth of the quota, less for a caller who is slower, and none for one who is slow.
* What is lent comes back up to L seconds late; what was not used is given back when its lease ends, at the latest L
  seconds after that. What a killed process held, or an answer that was lost, comes back with the window.
* A refusal is repeated for up to a second without asking.

What an answer tells as remaining is what the store had after the last question, and what is left at hand: what other
processes took since then is not in it. Reads and reports, and quotas of less than 150, are asked for one by one.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.limits.hand import FEWEST, Hand
from service.limits.lending import Lender
from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, LimiterUnavailable
from service.limits.returns import Returns
from service.measures import NOTHING_MEASURED, Measures
from service.under_way import for_nobody_in_particular

LEASE_SECONDS: Final = 2.0
_SHARE: Final = 50
_MAX_KEYS: Final = 20_000
# After a question that nobody waited for has failed, none is asked for so long: who waits for one finds out.
_QUIET_SECONDS: Final = 1.0
_EVER: Final = float("inf")


class LeasedLimiter:
    """A shared limiter, and what it lent this process."""

    def __init__(
        self,
        shared: Lender,
        seconds: float = LEASE_SECONDS,
        measures: Measures = NOTHING_MEASURED,
        *,
        max_keys: int = _MAX_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold nothing yet.

        Args:
            shared: lends; it belongs to this one.
            seconds: how long a lease lasts.
            measures: are told of each question that no call waits for.
            max_keys: callers that units are held for; any other's are asked for one by one.
            clock: seconds that never go back.
        """
        self._shared = shared
        self._seconds = seconds
        self._measures = measures
        self._max_keys = max_keys
        self._clock = clock
        # In the order of the last question: so the next one to end is always the first.
        self._hands: OrderedDict[str, Hand] = OrderedDict()
        self._returns = Returns(shared, measures, 2 * max_keys)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_until = float("-inf")

    def __len__(self) -> int:
        """How many callers something is known of."""
        return len(self._hands)

    @property
    def degraded(self) -> bool:
        """As the shared one."""
        return self._shared.degraded

    def take(self, key: str, quota: Quota) -> Decision | None:
        """Take one unit from what is at hand; None when nothing is."""
        hand = self._hands.get(key)
        if hand is None or (hand.quota is not quota and hand.quota != quota):
            return None
        now = self._clock()
        decision = hand.take(now)
        if decision is not None and hand.wants_more(now) and now >= self._quiet_until:
            self._ask_ahead(key, hand, now)
        return decision

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there; always asks the shared limiter."""
        most = quota.limit // _SHARE
        if quota.bucket is not Bucket.SUGGEST or most < FEWEST or cost != 1:
            return await self._shared.hit(key, quota, cost)
        now = self._clock()
        hand = self._hand(key, quota, most, now)
        if hand is None:
            return await self._shared.hit(key, quota)
        self._give_back(key, hand, now)
        # While there are some, or some on their way, this one asks for its own alone.
        units = 1 if hand.asking or hand.held else hand.wanted(now)
        self._hands.move_to_end(key)
        if units > 1:
            await self._borrow(hand, key, units, now)
            decision = hand.take(self._clock())
            if decision is not None:
                return decision
        decision = await self._shared.hit(key, quota)
        now = self._clock()
        hand.counted(decision, now)
        if decision.allowed:
            return decision._replace(remaining=decision.remaining + hand.held)
        # What was on its way may have come meanwhile.
        return hand.take(now) or decision

    def sweep(self) -> None:
        """Let go of callers who have stopped and give back what they left; done by itself while there are any."""
        now = self._clock()
        while self._hands:
            key, hand = next(iter(self._hands.items()))
            if hand.ends > now:
                break
            del self._hands[key]
            self._give_back(key, hand, now)

    async def settled(self) -> None:
        """Wait until nothing is under way that no call waits for."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._returns.settled()

    async def close(self) -> None:
        """Give everything back, and close the shared one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._tasks:
            await asyncio.wait(self._tasks)
        for key, hand in self._hands.items():
            self._give_back(key, hand, _EVER)
        self._hands.clear()
        await self._returns.close()
        await self._shared.close()

    def _hand(self, key: str, quota: Quota, most: int, now: float) -> Hand | None:
        """What is known of the caller, made if need be; None when there are too many."""
        hand = self._hands.get(key)
        if hand is not None and hand.quota == quota:
            return hand
        if hand is not None:
            self._give_back(key, hand, _EVER)
        elif len(self._hands) >= self._max_keys:
            return None
        self._hands[key] = hand = Hand(quota, most, self._seconds, now)
        if self._timer is None:
            self._sweep_later()
        return hand

    def _sweep_later(self) -> None:
        with for_nobody_in_particular():
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._swept)

    def _swept(self) -> None:
        self._timer = None
        self.sweep()
        if self._hands:
            self._sweep_later()

    def _give_back(self, key: str, hand: Hand, now: float) -> None:
        self._returns.add(key, hand.lapsed(now))

    def _ask_ahead(self, key: str, hand: Hand, now: float) -> None:
        self._give_back(key, hand, now)
        units = hand.wanted(now)
        self._hands.move_to_end(key)
        if units <= 1:
            return
        # Before the task runs: the next key press must not ask as well.
        hand.asking = True
        # It is for later calls: neither the deadline of this one nor its trace is its.
        with for_nobody_in_particular():
            task = asyncio.get_running_loop().create_task(self._asked_ahead(hand, key, units, now))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _asked_ahead(self, hand: Hand, key: str, units: int, now: float) -> None:
        began, outcome = time.monotonic(), "unavailable"
        try:
            await self._borrow(hand, key, units, now)
            outcome = "ok"
        except LimiterUnavailable:
            self._quiet_until = self._clock() + _QUIET_SECONDS
        finally:
            self._measures.store_call("limiter", "lease", outcome, time.monotonic() - began)

    async def _borrow(self, hand: Hand, key: str, units: int, now: float) -> None:
        hand.asking = True
        try:
            lent = await self._shared.lend(key, hand.quota, units, self._seconds)
        finally:
            hand.asking = False
        hand.lent(lent, now, self._clock())
        if self._hands.get(key) is not hand:
            # It was let go meanwhile: nobody would find these.
            self._give_back(key, hand, _EVER)
