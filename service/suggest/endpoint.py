"""GET /suggest over HTTP: the fast path of plain requests, and the ASGI endpoint of all others.

The fast path responds to a plain request as soon as its head is parsed, without a task or waiting. It leaves requests
to the endpoint that have to wait or whose head is not plain, and the endpoint continues them after the steps that are
done, so it neither parses nor counts them again.
"""

import logging
from asyncio import Event
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any, Final

from starlette.requests import Request
from starlette.types import Scope

from service.errors import InternalError, OverloadedError
from service.http.gate import Gate
from service.http.messages import (
    JSON,
    NO_STORE,
    REQUEST_CONTEXT,
    TOKEN_HEADER,
    Answer,
    Endpoint,
    Headers,
    entity_tags,
    header,
    header_lines,
    http_caller,
    problem_answer,
    request_context_of,
    stamp_headers,
    status_line,
)
from service.limits.policy import Bucket
from service.runtime.caller import Channel, Proxies, origin_of
from service.runtime.telemetry import log_calls
from service.suggest.responder import Refused, Suggestions, SuggestRequest, SuggestResponder
from shop_directory.runtime.metrics import Metrics
from shop_directory.runtime.request_context import RequestContext, new_request_context, new_request_id
from shop_directory.search.protocol import Snapshot

CACHE_CONTROL: Final = (b"cache-control", b"public, max-age=3")
# The key of a suggest request in its scope, where the fast path has started it.
SUGGEST_REQUEST: Final = "shop_directory.suggest_request"
# The prefix of the request targets that the fast path takes.
TARGET: Final = b"/suggest?"

# Heads with one of these headers are left to the application: a token to look up, a body, another protocol.
_NOT_PLAIN: Final = frozenset((TOKEN_HEADER, b"content-length", b"transfer-encoding", b"upgrade", b"expect"))
_IF_NONE_MATCH: Final = b"if-none-match"
_OK: Final = b"HTTP/1.1 200 OK\r\n"
_NOT_MODIFIED: Final = b"HTTP/1.1 304 Not Modified\r\n"
_CACHED_PEERS: Final = 10_000
_LOG: Final = logging.getLogger(__name__)

DefaultHeaders = Sequence[tuple[bytes, bytes]]


