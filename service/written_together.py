"""What an answer writes within one turn of the event loop, its head and its body above all, goes out in one write.

Each write costs the system more than most answers cost here, and wakes whoever reads it.
"""

from asyncio import AbstractEventLoop, Transport
from typing import Final

# A body that is as long as this alone costs more than a write of its own.
_MOST: Final = 64 * 1024


class WrittenTogether:
    """A connection's transport, as one answer after the other writes to it."""

    def __init__(self, loop: AbstractEventLoop, transport: Transport) -> None:
        """Hold nothing yet.

        Args:
            loop: whose turns count.
            transport: to be written to.
        """
        self._loop = loop
        self._transport = transport
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write at the end of this turn, or sooner: when the answer is whole, or when it is much."""
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += len(data)
        if self._size >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Write what is held now: before anything else is written past this, or the connection ends."""
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
