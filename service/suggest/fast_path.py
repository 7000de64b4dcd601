"""The fast path of /suggest: a plain request is answered where its head was parsed, without a task and without waiting.

It sends what the responder decides at once and leaves the rest to the application: what has to be waited for, and heads
that are not plain. It sends what the application would have sent. A request that the responder has begun with is handed
over with the steps that are done: the application does not parse or count it again.
"""

import logging
from asyncio import AbstractEventLoop, Transport
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from service.errors import InternalError, OverloadedError
from service.http.callers import TOKEN_HEADER
from service.http.front_door import NO_STORE
from service.http.responses import PROBLEM_JSON, UNDER_WAY, Answer, Headers, problem_answer, stamp_headers
from service.limits.policy import Bucket
from service.runtime.addresses import Proxies, origin_of
from service.runtime.call_log import OK, EndedCall, calls_ended
from service.runtime.caller import Channel, new_request_id
from service.runtime.draining import Draining
from service.runtime.metrics import Metrics
from service.runtime.overload import Gate
from service.runtime.request_context import RequestContext, begun
from service.runtime.wire import entity_tags
from service.search.protocol import Snapshot
from service.suggest.batched_writer import BatchedWriter
from service.suggest.endpoint import CACHE_CONTROL, SUGGEST_REQUEST, answer_of
from service.suggest.responder import Refused, Suggestions, SuggestRequest, SuggestResponder

# What the target of a request begins with to come here.
TARGET: Final = b"/suggest?"

# Heads with one of these are the application's: a token to be looked up, a body, another protocol.
_NOT_PLAIN: Final = frozenset((TOKEN_HEADER, b"content-length", b"transfer-encoding", b"upgrade", b"expect"))
_IF_NONE_MATCH: Final = b"if-none-match"
_OK: Final = b"HTTP/1.1 200 OK\r\n"
_NOT_MODIFIED: Final = b"HTTP/1.1 304 Not Modified\r\n"
_CACHED_PEERS: Final = 10_000
_LOG: Final = logging.getLogger(__name__)

DefaultHeaders = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class RawResponse:
    """A response as bytes.

    Attributes:
        wire: all of it.
        call: what is logged and counted of it.
    """

    wire: bytes
    call: EndedCall


class HeadTemplate:
    """The lines that all suggestions of a stamp and of a second share, made once.

    Attributes:
        snapshot: of the stamp.
        default_headers: the server's own headers of that second.
        lines: the lines of the head behind its first one.
    """

    __slots__ = ("default_headers", "lines", "snapshot")

    def __init__(self, snapshot: Snapshot, default_headers: DefaultHeaders, common: bytes) -> None:
        """Join what is known before the request; `common` are the lines of every response with suggestions."""
        self.snapshot = snapshot
        self.default_headers = default_headers
        self.lines = header_lines((*default_headers, *stamp_headers(snapshot.stamp))) + common


