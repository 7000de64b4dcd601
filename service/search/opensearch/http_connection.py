"""One keep-alive HTTP/1.1 connection to a node, which sends requests and receives responses as bytes.

It carries one request at a time. After an error or a cancelled request it is closed, so that the remainder of a
response is never read as a part of the next one (E3).
"""

import asyncio
from dataclasses import dataclass
from typing import Final, cast

import httptools

_DELIMITERS: Final = frozenset((b"content-length", b"transfer-encoding"))
_FIRST_FINAL_STATUS: Final = 200


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response.

    Attributes:
        status: its status code.
        content_type: the value of the header.
        warnings: the values of the warning headers.
        body: not decoded.
    """

    status: int
    content_type: str | None
    warnings: tuple[str, ...]
    body: bytes


class HttpConnectionError(OSError):
    """The connection was closed, or received something that is no HTTP response.

    Attributes:
        retryable: whether nothing of a response had been received.
    """

    def __init__(self, text: str, *, retryable: bool) -> None:
        self.retryable = retryable
        super().__init__(text)


class HttpConnection(asyncio.Protocol):
    """A connection.

    Attributes:
        reusable: whether it can carry another request.
        idle_since: when it last became idle, in seconds of the event loop's clock; set by the owner.
    """

    def __init__(self) -> None:
        """Create it unconnected, for `loop.create_connection`."""
        self.reusable = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Response] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._content_type: str | None = None
        self._reset()

    async def send(self, request: bytes) -> Response:
        """Send a request and wait for its response.

        Raises:
            HttpConnectionError: there is none.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise HttpConnectionError("the connection was closed", retryable=True)
        self.reusable = False
        self._reset()
        waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        transport.write(request)
        try:
            return await waiting
        finally:
            self._waiting = None
            if not self.reusable:
                # Also after a cancellation: closing the connection makes the node cancel the request.
                self.abort()

    def abort(self) -> None:
        """Close the connection immediately; a running request fails, and is not retryable."""
        self.reusable = self._retryable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop when the connection is open."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop with received bytes."""
        if self._waiting is None:
            self.abort()  # there is no request
            return
        self._retryable = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the node's response is not HTTP: {type(error).__name__}")

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the event loop when the connection is closed."""
        self.reusable = False
        self._transport = None
        if self._waiting is None or self._waiting.done():
            return
        if error is None and self._has_headers and not self._delimited:
            self._complete()  # a response without a length ends with its connection
        else:
            self._fail("the connection was lost")

    def on_message_begin(self) -> None:
        """Called by the parser at the start of a response."""
        if self._waiting is None or self._waiting.done():
            self.reusable = False  # a second response to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser with a header."""
        name = name.lower()
        if name in _DELIMITERS:
            self._delimited = True
        elif name == b"content-type":
            self._content_type = value.decode("latin-1")
        elif name == b"warning":
            self._warnings.append(value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """Called by the parser after the last header."""
        self._has_headers = True

    def on_body(self, part: bytes) -> None:
        """Called by the parser with a part of the body."""
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """Called by the parser at the end of a response."""
        if self._parser.get_status_code() < _FIRST_FINAL_STATUS:
            self._reset()
            return
        if self._waiting is not None and not self._waiting.done():
            self.reusable = self._parser.should_keep_alive()
            self._complete()

    def _reset(self) -> None:
        self._retryable, self._has_headers, self._delimited = True, False, False
        self._content_type = None
        self._warnings: list[str] = []
        self._parts: list[bytes] = []

    def _complete(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            status = self._parser.get_status_code()
            response = Response(status, self._content_type, tuple(self._warnings), b"".join(self._parts))
            self._waiting.set_result(response)

    def _fail(self, text: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(HttpConnectionError(text, retryable=self._retryable))
        self.abort()
