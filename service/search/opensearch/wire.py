"""One kept-alive HTTP/1.1 connection to a node: a request goes out as bytes, its answer comes back as bytes.

It carries one request at a time, and one that broke or was given up in the middle carries no other: what is left of an
answer is never taken for a part of the next one (E3).
"""

import asyncio
from dataclasses import dataclass
from typing import Final, cast

import httptools

_DELIMITED: Final = frozenset((b"content-length", b"transfer-encoding"))
_INFORMATIONAL: Final = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer.

    Attributes:
        status: its status code.
        content_type: as the node says it.
        warnings: the node's remarks about the request.
        body: not decoded.
    """

    status: int
    content_type: str | None
    warnings: tuple[str, ...]
    body: bytes


class WireBrokenError(OSError):
    """The connection ended, or what came over it was no answer.

    Attributes:
        silent: whether nothing of an answer had come.
    """

    def __init__(self, text: str, *, silent: bool) -> None:
        self.silent = silent
        super().__init__(text)


class Wire(asyncio.Protocol):
    """A connection.

    Attributes:
        reusable: whether it can carry another request.
        idle_since: when it last became free, in seconds of the event loop's clock; for whoever keeps it.
    """

    def __init__(self) -> None:
        """Not connected yet: the event loop does that."""
        self.reusable = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Reply] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._content_type: str | None = None
        self._expect()

    async def ask(self, request: bytes) -> Reply:
        """Send a request and wait for its answer.

        Raises:
            WireBrokenError: there is none.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise WireBrokenError("the connection was closed", silent=True)
        self.reusable = False
        self._expect()
        waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        transport.write(request)
        try:
            return await waiting
        finally:
            self._waiting = None
            if not self.reusable:
                # Also where nobody waits any more: the node learns of it by the connection's end.
                self.abort()

    def abort(self) -> None:
        """Close it at once, whatever is under way: that fails, and is not for asking again."""
        self.reusable = self._silent = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The event loop has connected it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """A part of an answer has come."""
        if self._waiting is None:
            self.abort()  # nothing was asked
            return
        self._silent = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the node's answer is no HTTP: {type(error).__name__}")

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        self.reusable = False
        self._transport = None
        if self._waiting is None or self._waiting.done():
            return
        if error is None and self._headed and not self._delimited:
            self._finish()  # an answer of no stated length ends with its connection
        else:
            self._fail("the connection was lost")

    def on_message_begin(self) -> None:
        """An answer begins (the parser's call, as the others below)."""
        if self._waiting is None or self._waiting.done():
            self.reusable = False  # more than was asked for: what follows belongs to nobody

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of the answer."""
        name = name.lower()
        if name in _DELIMITED:
            self._delimited = True
        elif name == b"content-type":
            self._content_type = value.decode("latin-1")
        elif name == b"warning":
            self._warnings.append(value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """All headers have come."""
        self._headed = True

    def on_body(self, part: bytes) -> None:
        """Some of the body has come."""
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """The whole answer has come."""
        if self._parser.get_status_code() < _INFORMATIONAL:
            self._expect()
            return
        if self._waiting is not None and not self._waiting.done():
            self.reusable = self._parser.should_keep_alive()
            self._finish()

    def _expect(self) -> None:
        self._silent, self._headed, self._delimited = True, False, False
        self._content_type = None
        self._warnings: list[str] = []
        self._parts: list[bytes] = []

    def _finish(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            reply = Reply(
                self._parser.get_status_code(), self._content_type, tuple(self._warnings), b"".join(self._parts)
            )
            self._waiting.set_result(reply)

    def _fail(self, text: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(WireBrokenError(text, silent=self._silent))
        self.abort()
