"""A transport that joins the writes of one event-loop tick: a response's head and body are sent in one write.

A write is a system call, which costs more than most responses, and it wakes the process that reads.
"""

from asyncio import AbstractEventLoop, Transport
from typing import Final

# For a longer body, the cost of another write is small.
_MAX_BUFFERED: Final = 64 * 1024


class CoalescingTransport:
    """The transport of a connection, for the responses that are written to it one after the other."""

    def __init__(self, loop: AbstractEventLoop, transport: Transport) -> None:
        """Start with an empty buffer.

        Args:
            loop: the event loop of the transport.
            transport: receives the joined writes.
        """
        self._loop = loop
        self._transport = transport
        self._buffer: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write at the end of this tick, or when `flush` is called, or when 64 KiB are buffered."""
        if not self._buffer:
            self._loop.call_soon(self.flush)
        self._buffer.append(data)
        self._size += len(data)
        if self._size >= _MAX_BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write the buffer now: before other bytes are written to the connection, or before it closes."""
        if not self._buffer:
            return
        buffered, self._buffer, self._size = self._buffer, [], 0
        if not self._transport.is_closing():
            self._transport.write(b"".join(buffered))

    def is_closing(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Write the buffer, and close the connection."""
        self.flush()
        self._transport.close()
