"""Writes the responses of one event-loop tick together, and logs them after all of them are written.

A write wakes the process that reads, which costs more than the write itself; a process that is awake already costs
nothing. So the responses are written without other work in between.
"""

from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

# Bounds the waiting responses, and the share of one connection in a tick. Ordinary load stays far below.
_MAX_WAITING: Final = 64


class BatchedWriter(Generic[T]):
    """A queue of responses that are written at the end of the tick, in the order of `send`."""

    def __init__(self, log: Callable[[Sequence[T]], None]) -> None:
        """Start empty.

        Args:
            log: called with the records of written responses.
        """
        self._log = log
        self._waiting: list[tuple[Transport, bytes, T]] = []

    def send(self, loop: AbstractEventLoop, transport: Transport, wire: bytes, record: T) -> None:
        """Write a response at the end of this tick, before any task that starts later runs.

        Args:
            loop: the event loop.
            transport: the transport of the connection.
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
        """Write the waiting responses now: before other bytes are written, or before a connection closes."""
        waiting, self._waiting = self._waiting, []
        for transport, wire, _ in waiting:
            if not transport.is_closing():
                transport.write(wire)
        if waiting:
            self._log([record for _, _, record in waiting])
