"""The protocol within bounds of time, heads and connections; what is not even HTTP gets a problem document (E1, E5)."""

import re
from asyncio import TimerHandle, Transport
from functools import lru_cache
from typing import Any, ClassVar, Final

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.errors import InvalidInputError, OverloadedError
from service.http.responses import PROBLEM_JSON, UNDER_WAY
from service.http.security_headers import security_headers
from service.runtime.call_log import NO_ROUTE, call_ended
from service.runtime.caller import Channel, new_request_id
from service.runtime.metrics import NOTHING_MEASURED
from service.runtime.request_context import RequestContext, begun
from service.runtime.wire import encode
from service.server.coalescing_transport import CoalescingTransport
from service.server.connections import Connection, ConnectionBounds, ConnectionTable
from service.server.refusals import refusal

_HEAD_BYTES: Final = 64 * 1024
# What a header has beside its name and value: a colon and a line break.
_AROUND_HEADER: Final = 3
_REMEMBERED_HOSTS: Final = 256
# For so long a refused caller may read why.
_REFUSED_SECONDS: Final = 1.0
_NOT_HTTP: Final = InvalidInputError(
    "The request is not valid HTTP, or its head is too long. Percent-encode # and what is not ASCII in the address."
)
# What RFC 9112, 3.2, lets Host hold: a name, an address or nothing, and a port.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?")


