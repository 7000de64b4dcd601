"""OpenSearch's lease: a document that is changed by compare-and-set, and renewed while its job runs (G4).

It can be acquired if it is free, if its holder has died on this machine, or if it was not renewed for its time to live
by the clock of the waiting job: clocks of two machines are never compared. The engine's sequence number prevents that
two jobs that have read the same document both replace it.

The holder trusts a renewal for two thirds of the time to live, measured by its own clock from before it was sent. The
last third remains for writes that were checked before. A thread renews it: one statement of the state, one request for
all acceptance queries or one rebuild of a typeahead can take longer than a lease may last.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthenticationException, AuthorizationException, OpenSearchException, RequestError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_fixed
from tenacity.stop import StopBaseT

from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseHolder, LeaseLostError, LeaseUnansweredError, acquire_until
from indexer.sinks.opensearch.retries import cause_of, fence

TTL_S: Final = 15.0
LEASE: Final = "lease"
_DOCUMENT_ID: Final = "lease"
_SETTINGS: Final = {"index": {"number_of_shards": 1, "auto_expand_replicas": "0-1", "hidden": True}}
_CREATION_TIMEOUT_S: Final = 15.0
_REFUSALS: Final = (AuthenticationException, AuthorizationException, RequestError)
_TRIES: Final = 3
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LONGEST_PAUSE_S: Final = 0.5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseDocument:
    """The contents of the document; without a renewal the lease is lost after `ttl` seconds.

    `token` is a secret of the holder, a new one for each acquisition, and None while the lease is free. The holder is
    None if the document is damaged, too. `beat` grows with each renewal. `condition` requires the one that was read.
    """

    token: str | None
    holder: LeaseHolder | None
    beat: int
    ttl: float
    condition: Mapping[str, int] = field(default_factory=dict)

    def as_wire(self) -> dict[str, Any]:
        """The document's source."""
        holder = asdict(self.holder) if self.holder else {}
        return {"token": self.token, "beat": self.beat, "ttl": self.ttl, **holder}

    @classmethod
    def from_wire(cls, source: Mapping[str, Any]) -> "LeaseDocument":
        """Parse a source; an invalid one is the lease of an unknown holder, which expires like any other."""
        try:
            token, beat, ttl = source["token"], int(source["beat"]), float(source["ttl"])
            return cls(token, None if token is None else LeaseHolder.from_wire(source), beat, ttl)
        except (KeyError, TypeError, ValueError):
            return cls("unreadable", None, 0, 0.0)


def now() -> float:
    """Seconds of this machine's monotonic clock, including its sleep if the system counts that."""
    return time.clock_gettime(_CLOCK)


