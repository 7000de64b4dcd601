"""Writes the responses of one event-loop tick together, and has them logged when all are written.

A write wakes the process that reads it, which costs the system more than the write itself, and nothing for one that is
awake. Log lines are written after all responses of the tick.
"""

from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

# Only an attack brings more in one tick: what waits is bounded, and so is the share of one connection.
_MAX_WAITING: Final = 64


class BatchedWriter(Generic[T]):
    """Responses that wait for the end of the tick, in the order in which they were made."""

    def __init__(self, log: Callable[[Sequence[T]], None]) -> None:
        """Start without any.

        Args:
            log: called with the records of the responses that were written.
        """
        self._log = log
        self._waiting: list[tuple[Transport, bytes, T]] = []

    def send(self, loop: AbstractEventLoop, transport: Transport, wire: bytes, record: T) -> None:
        """Write a response at the end of this tick, before any task that starts later runs.

        Args:
            loop: the loop of the tick.
            transport: what is written to.
            wire: the bytes of the response.
            record: passed to `log` afterwards.
        """
        waiting = self._waiting
        if not waiting:
            loop.call_soon(self.flush)
        waiting.append((transport, wire, record))
        if len(waiting) >= _MAX_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits now: before something else is written, or a connection ends."""
        waiting, self._waiting = self._waiting, []
        for transport, wire, _ in waiting:
            if not transport.is_closing():
                transport.write(wire)
        if waiting:
            self._log([record for _, _, record in waiting])
