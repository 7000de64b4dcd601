"""The short way of /suggest: a plain key press is answered where its head was read, without a task and without waiting.

It answers what it can tell at once and leaves everything else to the application: what is wrong, refused, unusual, or
has to be waited for. What it sends is what the application would have sent.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from service.addresses import Proxies, origin_of
from service.admission import Admission
from service.caller import Channel, new_request_id
from service.calls import call_ended
from service.draining import Draining
from service.errors import OverloadedError, ServiceError
from service.limits.policy import Bucket
from service.measures import Measures
from service.overload import Gate
from service.prepared import Prepared
from service.rest.answers import JSON, PROBLEM_JSON, Headers, problem_answer, stamp_headers
from service.rest.callers import TOKEN_HEADER
from service.rest.door import NO_STORE
from service.rest.suggest_endpoint import CACHE, known_tags
from service.search.failures import BackendUnavailable
from service.search.protocol import SearchBackend, Snapshot
from service.suggest import parse
from service.suggesting import Suggesting
from service.under_way import UnderWay, begun, working_on

# What a request's target begins with to come here.
TARGET: Final = b"/suggest?"

# Heads with one of these are the application's: a token to be looked up, a body, another protocol.
_ELSEWHERE: Final = frozenset((TOKEN_HEADER, b"content-length", b"transfer-encoding", b"upgrade", b"expect"))
_IF_NONE_MATCH: Final = b"if-none-match"
_UNAVAILABLE: Final = b"HTTP/1.1 503 Service Unavailable\r\n"
_OK: Final = 200
_NOT_MODIFIED: Final = 304
_REMEMBERED_PEERS: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class SentAtOnce:
    """An answer.

    Attributes:
        wire: all of it, as it is sent.
        status: of HTTP.
        request: what is known of the request.
    """

    wire: bytes
    status: int
    request: UnderWay


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
        self._admission = admission
        self._believed = believed
        self._gate = gate
        self._draining = draining
        self._measures = measures
        self._timeout = timeout
        self._common = _lines((CACHE, *common))
        self._overloaded = problem_answer(OverloadedError())
        told = (*self._overloaded.headers, *common, NO_STORE, (b"content-type", PROBLEM_JSON))
        size = b"content-length: %d\r\n\r\n" % len(self._overloaded.body)
        self._refusal = b"".join((_lines(told), size, self._overloaded.body))
        self._of_stamp: tuple[object, bytes] = (None, b"")
        self._proxied = believed.unix or bool(believed.networks)
        self._address_of_peer = lru_cache(_REMEMBERED_PEERS)(lambda peer: origin_of(peer, (), believed).address)

    def answer(
        self,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        peer: str | None,
        servers_own: Iterable[tuple[bytes, bytes]],
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
            if (snapshot := self._search.at_hand()) is None:
                return None
            return self._answer(snapshot, target[len(TARGET) :], tags, self._address(peer, headers), servers_own)
        except (ServiceError, BackendUnavailable):
            # The application comes to the same end and tells it, with all that belongs to it.
            return None
        except Exception:  # noqa: BLE001 - the application's answer says that something failed, if it fails there too
            _LOG.exception("the short way of /suggest failed")
            return None

    def ended(self, sent: SentAtOnce) -> None:
        """Tell of an answer that has been sent."""
        route = Bucket.SUGGEST.value
        call_ended(self._measures, sent.request, channel=Channel.REST.value, route=route, status=sent.status)

    def _answer(
        self, snapshot: Snapshot, raw: bytes, tags: str | None, address: str, servers_own: Iterable[tuple[bytes, bytes]]
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
        counted = self._admission.admit_at_once(address, Bucket.SUGGEST)
        if counted is None:
            return None
        if typed is not None:
            with working_on(request):
                prepared = self._suggesting.at_once(snapshot, raw, typed)
        return None if prepared is None else self._sent(snapshot, request, prepared, tags, (*servers_own, *counted))

    def _refused(self, request: UnderWay, servers_own: Iterable[tuple[bytes, bytes]]) -> SentAtOnce:
        request.outcome = self._overloaded.outcome
        own = (*servers_own, (b"x-request-id", request.request_id.encode()))
        return SentAtOnce(b"".join((_UNAVAILABLE, _lines(own), self._refusal)), self._overloaded.status, request)

    def _sent(
        self, snapshot: Snapshot, request: UnderWay, prepared: Prepared, tags: str | None, headers: Headers
    ) -> SentAtOnce:
        request.generation = snapshot.stamp.generation
        head = (
            _lines(headers),
            self._common,
            self._lines_of_stamp(snapshot),
            b"etag: %b\r\nx-request-id: %b\r\n" % (prepared.tag, request.request_id.encode()),
        )
        unchanged = False
        if tags is not None:
            known = known_tags(tags)
            unchanged = "*" in known or prepared.tag.decode() in known
            self._measures.cache("etag", hit=unchanged)
        if unchanged:
            return SentAtOnce(b"".join((b"HTTP/1.1 304 Not Modified\r\n", *head, b"\r\n")), _NOT_MODIFIED, request)
        return SentAtOnce(b"".join((b"HTTP/1.1 200 OK\r\n", *head, *_body(prepared))), _OK, request)

    def _address(self, peer: str | None, headers: list[tuple[bytes, bytes]]) -> str:
        if self._proxied:
            return origin_of(peer, headers, self._believed).address
        return self._address_of_peer(peer)

    def _lines_of_stamp(self, snapshot: Snapshot) -> bytes:
        stamp, told = self._of_stamp
        if stamp is not snapshot.stamp:
            told = _lines(stamp_headers(snapshot.stamp))
            self._of_stamp = (snapshot.stamp, told)
        return told


def _body(prepared: Prepared) -> tuple[bytes, ...]:
    size = len(prepared.lead) + len(prepared.tail)
    return b"content-type: %b\r\ncontent-length: %d\r\n\r\n" % (JSON, size), prepared.lead, prepared.tail


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])