class SuggestFastPath:
    """Responds to GET /suggest with bytes for the transport."""

    def __init__(
        self,
        *,
        responder: SuggestResponder,
        trusted: Proxies,
        gate: Gate,
        draining: Event,
        metrics: Metrics,
        common: Headers,
        timeout: float,
    ) -> None:
        """Once `draining` is set the application answers, which then closes the connection.

        `common` are headers of all responses of /suggest. A request may take `timeout` seconds.
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
        self._overloaded_tail = self._problem_tail(self._overloaded)
        self._completed: list[RequestContext] = []
        # Looked up once in an event-loop tick, which is much shorter than the time for which a snapshot is valid.
        self._snapshot: Snapshot | None = None
        self._shared: tuple[DefaultHeaders, Snapshot, bytes] | None = None
        self._proxied = trusted.unix or bool(trusted.networks)
        self._address_of_peer = lru_cache(_CACHED_PEERS)(lambda peer: origin_of(peer, (), trusted).address)

    def respond(
        self,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        peer: str | None,
        default_headers: DefaultHeaders,
        scope: MutableMapping[str, Any],
    ) -> bytes | None:
        """The whole response, made without waiting; None where the application must respond.

        The target starts with TARGET, the headers have names in lower case, and `default_headers` are those that the
        server adds to all responses. Finished steps are stored in the ASGI scope for the application. `log_responses`
        must follow when the response is written.
        """
        if self._draining.is_set():
            return None
        tags = None
        for name, value in headers:
            if name in _NOT_PLAIN:
                return None
            if name == _IF_NONE_MATCH and tags is None:
                tags = value.decode("latin-1")
        context = new_request_context(new_request_id(), self._timeout)
        try:
            snapshot = self._snapshot or self._responder.current()
            if snapshot is None:
                return None
            request = SuggestRequest(
                target[len(TARGET) :], context, self._address(peer, headers), tags=entity_tags(tags)
            )
            response = self._responder.respond_now(request, snapshot, self._gate.admits_in_tick)
            if response is None:
                scope[REQUEST_CONTEXT], scope[SUGGEST_REQUEST] = context, request
                return None
            self._snapshot = snapshot
            return self._encode(context, response, default_headers)
        except Exception:  # noqa: BLE001 - an unforeseen fault becomes an answer, as in the middleware (E5)
            _LOG.exception("request=%s the fast path of /suggest failed", context.request_id)
            return self._encode_problem(context, problem_answer(InternalError()), default_headers)

    def log_responses(self) -> None:
        """Count and log the responses since the last time: those of one event-loop tick, once they are written."""
        self._snapshot = None
        if completed := self._completed:
            self._completed = []
            self._responder.flush_metrics()
            log_calls(self._metrics, completed, channel=Channel.REST.value, route=Bucket.SUGGEST.value)

    def _encode(
        self, context: RequestContext, response: Suggestions | Refused, default_headers: DefaultHeaders
    ) -> bytes:
        if isinstance(response, Refused):
            # A refusal at a full gate must be cheap, so its bytes are made once.
            overloaded = isinstance(response.error, OverloadedError)
            answer = self._overloaded if overloaded else http_answer(response)
            return self._encode_problem(context, answer, default_headers, self._overloaded_tail if overloaded else None)
        shared = self._shared_lines(response.snapshot, default_headers)
        own = header_lines((*response.quota, (b"x-request-id", context.request_id.encode())))
        cached = response.cached
        context.status = 304 if cached is None else 200
        self._completed.append(context)
        if cached is None:
            return b"".join((_NOT_MODIFIED, shared, own, b"etag: %b\r\n\r\n" % response.tag))
        return b"".join((_OK, shared, own, cached.head, cached.results))

    def _encode_problem(
        self, context: RequestContext, answer: Answer, default_headers: DefaultHeaders, tail: bytes | None = None
    ) -> bytes:
        context.outcome = answer.outcome
        own = header_lines((*default_headers, (b"x-request-id", context.request_id.encode())))
        context.status = answer.status
        self._completed.append(context)
        return b"".join((status_line(answer.status), own, tail or self._problem_tail(answer)))

    def _problem_tail(self, answer: Answer) -> bytes:
        """The part of a problem that does not depend on the request: more lines of the head, and the body."""
        return header_lines((*answer.headers, *self._common, NO_STORE, *answer.content_headers)) + b"\r\n" + answer.body

    def _address(self, peer: str | None, headers: list[tuple[bytes, bytes]]) -> str:
        if self._proxied:
            return origin_of(peer, headers, self._trusted).address
        return self._address_of_peer(peer)

    def _shared_lines(self, snapshot: Snapshot, default_headers: DefaultHeaders) -> bytes:
        """The lines of a head that all suggestions of one stamp and one second share, after the status line."""
        shared = self._shared
        if shared is None or shared[0] is not default_headers or shared[1] is not snapshot:
            lines = header_lines((*default_headers, *stamp_headers(snapshot.stamp))) + self._suggestion_lines
            shared = self._shared = default_headers, snapshot, lines
        return shared[2]


def suggest_endpoint(responder: SuggestResponder, trusted: Proxies) -> Endpoint:
    """The endpoint of a responder; the caller's address is read from headers of `trusted` proxies."""

    async def answer(http_request: Request) -> Answer:
        scope = http_request.scope
        request: SuggestRequest = scope.get(SUGGEST_REQUEST) or _request_of(scope, trusted)
        try:
            response = await responder.respond(request)
        finally:
            responder.flush_metrics()
        return http_answer(response)

    return Endpoint(("GET", "HEAD"), answer)


def http_answer(response: Suggestions | Refused) -> Answer:
    """A response as an HTTP answer."""
    if isinstance(response, Refused):
        return problem_answer(response.error, (*stamp_headers(response.stamp), *response.quota))
    headers = (CACHE_CONTROL, (b"etag", response.tag), *stamp_headers(response.snapshot.stamp), *response.quota)
    if response.cached is None:
        return Answer(304, b"", None, headers)
    return Answer(200, response.cached.query + response.cached.results, JSON, headers)


def _request_of(scope: Scope, trusted: Proxies) -> SuggestRequest:
    caller = http_caller(scope, Channel.REST, trusted)
    tags = entity_tags(header(scope["headers"], b"if-none-match"))
    return SuggestRequest(scope["query_string"], request_context_of(scope), caller.address, caller.token, tags)
