"""The protocol within bounds of time, heads and connections; what is not even HTTP gets a problem document (E1, E5)."""

import re
from asyncio import TimerHandle, Transport
from functools import lru_cache
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.caller import Channel, new_request_id
from service.calls import NO_ROUTE, call_ended
from service.errors import InvalidInputError
from service.measures import NOTHING_MEASURED
from service.rest.answers import PROBLEM_JSON, UNDER_WAY
from service.rest.security_headers import security_headers
from service.under_way import UnderWay, begun
from service.wire import encode
from service.written_together import WrittenTogether

_HEAD_BYTES: Final = 64 * 1024
_REMEMBERED_HOSTS: Final = 256
_NOT_HTTP: Final = InvalidInputError(
    "The request is not valid HTTP, or its head is too long. Percent-encode what is not ASCII in the address."
)
# What RFC 9112, 3.2, lets Host hold: a name, an address or nothing, and a port.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?")


class BoundedProtocol(HttpToolsProtocol):
    """The server's protocol with a limit to a request's head, and refusals that look like all the others."""

    receive_seconds: ClassVar[float] = 20.0
    send_seconds: ClassVar[float] = 20.0
    most_connections: ClassVar[int] = 10_000

    _whole = False
    _idle_until: float | None = None
    _reads_head = False
    _head_bytes = 0
    _deadline: TimerHandle | None = None
    _taken_by: TimerHandle | None = None
    _running: RequestResponseCycle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A client is there: its first request must come in time."""
        super().connection_made(transport)
        self._together = WrittenTogether(self.loop, transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, and with it the reason for what is done for it."""
        self._request_is_there()
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
        if isinstance(request, UnderWay):
            request.caller_left()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - as the server says
        self._running = cycle
        cycle.transport = self._together  # type: ignore[assignment] # all of a transport that it uses
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the head has grown too long."""
        self._whole = False
        super().data_received(data)
        if not self._whole:
            self._await_request()
        self._head_bytes += len(data)
        if self._reads_head and self._head_bytes > _HEAD_BYTES:
            self._reads_head = False
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._whole = False
        self._reads_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the white space around its value (RFC 9110, 5.5), which the parser leaves behind it."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """The head is there; what follows is the body's business."""
        self._reads_head = False
        if not self._names_its_host():
            # The parser passes it on as what it could not read.
            raise ValueError("not one valid Host")
        self._take()

    def _take(self) -> None:
        """Begin with the request, of which the head is there and good."""
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
        self._together.flush()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
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
        """Refuse what could not be parsed, and hang up."""
        self._together.flush()
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


@lru_cache(_REMEMBERED_HOSTS)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None