class SuggestFastPath:
    """Responses to GET /suggest, ready for the wire."""

    def __init__(
        self,
        *,
        responder: SuggestResponder,
        trusted: Proxies,
        gate: Gate,
        draining: Draining,
        metrics: Metrics,
        common: Headers,
        timeout: float,
    ) -> None:
        """Share the application's parts.

        Args:
            responder: decides what is answered.
            trusted: the configured proxies.
            gate: where it is full, nothing is searched for.
            draining: once it has begun, the application says that its answer is the connection's last.
            metrics: count the calls.
            common: headers of every answer of this path.
            timeout: seconds that a request may take.
        """
        self._responder = responder
        self._trusted = trusted
        self._gate = gate
        self._draining = draining
        self._metrics = metrics
        self._timeout = timeout
        self._common = common
        self._suggestion_lines = header_lines((CACHE_CONTROL, *common))
        self._overloaded = problem_answer(OverloadedError())
        self._overloaded_rest = self._rest_of(self._overloaded)
        self._writer = BatchedWriter[EndedCall](self._log)
        # Looked up once in an event-loop tick, which is much shorter than the time for which it is trusted.
        self._snapshot: Snapshot | None = None
        self._template: HeadTemplate | None = None
        self._proxied = trusted.unix or bool(trusted.networks)
        self._address_of_peer = lru_cache(_CACHED_PEERS)(lambda peer: origin_of(peer, (), trusted).address)

    def respond(
        self,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        peer: str | None,
        default_headers: DefaultHeaders,
        scope: MutableMapping[str, Any],
    ) -> RawResponse | None:
        """Respond without waiting.

        Args:
            target: as requested, from TARGET on.
            headers: as received, names in lower case.
            peer: the address at the other end of the connection.
            default_headers: headers that the server adds to every response.
            scope: the request's scope in the application; the steps that are done are stored in it.

        Returns:
            The whole response; None where the application must respond.
        """
        if self._draining.begun:
            return None
        tags = None
        for name, value in headers:
            if name in _NOT_PLAIN:
                return None
            if name == _IF_NONE_MATCH and tags is None:
                tags = value.decode("latin-1")
        context = begun(new_request_id(), self._timeout)
        try:
            snapshot = self._snapshot or self._responder.current()
            if snapshot is None:
                return None
            request = SuggestRequest(
                target[len(TARGET) :], context, self._address(peer, headers), tags=entity_tags(tags)
            )
            response = self._responder.respond_now(request, snapshot, self._gate)
            if response is None:
                scope[UNDER_WAY], scope[SUGGEST_REQUEST] = context, request
                return None
            self._snapshot = snapshot
            return self._raw(context, response, default_headers)
        except Exception:  # noqa: BLE001 - an unforeseen fault becomes an answer, as at the front door (E5)
            _LOG.exception("request=%s the fast path of /suggest failed", context.request_id)
            return self._problem(context, problem_answer(InternalError()), default_headers)

    def send(self, loop: AbstractEventLoop, transport: Transport, response: RawResponse) -> None:
        """Send a response at the end of the event-loop tick, and log it then."""
        self._writer.send(loop, transport, response.wire, response.call)

    def flush(self) -> None:
        """Send what waits now."""
        self._writer.flush()

    def _log(self, calls: Sequence[EndedCall]) -> None:
        self._snapshot = None
        self._responder.flush_metrics()
        calls_ended(self._metrics, calls, channel=Channel.REST.value, route=Bucket.SUGGEST.value)

    def _raw(
        self, context: RequestContext, response: Suggestions | Refused, default_headers: DefaultHeaders
    ) -> RawResponse:
        if isinstance(response, Refused):
            # A refusal at a full gate has to cost as little as possible.
            overloaded = isinstance(response.error, OverloadedError)
            answer = self._overloaded if overloaded else answer_of(response)
            return self._problem(context, answer, default_headers, self._overloaded_rest if overloaded else None)
        template = self._template_of(response.snapshot, default_headers)
        own = header_lines((*response.quota, (b"x-request-id", context.request_id.encode())))
        if (cached := response.cached) is None:
            wire = b"".join((_NOT_MODIFIED, template.lines, own, b"etag: %b\r\n\r\n" % response.tag))
            return RawResponse(wire, _ended(context, 304))
        wire = b"".join((_OK, template.lines, own, cached.head, cached.results))
        return RawResponse(wire, _ended(context, 200))

    def _problem(
        self, context: RequestContext, answer: Answer, default_headers: DefaultHeaders, rest: bytes | None = None
    ) -> RawResponse:
        context.outcome = answer.outcome
        line = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n".encode()
        own = header_lines((*default_headers, (b"x-request-id", context.request_id.encode())))
        return RawResponse(b"".join((line, own, rest or self._rest_of(answer))), _ended(context, answer.status))

    def _rest_of(self, answer: Answer) -> bytes:
        """What all responses with this error have in common behind their own lines."""
        content = (b"content-type", PROBLEM_JSON), (b"content-length", b"%d" % len(answer.body))
        return header_lines((*answer.headers, *self._common, NO_STORE, *content)) + b"\r\n" + answer.body

    def _address(self, peer: str | None, headers: list[tuple[bytes, bytes]]) -> str:
        if self._proxied:
            return origin_of(peer, headers, self._trusted).address
        return self._address_of_peer(peer)

    def _template_of(self, snapshot: Snapshot, default_headers: DefaultHeaders) -> HeadTemplate:
        template = self._template
        if template is None or template.default_headers is not default_headers or template.snapshot is not snapshot:
            template = self._template = HeadTemplate(snapshot, default_headers, self._suggestion_lines)
        return template


def header_lines(headers: Headers) -> bytes:
    """Headers as the lines of a head."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def _ended(context: RequestContext, status: int) -> EndedCall:
    return EndedCall(
        context.request_id,
        context.began,
        status,
        context.outcome or OK,
        context.generation,
        context.engine_calls,
        context.engine_seconds,
    )
