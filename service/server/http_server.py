"""The HTTP protocol with bounds on heads, times and connections; invalid HTTP gets a problem document (E1, E5).

Plain suggest requests are answered by the fast path, in the protocol itself; the application gets all others.

A request is parsed only once the request before it is answered: pipelined requests wait as bytes, at most one
read, and nothing more is read until then. So a connection has one request in memory, and invalid input is found after
the responses to all requests before it.
"""

import re
from asyncio import TimerHandle, Transport
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.errors import InvalidInputError, OverloadedError, ServiceError
from service.http.messages import (
    NO_STORE,
    OPS_KEY_HEADER,
    REQUEST_CONTEXT,
    TOKEN_HEADER,
    problem_answer,
    security_headers,
)
from service.runtime.caller import Channel
from service.runtime.telemetry import NO_ROUTE, log_call
from service.server.connections import (
    DEFAULT_BOUNDS,
    Connection,
    ConnectionBounds,
    ConnectionTable,
    ReadControl,
    TickTransport,
    TickWriter,
)
from service.suggest.endpoint import TARGET, SuggestFastPath
from shop_directory.runtime.metrics import NO_METRICS
from shop_directory.runtime.request_context import RequestContext, new_request_context, new_request_id

_KEEP_ALIVE_SECONDS: Final = 30
_SHUTDOWN_SECONDS: Final = 10
_HEAD_BYTES: Final = 64 * 1024
# The end of a head, and of a chunked body.
_BLANK_LINE: Final = b"\r\n\r\n"
_CACHED_HOSTS: Final = 256
# How long a client that is refused may go on sending while it reads the reason, and how long a server that stops waits
# for the first request of a connection.
_LAST_SECONDS: Final = 1.0
_NOT_HTTP: Final = InvalidInputError(
    "The request is not valid HTTP, its method is unknown, or its head is too long. Percent-encode # and what is not"
    " ASCII in the address."
)
_REPEATED: Final = InvalidInputError("The header x-api-token or x-ops-key is stated twice. Send each of them once.")
_CHECKED: Final = frozenset((b"host", b"content-length", b"transfer-encoding", TOKEN_HEADER, OPS_KEY_HEADER))
# The values that RFC 9112, 3.2, allows in Host: a name, an address or nothing, and a port.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?")


