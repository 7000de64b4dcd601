"""The configuration of the HTTP server, and the protocol that tries the fast path of /suggest first."""

from asyncio import Transport
from typing import Any, Final, cast

from starlette.types import ASGIApp

from service.server.connections import DEFAULT_BOUNDS, ConnectionBounds, ServerConfig
from service.server.protocol import BoundedProtocol
from service.suggest.fast_path import TARGET, SuggestFastPath

_KEEP_ALIVE_SECONDS: Final = 30
_SHUTDOWN_SECONDS: Final = 10


class HttpProtocol(BoundedProtocol):
    """The protocol that answers plain suggest requests itself, and passes other requests to the application."""

    _fast_path: SuggestFastPath | None = None
    _fast_path_responded = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Find the application's fast path."""
        super().connection_made(transport)
        # An application that is wrapped in another one has no such state.
        self._fast_path = getattr(getattr(self.app, "state", None), "suggest_fast_path", None)

    def on_message_complete(self) -> None:
        """Complete the request here if the fast path has responded to it."""
        if not self._fast_path_responded:
            super().on_message_complete()
            return
        self._fast_path_responded = False
        self._mark_message_complete()
        self.on_response_complete()

    def shutdown(self) -> None:
        """Send the responses that wait for the end of the tick before the connection closes."""
        self._flush()
        self._fast_path = None
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid input after the responses to the requests before it."""
        self._flush()
        super().send_400_response(msg)

    def _start_request(self) -> None:
        if not self._try_fast_path():
            super()._start_request()

    def _try_fast_path(self) -> bool:
        """Respond to a plain suggest request here."""
        if (
            self._fast_path is None
            or not self.url.startswith(TARGET)
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.flow.write_paused
            or self.transport.is_closing()
        ):
            return False
        peer = self.client[0] if self.client else None
        # The server's type has its own keys only, but every layer adds to this dictionary.
        scope = cast("dict[str, Any]", self.scope)
        response = self._fast_path.respond(self.url, self.headers, peer, self.server_state.default_headers, scope)
        if response is None:
            return False
        self._fast_path_responded = True
        self._fast_path.send(self.loop, self.transport, response)
        return True

    def _flush(self) -> None:
        if self._fast_path is not None:
            self._fast_path.flush()


def server_config(
    app: ASGIApp | str,
    host: str,
    port: int,
    *,
    workers: int = 1,
    hsts_seconds: int = 0,
    bounds: ConnectionBounds = DEFAULT_BOUNDS,
) -> ServerConfig:
    """The configuration by which an application is served.

    Args:
        app: the application, or for several workers the name of its factory, as "module:function".
        host: address to listen on.
        port: port to listen on; 0 chooses a free one.
        workers: number of processes.
        hsts_seconds: max-age of Strict-Transport-Security; 0 omits the header.
        bounds: on the connections of each process.
    """
    return ServerConfig(
        app,
        hsts_seconds=hsts_seconds,
        bounds=bounds,
        factory=isinstance(app, str),
        workers=workers,
        host=host,
        port=port,
        loop="uvloop",
        http=HttpProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # `service.runtime.caller` reads these headers, from trusted proxies only.
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
