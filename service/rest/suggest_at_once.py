"""The short way of /suggest: a plain key press is answered where its head was read, without a task and without waiting.

It answers what it can tell at once and leaves everything else to the application: what is wrong, refused, unusual, or
has to be waited for. What it sends is what the application would have sent.
"""

import logging
import re
import time
from asyncio import AbstractEventLoop, Transport
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from service.addresses import Proxies, origin_of
from service.admission import Admission
from service.caller import Channel, new_request_id
from service.calls import REFUSED, EndedCall, calls_ended
from service.draining import Draining
from service.errors import OverloadedError, ServiceError
from service.limits.policy import Bucket
from service.measures import Measures
from service.overload import Gate
from service.prepared import Prepared
from service.rest.answers import PROBLEM_JSON, Headers, problem_answer
from service.rest.callers import TOKEN_HEADER
from service.rest.door import NO_STORE
from service.rest.sent_at_once import Beginning, SentAtOnce, lines_of
from service.rest.suggest_endpoint import CACHE, known_tags
from service.rest.turn import Turn
from service.search.failures import BackendUnavailable
from service.search.protocol import SearchBackend, Snapshot
from service.suggest import parse
from service.suggesting import Suggesting
from service.under_way import UnderWay, begun, working_on

# What a request's target begins with to come here.
TARGET: Final = b"/suggest?"

# Heads with one of these are the application's: a token to be looked up, a body, another protocol.
_ELSEWHERE: Final = frozenset((TOKEN_HEADER, b"content-length", b"transfer-encoding", b"upgrade", b"expect"))
# What no parser of heads minds in a query string.
_PLAIN: Final = re.compile(rb"[0-9A-Za-z%&=+._~*-]*")
_IF_NONE_MATCH: Final = b"if-none-match"
_UNAVAILABLE: Final = b"HTTP/1.1 503 Service Unavailable\r\n"
_FOUND: Final = b"HTTP/1.1 200 OK\r\n"
_UNCHANGED: Final = b"HTTP/1.1 304 Not Modified\r\n"
_OK: Final = 200
_NOT_MODIFIED: Final = 304
_REMEMBERED_PEERS: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