class ServerConfig(Config):
    """The server's configuration, with the state that the connections of its process share."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        hsts_seconds: int = 0,
        bounds: ConnectionBounds = DEFAULT_BOUNDS,
    ) -> None:
        """Serve an application; port 0 is a free one. Without `hsts_seconds`, no Strict-Transport-Security is sent."""
        super().__init__(
            app,
            workers=1,
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
        self.hsts_seconds = hsts_seconds
        self.connections = ConnectionTable(bounds)
        self.fast_path: SuggestFastPath | None = None
        self.writer = TickWriter()

    def load(self) -> None:
        """Load the application; others than the service, as those of tests, have no fast path."""
        super().load()
        if isinstance(self.loaded_app, FastAPI) and (fast_path := self.loaded_app.state.suggest_fast_path) is not None:
            self.fast_path = fast_path
            self.writer = TickWriter(fast_path.log_responses)


class HttpProtocol(HttpToolsProtocol):
    """The protocol of one connection."""

    config: ServerConfig
    flow: ReadControl

    # For a whole request to arrive, and for a client to read its write buffer.
    receive_seconds: ClassVar[float] = 20.0
    send_seconds: ClassVar[float] = 20.0

    # The entry in the table of connections; None for a refused connection.
    _connection: Connection | None = None
    # The last response is written: what still arrives is discarded.
    _ending = False
    # What has arrived; the bytes from the position on are not parsed yet.
    _received = b""
    _position = 0
    _parsing = False
    # No request has begun to arrive.
    _is_new = True
    _shutting_down = False
    # The last bytes before the position where they may be the beginning of a blank line.
    _tail = b""
    # The bytes of a body with a declared length that are not parsed yet.
    _body_bytes = 0
    _message_complete = False
    _reading_head = False
    _head_bytes = 0
    _fault: InvalidInputError = _NOT_HTTP
    _idle_until: float | None = None
    _receive_timer: TimerHandle | None = None
    _send_timer: TimerHandle | None = None
    _fast_path: SuggestFastPath | None = None
    _fast_path_responded = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Add the connection to the table, or refuse it; its first request must arrive in time."""
        super().connection_made(transport)
        self.flow = ReadControl(transport)
        self._writer = self.config.writer
        self._fast_path = self.config.fast_path
        self._table = self.config.connections
        self._connection = self._table.add(self.client[0] if self.client else None, self._close_idle)
        if self._connection is None:
            self._refuse_connection()
            return
        self._start_receive_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection, and stop the work for a request that is not answered."""
        self._cancel_receive_timer()
        self._drop_received()
        if self._connection is not None:
            self._table.remove(self._connection)
        elif self._ending:
            self._table.release_refusal()
        self.resume_writing()
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        self._stop_running_cycle()

    def _stop_running_cycle(self) -> None:
        running = self.cycle
        if running is None or running.response_complete:
            return
        running.disconnected = True
        # Nothing may follow the last response of a connection, neither this.
        running.waiting_for_100_continue = False
        running.message_event.set()
        request = running.scope.get(REQUEST_CONTEXT)
        if isinstance(request, RequestContext):
            request.caller_left()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - as the server declares it
        if self._shutting_down:
            cycle.keep_alive = False
        # It has all methods that a cycle uses.
        cycle.transport = TickTransport(self.transport, self._writer)  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, as far as they need not wait for a response."""
        if self._ending:
            return
        if not self._received and self._is_whole_head(data):
            # The common case needs no more: what follows arrives with another call.
            self._parse(data)
            return
        self._received = self._received[self._position :] + data if self._received else data
        self._position = 0
        self._parse_received()

    def _is_whole_head(self, data: bytes) -> bool:
        """Whether these bytes are one head, after a request that is answered."""
        return (
            self._message_complete
            and data.find(_BLANK_LINE) == len(data) - len(_BLANK_LINE)
            and len(data) <= _HEAD_BYTES
            and not self._is_unanswered()
        )

    def _parse_received(self) -> None:
        """Parse up to the end of a request that is not answered at once, and read more only when all is parsed.

        Of requests that are answered at once, one is parsed; more of them in the same event-loop tick within a bound
        that all connections share.
        """
        if self._parsing:
            # A response within the loop below, which goes on.
            return
        self._parsing = True
        admitted = True
        while self._position < len(self._received) and not self._is_unanswered() and not self.transport.is_closing():
            if not admitted and not self._table.admit_pipelined():
                self.loop.call_soon(self._parse_received)
                break
            self._parse_slice()
            admitted = False
        self._parsing = False
        if self.transport.is_closing():
            self._drop_received()
        elif self._position < len(self._received):
            self.flow.hold()
        else:
            self._received, self._position = b"", 0
            self.flow.release()

    def _is_unanswered(self) -> bool:
        return self._message_complete and self.cycle is not None and not self.cycle.response_complete

    def _parse_slice(self) -> None:
        """Parse the next bytes, which end where a request may end; refuse a head that has grown too long."""
        received, start = self._received, self._position
        if self._body_bytes:
            end = min(start + self._body_bytes, len(received))
            self._body_bytes -= end - start
        elif self._head_bytes >= _HEAD_BYTES:
            self.send_400_response("")
            return
        else:
            end = self._end_of_blank_line(start, min(start + _HEAD_BYTES - self._head_bytes, len(received)))
        self._position = end
        self._parse(received if end - start == len(received) else received[start:end])

    def _parse(self, data: bytes) -> None:
        """Parse bytes that hold the end of no more than one request."""
        self._message_complete = False
        super().data_received(data)
        if self._message_complete:
            self._body_bytes = 0
            return
        if self._reading_head:
            self._head_bytes += len(data)
        if not self._ending:
            self._start_receive_timer()

    def _end_of_blank_line(self, start: int, limit: int) -> int:
        """The position after the next blank line, which may have begun before `start`; the limit without one.

        Heads and chunked bodies end nowhere else: the parser refuses line breaks that are not CR LF.
        """
        received, tail, self._tail = self._received, self._tail, b""
        if tail and (at := (tail + received[start : min(start + 3, limit)]).find(_BLANK_LINE)) >= 0:
            return start + at + len(_BLANK_LINE) - len(tail)
        if (at := received.find(_BLANK_LINE, start, limit)) >= 0:
            return at + len(_BLANK_LINE)
        self._tail = (tail + received[max(start, limit - 3) : limit])[-3:]
        return limit

    def on_message_begin(self) -> None:
        """Start to count a new head."""
        super().on_message_begin()
        self._is_new = False
        self._reading_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header without the white space after its value (RFC 9110, 5.5), which the parser does not remove."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Check the head, and start the request, or respond to it here."""
        self._reading_head, self._head_bytes = False, 0
        # The parser turns these into its own error, so they end in `send_400_response`.
        self._check_headers()
        if b"#" in self.url:
            raise ValueError("a fragment in the request target")  # RFC 9112, 3.2, does not allow it
        if self._try_fast_path():
            return
        if self._connection is not None:
            self._table.mark_busy(self._connection)
        super().on_headers_complete()

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
        self._writer.write(self.transport, response)
        return True

    def on_message_complete(self) -> None:
        """Stop the receive timer, and complete the request if the fast path has responded to it."""
        self._message_complete = True
        self._cancel_receive_timer()
        if self._fast_path_responded:
            self._fast_path_responded = False
            self._continue()
        else:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Write the response, which the application has completed, and continue."""
        self._writer.flush()
        self._continue()

    def _continue(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._connection is not None:
            self._table.mark_idle(self._connection)
        # One timer per connection, which checks on expiry whether the connection was idle for the whole time: setting
        # and cancelling one for each response costs more than many a response.
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self._start_idle_timer(self.timeout_keep_alive)
        if self._received:
            self._parse_received()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle for the whole time."""
        self.timeout_keep_alive_task = None
        idle_until = self._idle_until
        if idle_until is None:
            return
        if (remaining := idle_until - self.loop.time()) > 0:
            self._start_idle_timer(remaining)
        else:
            super().timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        self._idle_until = None

    def _start_idle_timer(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def shutdown(self) -> None:
        """Close the connection now, or after its response; a new one is given a second for its first request."""
        self._writer.flush()
        self._fast_path = None
        if self._is_new:
            self._shutting_down = True
            self.loop.call_later(_LAST_SECONDS, self._close_new)
        else:
            super().shutdown()

    def _close_new(self) -> None:
        if self._is_new:
            self.transport.close()

    def _close_idle(self) -> None:
        self._writer.flush()
        if self.transport.get_write_buffer_size():
            # The client does not read: `close` would wait for it and keep the descriptor.
            self.transport.abort()
        else:
            self.transport.close()

    def _refuse_connection(self) -> None:
        if not self._table.reserve_refusal():
            self.transport.abort()
            return
        self._end_with(self._refusal(OverloadedError(), new_request_id()))

    def _end_with(self, response: bytes) -> None:
        """Write the last response of the connection, and close it once the client has, or after a second.

        Closing while the client still sends would reset the connection, and a client may not be able to read a response
        before a reset (RFC 9112, 9.6).
        """
        self._ending = True
        self._drop_received()
        self.transport.write(response)
        self.transport.write_eof()
        self.flow.release()
        self.flow.resume_reading()
        self._cancel_receive_timer()
        self._receive_timer = self.loop.call_later(_LAST_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        """Start the send timer: the client reads more slowly than responses are written."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the send timer: the client has read most of the write buffer."""
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
        super().resume_writing()

    def _check_headers(self) -> None:
        """Check Host and the callers' credentials, and note the length of the body.

        ValueError means that a token or key is repeated, so that a proxy may have checked another one; that there is
        not one valid Host, nor none from an HTTP/1.0 client (RFC 9112, 3.2); or that the parser, which stops at an
        upgrade, would take the body for another request.
        """
        hosts, chunked, credentials = 0, False, b""
        for name, value in self.headers:
            if name not in _CHECKED:
                continue
            if name == b"host":
                hosts += 1
                if not _is_host(value):
                    raise ValueError("not a valid Host")
            elif name == b"content-length":
                # The parser has refused anything but a number.
                self._body_bytes = int(value)
            elif name == b"transfer-encoding":
                chunked = True
            elif name in credentials:
                self._fault = _REPEATED
                raise ValueError("a repeated credential")
            else:
                credentials += name
        if hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            raise ValueError("not one Host")
        if (self._body_bytes or chunked) and self.parser.should_upgrade():
            raise ValueError("a body after which the protocol would change")

    def _drop_received(self) -> None:
        self._received, self._position = b"", 0

    def _start_receive_timer(self) -> None:
        # Received bytes do not restart it: a client that sends one byte now and then would stay forever.
        if self._receive_timer is None:
            self._receive_timer = self.loop.call_later(self.receive_seconds, self.transport.close)

    def _cancel_receive_timer(self) -> None:
        if self._receive_timer is not None:
            self._receive_timer.cancel()
            self._receive_timer = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the server's own text is not sent
        """Refuse invalid input, and close the connection: all requests before it are answered."""
        self._writer.flush()
        request = new_request_context(new_request_id())
        request.outcome = self._fault.code
        self._end_with(self._refusal(self._fault, request.request_id))
        self._stop_running_cycle()
        if self._connection is not None:
            self._table.mark_idle(self._connection)
        # The application, which logs all other requests, has not received this one.
        log_call(NO_METRICS, request, channel=Channel.REST.value, route=NO_ROUTE, status=self._fault.status)

    def _refusal(self, error: ServiceError, request_id: str) -> bytes:
        """A problem document as the bytes of a whole response, which is the last one of the connection."""
        security = security_headers(self.config.hsts_seconds)
        return problem_answer(error).to_wire(
            ((b"x-request-id", request_id.encode()), *security, NO_STORE, (b"connection", b"close"))
        )


@lru_cache(_CACHED_HOSTS)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None
