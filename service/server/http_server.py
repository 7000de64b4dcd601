"""The HTTP server under the application: how it is set up, and where the fast path of /suggest begins."""

from asyncio import Transport
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI

from service.server.connections import ConnectionBounds, ConnectionTable
from service.server.protocol import BoundedProtocol
from service.suggest.fast_path import TARGET, SuggestFastPath

_KEEP_ALIVE_SECONDS: Final = 30
_SHUTDOWN_SECONDS: Final = 10
_BOUNDS: Final = ConnectionBounds()


class HttpProtocol(BoundedProtocol):
    """The protocol that answers plain suggest requests itself, and passes everything else to the application."""

    _fast_path: SuggestFastPath | None = None
    _answered = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        # The application's own; an application that is wrapped into another one has none.
        self._fast_path = getattr(getattr(self.app, "state", None), "suggest_fast_path", None)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self._answered:
            super().on_message_complete()
            return
        self._answered = False
        self._is_whole()
        self.on_response_complete()

    def shutdown(self) -> None:
        """The server ends: responses that wait are sent before the connection closes."""
        self._flush()
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed, behind the responses to what came before."""
        self._flush()
        super().send_400_response(msg)

    def _take(self) -> None:
        if not self._takes_fast_path():
            super()._take()

    def _takes_fast_path(self) -> bool:
        """Answer a plain suggest request here, if it is one and no earlier request waits for its response."""
        if (
            self._fast_path is None
            or not self.url.startswith(TARGET)
            or (self.cycle is not None and not self.cycle.response_complete)
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.flow.write_paused
            or self.transport.is_closing()
        ):
            return False
        peer = self.client[0] if self.client else None
        # A dictionary that every layer adds to; the server's type names its own keys alone.
        scope = cast("dict[str, Any]", self.scope)
        response = self._fast_path.respond(self.url, self.headers, peer, self.server_state.default_headers, scope)
        if response is None:
            return False
        self._answered = True
        self._fast_path.send(self.loop, self.transport, response)
        return True

    def _flush(self) -> None:
        if self._fast_path is not None:
            self._fast_path.flush()


class ServerConfig(uvicorn.Config):
    """The server's configuration, with what its own refusals say of TLS; workers are handed it as it is.

    Attributes:
        connections: those of the process that serves.
    """

    def __init__(
        self,
        app: FastAPI | str,
        *,
        hsts_seconds: int = 0,
        bounds: ConnectionBounds = _BOUNDS,
        **options: Any,  # noqa: ANN401 - the library's
    ) -> None:
        super().__init__(app, **options)
        self.hsts_seconds = hsts_seconds
        self.connections = ConnectionTable(bounds)


def server_config(
    app: FastAPI | str,
    host: str,
    port: int,
    *,
    workers: int = 1,
    hsts_seconds: int = 0,
    bounds: ConnectionBounds = _BOUNDS,
) -> ServerConfig:
    """How the application is served.

    Args:
        app: the application, or for several workers the name of what makes one, as "module:function".
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        workers: processes.
        hsts_seconds: for how long browsers shall come by TLS only; 0 says nothing of it.
        bounds: of the connections of each process.
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
        # The address in a proxy's header is believed of configured proxies only.
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