class SuggestAtOnce:
    """Answers to GET /suggest, ready for the wire."""

    def __init__(
        self,
        *,
        search: SearchBackend,
        suggesting: Suggesting,
        admission: Admission,
        believed: Proxies,
        gate: Gate,
        draining: Draining,
        measures: Measures,
        common: Headers,
        timeout: float,
    ) -> None:
        """Share the application's parts.

        Args:
            search: what is live.
            suggesting: makes and keeps answers.
            admission: counts the calls.
            believed: the configured proxies.
            gate: where it is full, nothing is searched for.
            draining: once begun, the application says that it is the connection's last answer.
            measures: count the calls.
            common: headers of every answer of this path.
            timeout: seconds that a request may take.
        """
        self._search = search
        self._suggesting = suggesting
        self._quota = admission.addresses(Bucket.SUGGEST)
        self._believed = believed
        self._gate = gate
        self._draining = draining
        self._measures = measures
        self._timeout = timeout
        self._common = lines_of((CACHE, *common))
        self._overloaded = problem_answer(OverloadedError())
        told = (*self._overloaded.headers, *common, NO_STORE, (b"content-type", PROBLEM_JSON))
        size = b"content-length: %d\r\n\r\n" % len(self._overloaded.body)
        self._refusal = b"".join((lines_of(told), size, self._overloaded.body))
        self._turn = Turn[EndedCall](self._ended)
        # Looked up once a turn of the event loop, which is much shorter than it may be trusted for.
        self._of_turn: Snapshot | None = None
        self._beginning: Beginning | None = None
        self._proxied = believed.unix or bool(believed.networks)
        self._address_of_peer = lru_cache(_REMEMBERED_PEERS)(lambda peer: origin_of(peer, (), believed).address)

    def answer(
        self,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        peer: str | None,
        servers_own: Sequence[tuple[bytes, bytes]],
    ) -> SentAtOnce | None:
        """The whole answer; None where the application must give it.

        Args:
            target: as requested, from TARGET on.
            headers: as received, names in lower case.
            peer: the address at the other end of the connection.
            servers_own: headers that the server adds to every answer.
        """
        tags = None
        for name, value in headers:
            if name in _ELSEWHERE:
                return None
            if name == _IF_NONE_MATCH:
                tags = value.decode("latin-1") if tags is None else tags
        if self._draining.begun:
            return None
        try:
            if (snapshot := self._of_turn or self._search.at_hand()) is None:
                return None
            return self._answer(snapshot, target[len(TARGET) :], tags, self._address(peer, headers), servers_own)
        except (ServiceError, BackendUnavailable):
            # The application comes to the same end and tells it, with all that belongs to it.
            return None
        except Exception:  # noqa: BLE001 - the application's answer says that something failed, if it fails there too
            _LOG.exception("the short way of /suggest failed")
            return None

    def again(self, raw: bytes, address: str, servers_own: Sequence[tuple[bytes, bytes]]) -> SentAtOnce | None:
        """The answer to a request whose head differs only in its query string from one that was answered before.

        Args:
            raw: the query string.
            address: as that answer named it.
            servers_own: as in `answer`.

        Returns:
            As `answer`; None also where the query string is none that a head is sure to be parsed with.
        """
        try:
            if self._draining.begun or (snapshot := self._of_turn or self._search.at_hand()) is None:
                return None
            kept = self._suggesting.kept(snapshot.stamp, raw)
            if kept is None:
                return self._answer(snapshot, raw, None, address, servers_own) if _PLAIN.fullmatch(raw) else None
            if (counted := self._quota.take(address)) is None:
                return None
            call = EndedCall(new_request_id(), time.monotonic(), _OK)
            return self._found(self._begins(snapshot, servers_own), call, kept, counted, address)
        except (ServiceError, BackendUnavailable):
            return None
        except Exception:  # noqa: BLE001 - as in `answer`, which is asked next and leaves it to the application
            _LOG.exception("the short way of /suggest failed")
            return None

    def send(self, loop: AbstractEventLoop, transport: Transport, sent: SentAtOnce) -> None:
        """Send an answer at the end of the event loop's turn, and tell of it."""
        self._of_turn = sent.snapshot
        self._turn.send(loop, transport, sent.wire, sent.call)

    def flush(self) -> None:
        """Send what waits now."""
        self._turn.flush()

    def _ended(self, calls: Sequence[EndedCall]) -> None:
        self._of_turn = None
        self._suggesting.tell()
        self._quota.tell()
        calls_ended(self._measures, calls, channel=Channel.REST.value, route=Bucket.SUGGEST.value)

    def _answer(
        self,
        snapshot: Snapshot,
        raw: bytes,
        tags: str | None,
        address: str,
        servers_own: Sequence[tuple[bytes, bytes]],
    ) -> SentAtOnce | None:
        request = begun(new_request_id(), self._timeout)
        prepared = self._suggesting.kept(snapshot.stamp, raw)
        if prepared is None and not snapshot.suggests_at_once:
            return None
        # What is kept costs no more than the refusal would: it is given at a full gate too.
        if prepared is None and not self._gate.passes_at_once():
            return self._refused(request, servers_own)
        # Before it is counted: what is wrong with it the application tells, and counts.
        typed = parse(raw) if prepared is None else None
        counted = self._quota.take(address)
        if counted is None:
            return None
        if typed is not None:
            with working_on(request):
                prepared = self._suggesting.at_once(snapshot, raw, typed)
        if prepared is None:
            return None
        call = EndedCall(request.request_id, request.began, _OK)
        call.engine_calls, call.engine_seconds = request.engine_calls, request.engine_seconds
        beginning = self._begins(snapshot, servers_own)
        if tags is None:
            return self._found(beginning, call, prepared, counted, address)
        known = known_tags(tags)
        unchanged = "*" in known or prepared.tag.decode() in known
        self._measures.cache("etag", hit=unchanged)
        if not unchanged:
            return self._found(beginning, call, prepared, counted, None)
        call.status, call.generation = _NOT_MODIFIED, beginning.generation
        told = counted, b"x-request-id: %b\r\netag: %b\r\n\r\n" % (call.request_id.encode(), prepared.tag)
        return SentAtOnce(b"".join((_UNCHANGED, beginning.lines, *told)), call, snapshot)

    def _found(
        self, beginning: Beginning, call: EndedCall, prepared: Prepared, counted: bytes, address: str | None
    ) -> SentAtOnce:
        call.generation = beginning.generation
        own = b"x-request-id: %b\r\n" % call.request_id.encode()
        wire = b"".join((_FOUND, beginning.lines, counted, own, prepared.head, prepared.tail))
        return SentAtOnce(wire, call, beginning.snapshot, address)

    def _refused(self, request: UnderWay, servers_own: Sequence[tuple[bytes, bytes]]) -> SentAtOnce:
        status = self._overloaded.status
        outcome = self._overloaded.outcome or REFUSED
        own = lines_of((*servers_own, (b"x-request-id", request.request_id.encode())))
        wire = b"".join((_UNAVAILABLE, own, self._refusal))
        return SentAtOnce(wire, EndedCall(request.request_id, request.began, status, outcome))

    def _address(self, peer: str | None, headers: list[tuple[bytes, bytes]]) -> str:
        if self._proxied:
            return origin_of(peer, headers, self._believed).address
        return self._address_of_peer(peer)

    def _begins(self, snapshot: Snapshot, servers_own: Sequence[tuple[bytes, bytes]]) -> Beginning:
        beginning = self._beginning
        if beginning is None or beginning.servers_own is not servers_own or beginning.snapshot is not snapshot:
            beginning = self._beginning = Beginning(snapshot, servers_own, self._common)
        return beginning
