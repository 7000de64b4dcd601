"""The HTTP server under the application: limits, timeouts, and problem documents for what is not even HTTP (E1, E5)."""

from asyncio import TimerHandle, Transport
from typing import ClassVar, Final

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.caller import new_request_id
from service.errors import InvalidInputError
from service.rest.answers import PROBLEM_JSON
from service.wire import encode

_KEEP_ALIVE_SECONDS: Final = 30
_SHUTDOWN_SECONDS: Final = 10
_HEAD_BYTES: Final = 64 * 1024
_NOT_HTTP: Final = InvalidInputError(
    "The request is not valid HTTP, or its head is too long. Percent-encode what is not ASCII in the address."
)


class HttpProtocol(HttpToolsProtocol):
    """The server's protocol with a limit to a request's head, and refusals that look like all the others."""

    receive_seconds: ClassVar[float] = 20.0

    _reads_head = False
    _head_bytes = 0
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A client is there: its first request must come in time."""
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._request_is_there()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the head has grown too long."""
        self._await_request()
        super().data_received(data)
        self._head_bytes += len(data)
        if self._reads_head and self._head_bytes > _HEAD_BYTES:
            self._reads_head = False
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._await_request()
        self._reads_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the white space around its value (RFC 9110, 5.5), which the parser leaves behind it."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """The head is there; what follows is the body's business."""
        self._reads_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._request_is_there()
        super().on_message_complete()

    def _await_request(self) -> None:
        # Not put off by what comes: a client that sends a byte now and then would stay for ever.
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.receive_seconds, self.transport.close)

    def _request_is_there(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the server's own words are not sent
        """Refuse what could not be parsed, and hang up."""
        body = encode(_NOT_HTTP.problem())
        head = (
            b"HTTP/1.1 400 Bad Request",
            b"content-type: " + PROBLEM_JSON,
            b"content-length: %d" % len(body),
            b"x-request-id: " + new_request_id().encode(),
            b"x-content-type-options: nosniff",
            b"cache-control: no-store",
            b"connection: close",
        )
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + body)
        self.transport.close()


def server_config(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """How the application is served.

    Args:
        app: the application.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http=HttpProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # The address in a proxy's header is believed of configured proxies only.
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
