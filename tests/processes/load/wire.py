"""One keep-alive connection by hand, with as little between it and the socket as there can be."""

import asyncio
import re
from dataclasses import dataclass
from typing import Final

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class ConnectionCutError(Exception):
    """The connection ended before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came; the head ends before the empty line."""

    status: int
    head: bytes
    body: bytes


class Wire(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Raw] | None = None
        self._came = bytearray()
        self.closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        end = self._came.find(_END)
        if end < 0 or self._waiting is None:
            return
        head = bytes(self._came[:end])
        length = _LENGTH.search(head)
        whole = end + len(_END) + (int(length[1]) if length else 0)
        if len(self._came) < whole:
            return
        body = bytes(self._came[end + len(_END) : whole])
        del self._came[:whole]
        waiting, self._waiting = self._waiting, None
        if b"connection: close" in head.lower():
            self.close()
        if not waiting.done():
            waiting.set_result(Raw(int(head[9:12]), head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionCutError(f"{type(exc).__name__}, {len(self._came)} bytes came"))

    def ask(self, request: bytes) -> asyncio.Future[Raw]:
        """Send a whole request; its answer, or ConnectionCutError."""
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        if self.closed:
            self._waiting.set_exception(ConnectionCutError("closed while no request was sent"))
        else:
            self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()


async def connected(port: int) -> Wire:
    _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return wire
