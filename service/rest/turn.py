"""The answers that one turn of the event loop finds: written together, and told of when all of them are out.

A write wakes whoever reads it, which costs the system more than the writing; one that is awake already costs nothing.
And nobody waits for what is written down of others.
"""

from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

# More than one turn finds but under attack: what waits is bounded, and so is how much of it is one connection's.
_MOST: Final = 64


class Turn(Generic[T]):
    """Answers that wait for the end of the turn, in the order in which they were found."""

    def __init__(self, tell: Callable[[list[T]], None]) -> None:
        """Begin without any.

        Args:
            tell: is told of the answers that were written.
        """
        self._tell = tell
        self._waiting: list[tuple[Transport, bytes, T]] = []

    def send(self, loop: AbstractEventLoop, transport: Transport, wire: bytes, told: T) -> None:
        """Write an answer at the end of this turn, before anything that is begun from now on.

        Args:
            loop: whose turn it is.
            transport: to be written to.
            wire: the answer, as it is sent.
            told: what is told of it afterwards.
        """
        waiting = self._waiting
        if not waiting:
            loop.call_soon(self.flush)
        waiting.append((transport, wire, told))
        if len(waiting) >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Write what waits now: before something else is written, or a connection ends."""
        waiting, self._waiting = self._waiting, []
        for transport, wire, _ in waiting:
            if not transport.is_closing():
                transport.write(wire)
        if waiting:
            self._tell([told for _, _, told in waiting])
