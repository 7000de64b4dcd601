"""The HTTP server under the application: how it is set up, and the shortest way to answer a key press."""

from asyncio import Transport
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from service.bounded_protocol import BoundedProtocol
from service.rest.suggest_at_once import TARGET, SuggestAtOnce

_KEEP_ALIVE_SECONDS: Final = 30
_SHUTDOWN_SECONDS: Final = 10
# How a key press begins, and what is behind its target.
_KEY_PRESS: Final = b"GET " + TARGET
_TARGETS_END: Final = b" HTTP/1.1\r\n"
_LONGEST_REMEMBERED: Final = 2_048


class HttpProtocol(BoundedProtocol):
    """The protocol that answers plain key presses itself, and hands everything else to the application."""

    _at_once: SuggestAtOnce | None = None
    _answered = False
    _address: str | None = None
    _begun_in_chunk = 0
    # The last request that was answered at once, if it came alone: its head behind the target, and whose it was.
    _like_before: tuple[bytes, str] | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        # The application's own; one that is wrapped into another has none.
        self._at_once = getattr(getattr(self.app, "state", None), "suggest_at_once", None)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self._like_before is not None and data.startswith(_KEY_PRESS) and self._asks_again(data, *self._like_before):
            return
        self._begun_in_chunk = 0
        self._address = None
        super().data_received(data)
        self._remember(data)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._begun_in_chunk += 1

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self._answered:
            super().on_message_complete()
            return
        self._answered = False
        self._is_whole()
        self.on_response_complete()

    def shutdown(self) -> None:
        """The server ends: what is answered already is sent before the connection closes."""
        self._flush()
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed, behind what was answered before."""
        self._flush()
        super().send_400_response(msg)

    def _take(self) -> None:
        if not self._answers_at_once():
            super()._take()

    def _answers_at_once(self) -> bool:
        """Answer a plain key press here and now, if it is one and nothing that came before is still to be answered."""
        if (
            self._at_once is None
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
        sent = self._at_once.answer(self.url, self.headers, peer, self.server_state.default_headers)
        if sent is None:
            return False
        self._answered = True
        self._address = sent.address
        self._at_once.send(self.loop, self.transport, sent)
        return True

    def _remember(self, data: bytes) -> None:
        """Keep the head of a key press that was all of a chunk: the parser has seen to every byte of it."""
        if self._address is None or not self._whole:
            return
        if self._begun_in_chunk == 1 and len(data) <= _LONGEST_REMEMBERED and data.startswith(_KEY_PRESS):
            self._like_before = (data.partition(_TARGETS_END)[2], self._address)

    def _asks_again(self, data: bytes, rest: bytes, address: str) -> bool:
        """Answer a key press whose head is that of the one before but for its target, without parsing it once more."""
        if (
            self._at_once is None
            or not self._whole
            or (self.cycle is not None and not self.cycle.response_complete)
            or self.flow.write_paused
            or self.transport.is_closing()
        ):
            return False
        line, _, behind = data.partition(_TARGETS_END)
        if behind != rest:
            return False
        sent = self._at_once.again(line[len(_KEY_PRESS) :], address, self.server_state.default_headers)
        if sent is None:
            return False
        self._request_is_there()
        self._at_once.send(self.loop, self.transport, sent)
        self.on_response_complete()
        return True

    def _flush(self) -> None:
        if self._at_once is not None:
            self._at_once.flush()


class ServerConfig(uvicorn.Config):
    """The server's configuration, with what its own refusals say of TLS; workers are handed it as it is."""

    def __init__(self, app: FastAPI | str, *, hsts_seconds: int = 0, **options: Any) -> None:  # noqa: ANN401 - the library's
        super().__init__(app, **options)
        self.hsts_seconds = hsts_seconds


def server_config(app: FastAPI | str, host: str, port: int, *, workers: int = 1, hsts_seconds: int = 0) -> ServerConfig:
    """How the application is served.

    Args:
        app: the application, or for several workers the name of what makes one, as "module:function".
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        workers: processes.
        hsts_seconds: for how long browsers shall come by TLS only; 0 says nothing of it.
    """
    return ServerConfig(
        app,
        hsts_seconds=hsts_seconds,
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
