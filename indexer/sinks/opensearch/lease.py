"""OpenSearch's lease: a document that is changed by compare-and-set, and renewed while its job runs (G4).

It can be acquired if it is free, if its holder has died on this machine, or if it was not renewed for its time to live
by the clock of the waiting job: clocks of two machines are never compared.
"""

import secrets
from typing import Final, NamedTuple

from opensearchpy import OpenSearch

from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseLostError, LeaseUnansweredError, acquire_until
from indexer.sinks.lease_holder import LeaseHolder
from indexer.sinks.opensearch.lease_document import LeaseDocument, LeaseStore, SeenLease
from indexer.sinks.opensearch.lease_tenure import Tenure, now

TTL_S: Final = 15.0
_LONGEST_PAUSE_S: Final = 0.5
_TRIES: Final = 3


class _Watched(NamedTuple):
    """A state of the document, and when it was seen first."""

    token: str | None
    seq_no: int
    since: float


class OpenSearchLease:
    """A handle on the lease of one prefix in one cluster."""

    def __init__(self, client: OpenSearch, prefix: str, ttl: float = TTL_S) -> None:
        """Prepare; nothing is requested. The client is also used by a thread; its own timeouts don't matter.

        After `ttl` seconds without a renewal others may acquire the lease; it is renewed every third of that.
        """
        # Under a build's load a write waits for seconds in the engine's queue.
        self._store = LeaseStore(client, prefix, timeout=ttl / 3)
        self._ttl = ttl
        self._watched: _Watched | None = None
        self._tenure: Tenure | None = None

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

        This detects that the process was suspended, unless that happens right after the check.
        """
        if self._tenure is None:
            raise LeaseLostError("the lease is not held")
        self._tenure.check()

    def release(self) -> None:
        """Mark the document as free; it is not removed."""
        if self._tenure is not None:
            tenure, self._tenure = self._tenure, None
            tenure.end()

    def _attempt(self, job: str, token: str) -> None:
        """Attempt to acquire the lease; if the document changes meanwhile, it is read again."""
        for _ in range(_TRIES):
            began = now()
            seen = self._store.read()
            beat = 0 if seen is None else seen.document.beat + 1
            document = LeaseDocument(token, LeaseHolder.here(job), beat, self._ttl)
            if seen is None:
                acquired = self._store.create(document)
            elif self._is_available(seen, token):
                acquired = self._store.replace(seen, document)
            else:
                raise LeaseHeldError(f"another job has the lease: {seen.document.holder or 'an unknown one'}")
            if acquired:
                self._tenure = Tenure(self._store, document, began)
                return
        raise LeaseHeldError("other jobs are requesting the lease at the same time")

    def _is_available(self, seen: SeenLease, token: str) -> bool:
        document = seen.document
        # Our own token: the request was carried out, but its answer was lost.
        if document.token in {None, token} or (document.holder is not None and document.holder.is_dead()):
            return True
        watched = self._watched
        if watched is None or (watched.token, watched.seq_no) != (document.token, seen.seq_no):
            self._watched = _Watched(document.token, seen.seq_no, now())
            return False
        return now() - watched.since >= max(self._ttl, document.ttl)
