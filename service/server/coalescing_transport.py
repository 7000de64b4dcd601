"""A transport that sends what a response writes within one event-loop tick, its head and body above all, in one write.

Each write costs the system more than most responses cost here, and wakes the process that reads it.
"""

from asyncio import AbstractEventLoop, Transport
from typing import Final

# For a longer body a write of its own costs little.
_MAX_HELD: Final = 64 * 1024


class CoalescingTransport:
    """The transport of a connection, as one response after the other writes to it."""

    def __init__(self, loop: AbstractEventLoop, transport: Transport) -> None:
        """Start with nothing to write.

        Args:
            loop: the loop whose ticks count.
            transport: what is written to.
        """
        self._loop = loop
        self._transport = transport
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write at the end of this tick, or sooner: when the response is complete, or when much is held."""
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += len(data)
        if self._size >= _MAX_HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is held now: before something else is written to the connection, or it ends."""
        if not self._held:
            return
        held, self._held, self._size = self._held, [], 0
        if not self._transport.is_closing():
            self._transport.write(b"".join(held))

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the connection behind what is held."""
        self.flush()
        self._transport.close()
