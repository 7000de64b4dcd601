"""A bound on the requests that one worker works on at the same time; further ones are refused early and cheaply.

Without it all requests would wait for each other, until each had waited longer than its deadline.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from service.errors import OverloadedError
from service.runtime.metrics import NO_METRICS, Metrics

# Requests that wait for stores do no work, but all of them continue together when the stores answer.
_WAITING_PER_SLOT: Final = 4


class Gate:
    """The slots for requests in flight."""

    def __init__(self, slots: int, metrics: Metrics = NO_METRICS) -> None:
        """Start with all slots free.

        Args:
            slots: how many requests may be in flight.
            metrics: count the requests in flight.
        """
        self._slots = slots
        self._metrics = metrics
        self._in_flight = 0
        self._suspended = 0
        self._in_tick = 0

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        return self._in_flight

    def admits_in_tick(self) -> bool:
        """Count a request that is answered within this event-loop tick; whether it may cause work.

        The requests of one tick have waited together, although they are answered one by one. So together with those in
        flight, they are bounded by the number of slots.
        """
        if not self._in_tick:
            asyncio.get_running_loop().call_soon(self._end_tick)
        self._in_tick += 1
        return self._in_flight + self._in_tick <= self._slots

    def _end_tick(self) -> None:
        self._in_tick = 0

    def check(self) -> None:
        """Check for a free slot, without taking it.

        Raises:
            OverloadedError: there is none.
        """
        if self._in_flight >= self._slots:
            raise OverloadedError

    def enter(self) -> None:
        """Take a slot, until `leave`.

        Raises:
            OverloadedError: none is free.
        """
        self.check()
        self._in_flight += 1
        self._metrics.in_flight(1)

    def leave(self) -> None:
        """Return a slot."""
        self._in_flight -= 1
        self._metrics.in_flight(-1)

    def suspend(self) -> bool:
        """Return a slot for a while, until `resume`; False where too many have done so already."""
        if self._suspended >= _WAITING_PER_SLOT * self._slots:
            return False
        self._suspended += 1
        self.leave()
        return True

    def resume(self) -> None:
        """Take a slot again after `suspend`, even if none is free: a request in flight is not refused."""
        self._suspended -= 1
        self._in_flight += 1
        self._metrics.in_flight(1)


class GateSlot:
    """The slot of one request."""

    __slots__ = ("_gate", "_held", "_left")

    def __init__(self, gate: Gate) -> None:
        """Take a slot.

        Raises:
            OverloadedError: none is free.
        """
        gate.enter()
        self._gate = gate
        self._held = True
        self._left = False

    def leave(self) -> None:
        """Return the slot for good; idempotent."""
        self._left = True
        if self._held:
            self._held = False
            self._gate.leave()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Within, other requests may use the slot, as this one only waits."""
        if not self._held or not self._gate.suspend():
            yield
            return
        self._held = False
        try:
            yield
        finally:
            self._gate.resume()
            self._held = True
            if self._left:
                self.leave()