class OpenSearchLease:
    """A handle on the lease of one prefix in one cluster."""

    def __init__(self, client: OpenSearch, prefix: str, ttl: float = TTL_S) -> None:
        """After `ttl` seconds without a renewal others may acquire the lease; it is renewed every third of that."""
        self._client = client
        self._index = f"{prefix}-{LEASE}"
        self._ttl = ttl
        # Under a build's load a write waits for seconds in the engine's queue.
        self._limits = {"request_timeout": ttl / 3, "timeout": f"{round(ttl / 3 * 1000)}ms"}
        # Another job's document, and when it was seen first.
        self._watched: LeaseDocument | None = None
        self._since = 0.0
        # The document that was written when the lease was acquired; None while it is not held.
        self._token: str | None = None
        self._lost = False
        self._confirmed = 0.0
        # The unanswered renewal: its beat, and when it was first sent.
        self._sent: dict[int, float] = {}
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def acquire(self, job: str, wait: float) -> None:
        """Acquire the lease, with attempts for `wait` seconds, but at most the ttl while the engine fails.

        The seen state is remembered between calls, so that repeated calls with `wait=0` succeed as well.
        """
        token = secrets.token_hex(16)
        answered = now()

        def attempt() -> None:
            nonlocal answered
            try:
                self._attempt(job, token)
            except LeaseHeldError:
                answered = now()
                raise
            except LeaseUnansweredError as error:
                if now() - answered > self._ttl:
                    raise SinkError(str(error)) from error
                raise

        acquire_until(attempt, wait, min(_LONGEST_PAUSE_S, self._ttl / 10))

    def check(self) -> None:
        """Verify that the last renewal is recent enough, or renew the lease now.

        This detects that the process was suspended, unless that happens right after the check. If the engine does not
        answer, this retries for one ttl: a late success also proves that no other job held the lease.
        """
        if self._token is None:
            raise LeaseLostError("the lease is not held")
        if self._is_fresh():
            return
        with self._lock:
            if self._is_fresh():
                return
            if self._lost:
                raise LeaseLostError("the lease was lost: another job may hold it")
            try:
                self._retry(self._renew, stop_after_delay(self._ttl))
            except LeaseLostError:
                raise
            except SinkError as error:
                self._lost = True
                raise LeaseLostError(f"the lease could not be renewed in time: {error}") from error

    def release(self) -> None:
        """Stop the renewals, and mark the document as free if it is still ours; it is not removed.

        If the engine does not answer, other jobs detect the end of the process, or that the lease expires.
        """
        if self._token is None or self._thread is None:
            return
        self._over.set()
        with self._lock:
            try:
                self._retry(self._free, stop_after_attempt(_TRIES))
            except SinkError as error:
                _log.warning("the lease could not be released: %s", error)
            self._token = None
        self._thread.join()

    def _attempt(self, job: str, token: str) -> None:
        """Attempt to acquire the lease; if the document changes in between, it is read again."""
        for _ in range(_TRIES):
            began = now()
            seen = self._read()
            beat = 0 if seen is None else seen.beat + 1
            document = LeaseDocument(token, LeaseHolder.here(job), beat, self._ttl)
            if seen is not None and not self._is_available(seen, token):
                raise LeaseHeldError(f"another job has the lease: {seen.holder or 'an unknown one'}")
            if self._create(document) if seen is None else self._replace(seen, document):
                self._token, self._lost, self._confirmed, self._sent = token, False, began, {}
                self._over.clear()
                self._thread = threading.Thread(target=self._renew_periodically, name="lease renewal", daemon=True)
                self._thread.start()
                return
        raise LeaseHeldError("other jobs are requesting the lease at the same time")

    def _is_available(self, seen: LeaseDocument, token: str) -> bool:
        # Our own token: the request was carried out, but its answer was lost.
        if seen.token in {None, token} or (seen.holder is not None and seen.holder.is_dead()):
            return True
        if self._watched != seen:
            self._watched, self._since = seen, now()
            return False
        return now() - self._since >= max(self._ttl, seen.ttl)

    def _retry(self, request: Callable[[], None], stop: StopBaseT) -> None:
        unanswered = retry_if_exception_type(LeaseUnansweredError)
        Retrying(retry=unanswered, stop=stop, wait=wait_fixed(self._ttl / 15), reraise=True)(request)

    def _is_fresh(self) -> bool:
        return not self._lost and now() - self._confirmed < self._ttl * 2 / 3

    def _renew_periodically(self) -> None:
        pause = self._until_next()
        while not self._over.wait(pause):
            with self._lock:
                if self._lost or self._over.is_set():
                    return
                try:
                    self._renew()
                    pause = self._until_next()
                except LeaseLostError:
                    return
                except SinkError:
                    pause = self._ttl / 15

    def _until_next(self) -> float:
        return max(0.0, self._confirmed + self._ttl / 3 - now())

    def _renew(self) -> None:
        began = now()
        for _ in range(_TRIES):
            seen = self._own()
            if seen is None:
                self._lost = True
                raise LeaseLostError("the lease was lost: another job holds it, or its document was removed")
            beat = seen.beat
            if beat in self._sent:
                # An unanswered renewal was carried out.
                self._confirmed = self._sent.pop(beat)
                if self._is_fresh():
                    return
            self._sent = {beat + 1: self._sent.get(beat + 1, began)}
            if self._replace(seen, replace(seen, beat=beat + 1)):
                self._confirmed, self._sent = began, {}
                return
        raise LeaseUnansweredError("the lease changes while it is renewed")

    def _free(self) -> None:
        for _ in range(_TRIES):
            seen = self._own()
            if seen is None or self._replace(seen, replace(seen, token=None, holder=None, beat=seen.beat + 1)):
                return

    def _own(self) -> LeaseDocument | None:
        """The document, if it is ours; else None.

        It is read before each write: the effect of a request without an answer is unknown, and in an index that was
        created again another job's document can have the sequence number of ours.
        """
        seen = self._read()
        return seen if seen is not None and seen.token == self._token else None

    def _read(self) -> LeaseDocument | None:
        # Without `ignore` the client would log the expected answer as a failure.
        params = {
            "request_timeout": self._limits["request_timeout"],
            "ignore": HTTPStatus.NOT_FOUND,
            "preference": "_primary",
        }
        answer = _answer_of(lambda: self._client.get(index=self._index, id=_DOCUMENT_ID, params=params))
        if not answer.get("found"):
            return None
        return replace(LeaseDocument.from_wire(answer["_source"]), condition=fence(answer))

    def _create(self, document: LeaseDocument) -> bool:
        """Write the first document, and create its index if that is missing; False if another job was faster."""
        body = {"settings": _SETTINGS, "mappings": {"dynamic": False}}
        params = {"request_timeout": _CREATION_TIMEOUT_S, "ignore": HTTPStatus.BAD_REQUEST}
        answer = _answer_of(lambda: self._client.indices.create(index=self._index, body=body, params=params))
        if "error" in answer and answer["error"].get("type") != "resource_already_exists_exception":
            raise SinkError(f"the index of the lease could not be created: {answer['error'].get('type')}")
        return self._write(document, {"op_type": "create"})

    def _replace(self, seen: LeaseDocument, document: LeaseDocument) -> bool:
        """Replace the document that was read; False if it was replaced in between."""
        return self._write(document, seen.condition)

    def _write(self, document: LeaseDocument, condition: Mapping[str, Any]) -> bool:
        params = {**self._limits, **condition, "ignore": HTTPStatus.CONFLICT}
        body = document.as_wire()
        answer = _answer_of(lambda: self._client.index(index=self._index, id=_DOCUMENT_ID, body=body, params=params))
        return "error" not in answer


def _answer_of(request: Callable[[], Any]) -> Mapping[str, Any]:
    # The message of an error would hold the document and the node's address.
    try:
        answer: Mapping[str, Any] = request()
    except _REFUSALS as error:
        raise SinkError(f"the engine refuses the lease: {cause_of(error)}") from error
    except OpenSearchException as error:
        raise LeaseUnansweredError(f"the engine does not answer for the lease: {cause_of(error)}") from error
    return answer
