"""A bound to how much one worker works on at once: what comes beyond it is told so early, and costs next to nothing.

Without it, everybody waits behind everybody, until each waits for longer than its deadline and all work is in vain.
"""

import asyncio

from service.errors import OverloadedError
from service.measures import NOTHING_MEASURED, Measures


class Gate:
    """Lets so many requests work at once."""

    def __init__(self, most: int, measures: Measures = NOTHING_MEASURED) -> None:
        """Open the gate.

        Args:
            most: requests at once.
            measures: are told of each that enters and leaves.
        """
        self._most = most
        self._measures = measures
        self._under_way = 0
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
        self._measures.under_way(1)

    def leave(self) -> None:
        """Give a place back."""
        self._under_way -= 1
        self._measures.under_way(-1)
