"""A bound to how much one worker works on at once: what comes beyond it is told so early, and costs next to nothing.

Without it, everybody waits behind everybody, until each waits for longer than its deadline and all work is in vain.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from service.errors import OverloadedError
from service.runtime.metrics import NOTHING_MEASURED, Metrics

# Requests that wait for stores work on nothing, but go on all together when the stores answer.
_WAITING_PER_PLACE: Final = 4


class Gate:
    """Lets so many requests work at once."""

    def __init__(self, most: int, metrics: Metrics = NOTHING_MEASURED) -> None:
        """Open the gate.

        Args:
            most: requests at once.
            metrics: are told of each that enters and leaves.
        """
        self._most = most
        self._metrics = metrics
        self._under_way = 0
        self._given_back = 0
        self._in_turn = 0

    @property
    def under_way(self) -> int:
        """How many requests are being worked on."""
        return self._under_way

    @property
    def full(self) -> bool:
        """Whether the next one would be told to come back."""
        return self._under_way >= self._most

    def passes_at_once(self) -> bool:
        """Whether a request may be worked on without giving way to others.

        Those that the event loop found together have waited together, though they are answered one by one: so many of
        them are let in as may work at once.
        """
        if not self._in_turn:
            asyncio.get_running_loop().call_soon(self._turn_ended)
        self._in_turn += 1
        return self._under_way + self._in_turn <= self._most

    def _turn_ended(self) -> None:
        self._in_turn = 0

    def check(self) -> None:
        """Look whether there is room, without taking any.

        Raises:
            OverloadedError: there is none.
        """
        if self.full:
            raise OverloadedError

    def enter(self) -> None:
        """Take a place, until `leave`.

        Raises:
            OverloadedError: all are taken.
        """
        self.check()
        self._under_way += 1
        self._metrics.under_way(1)

    def leave(self) -> None:
        """Give a place back."""
        self._under_way -= 1
        self._metrics.under_way(-1)

    def give_back(self) -> bool:
        """Give a place back for a while; whether that could be done, as only so many may wait outside."""
        if self._given_back >= _WAITING_PER_PLACE * self._most:
            return False
        self._given_back += 1
        self.leave()
        return True

    def take_again(self) -> None:
        """End what `give_back` began; it works even when all places are taken: what was begun is not thrown away."""
        self._given_back -= 1
        self._under_way += 1
        self._metrics.under_way(1)


class Place:
    """The place of one request at the gate."""

    __slots__ = ("_gate", "_inside", "_left")

    def __init__(self, gate: Gate) -> None:
        """Take it.

        Raises:
            OverloadedError: all are taken.
        """
        gate.enter()
        self._gate = gate
        self._inside = True
        self._left = False

    def leave(self) -> None:
        """Give it back for good; more than once changes nothing."""
        self._left = True
        if self._inside:
            self._inside = False
            self._gate.leave()

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Let others have it while the request does nothing but wait."""
        if not self._inside or not self._gate.give_back():
            yield
            return
        self._inside = False
        try:
            yield
        finally:
            self._gate.take_again()
            self._inside = True
            if self._left:
                self.leave()