class BoundedProtocol(HttpToolsProtocol):
    """The server's protocol with a limit to a request's head, and refusals that look like all the others."""

    receive_seconds: ClassVar[float] = 20.0
    send_seconds: ClassVar[float] = 20.0

    _connection: Connection | None = None
    _refused = False
    _whole = False
    _begun = 0
    _field_bytes = 0
    _idle_until: float | None = None
    _reads_head = False
    _head_bytes = 0
    _deadline: TimerHandle | None = None
    _taken_by: TimerHandle | None = None
    _running: RequestResponseCycle | None = None
    # What came could not be parsed, and requests that came whole before it are still to be answered.
    _refuses_rest = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A client is there: its first request must come in time."""
        super().connection_made(transport)
        self._coalescing = CoalescingTransport(self.loop, transport)
        self._table = connections_of(self.config)
        self._connection = self._table.add(self.client[0] if self.client else None, self._close_idle)
        if self._connection is None:
            self._refuse_connection()
            return
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, and with it the reason for what is done for it."""
        self._request_is_there()
        if self._connection is not None:
            self._table.remove(self._connection)
        elif self._refused:
            self._table.forget_refused()
        self.resume_writing()
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        running = self._running
        if running is None or running.response_complete:
            return
        # The server tells only the request that came last, and of several that were sent at once another one runs.
        self.pipeline.clear()
        running.disconnected = True
        running.message_event.set()
        request = running.scope.get(UNDER_WAY)
        if isinstance(request, RequestContext):
            request.caller_left()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - as the server says
        self._running = cycle
        cycle.transport = self._coalescing  # type: ignore[assignment] # all of a transport that it uses
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the head has grown too long."""
        if self._refused:
            # Its caller has sent what nobody reads, and has the answer already.
            self.transport.close()
            return
        while data and not self.transport.is_closing() and not self._refuses_rest:
            room = _HEAD_BYTES - self._head_bytes if self._reads_head else _HEAD_BYTES
            if room <= 0:
                self._reads_head = False
                self.send_400_response("")
                return
            self._parse(data[:room])
            data = data[room:]

    def _parse(self, data: bytes) -> None:
        """Take as much as cannot be more than one whole head."""
        at_start, begun = self._whole or not self._begun, self._begun
        self._whole = False
        super().data_received(data)
        if not self._whole and not self._refuses_rest:
            self._await_request()
        begun = self._begun - begun
        if not begun:
            self._head_bytes += len(data)
        else:
            # Where a head began in the middle is not known: it is counted from the next read on, its fields always.
            self._head_bytes = len(data) if at_start and begun == 1 else 0

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._whole = False
        self._begun += 1
        self._reads_head, self._head_bytes, self._field_bytes = True, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the white space around its value (RFC 9110, 5.5), which the parser leaves behind it."""
        self._field_bytes += len(name) + len(value) + _AROUND_HEADER
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """The head is there; what follows is the body's business."""
        self._reads_head = False
        # The parser passes these on as what it could not read.
        if self._field_bytes + len(self.url) > _HEAD_BYTES:
            raise ValueError("the head is too long")
        if not self._names_its_host():
            raise ValueError("not one valid Host")
        if b"#" in self.url:
            raise ValueError("a fragment in the request target")  # RFC 9112, 3.2, knows none
        self._take()

    def _take(self) -> None:
        """Begin with the request, of which the head is there and good."""
        if self._connection is not None:
            self._table.works(self._connection)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._is_whole()
        super().on_message_complete()

    def _is_whole(self) -> None:
        self._whole = True
        self._request_is_there()

    def on_response_complete(self) -> None:
        """The answer is whole: go on with what was sent meanwhile, or wait for more."""
        self._coalescing.flush()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        if self._refuses_rest:
            self._refuse()
            return
        if self._connection is not None:
            self._table.waits(self._connection)
        # One timer a connection, which looks when it goes off whether it was for nothing: one for each answer, set and
        # cancelled, costs more than many an answer.
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self._look_in(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Hang up on a client who asks nothing any more."""
        self.timeout_keep_alive_task = None
        idle = self._idle_until
        if idle is None:
            return
        if (rest := idle - self.loop.time()) > 0:
            self._look_in(rest)
        else:
            super().timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        self._idle_until = None

    def _look_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _close_idle(self) -> None:
        """Make room for another connection."""
        if self.transport.get_write_buffer_size():
            # Its caller does not read: to wait for that would keep the descriptor.
            self.transport.abort()
        else:
            self.transport.close()

    def _refuse_connection(self) -> None:
        """Say that there is no room, and hang up once the caller may have read it."""
        if not self._table.refuse():
            self.transport.abort()
            return
        self._refused = True
        hsts_seconds = getattr(self.config, "hsts_seconds", 0)
        self.transport.write(refusal(OverloadedError(), "Service Unavailable", new_request_id(), hsts_seconds))
        self._deadline = self.loop.call_later(_REFUSED_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered: it has so long for what is on its way."""
        super().pause_writing()
        if self._taken_by is None:
            self._taken_by = self.loop.call_later(self.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read most of it."""
        if self._taken_by is not None:
            self._taken_by.cancel()
            self._taken_by = None
        super().resume_writing()

    def _names_its_host(self) -> bool:
        """Whether there is one valid Host, or none from a client of HTTP/1.0 (RFC 9112, 3.2)."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if not hosts:
            return self.parser.get_http_version() == "1.0"
        return len(hosts) == 1 and _is_host(hosts[0])

    def _await_request(self) -> None:
        # Not put off by what comes: a client that sends a byte now and then would stay for ever.
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.receive_seconds, self.transport.close)

    def _request_is_there(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the server's own words are not sent
        """Refuse what could not be parsed, behind the answers to all that came whole before it, and hang up."""
        unfinished = self.cycle if self.cycle is not None and self.cycle.more_body else None
        if self.pipeline and self.pipeline[0][0] is unfinished:
            self.pipeline.popleft()
        running = self._running
        if running is None or running.response_complete or running is unfinished:
            self._refuse()
        else:
            self._refuses_rest = True
            self._request_is_there()

    def _refuse(self) -> None:
        self._coalescing.flush()
        body = encode(_NOT_HTTP.problem())
        request = begun(new_request_id())
        request.outcome = _NOT_HTTP.code
        head = (
            b"HTTP/1.1 400 Bad Request",
            b"content-type: " + PROBLEM_JSON,
            b"content-length: %d" % len(body),
            b"x-request-id: " + request.request_id.encode(),
            *(b"%s: %s" % header for header in security_headers(getattr(self.config, "hsts_seconds", 0))),
            b"cache-control: no-store",
            b"connection: close",
        )
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + body)
        self.transport.close()
        # No application has seen it, so none tells of it.
        call_ended(NOTHING_MEASURED, request, channel=Channel.REST.value, route=NO_ROUTE, status=_NOT_HTTP.status)


def connections_of(config: Config) -> ConnectionTable:
    """The table of the connections that a server's configuration has; one with the usual bounds where it has none."""
    table: ConnectionTable | None = getattr(config, "connections", None)
    if table is None:
        table = config.connections = ConnectionTable(ConnectionBounds())  # type: ignore[attr-defined] # as ours has it
    return table


@lru_cache(_REMEMBERED_HOSTS)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None
