"""OpenSearch's lease: a document that is changed by compare-and-set, and renewed while its job lives (G4).

It is taken over when it is free, when its holder has died on this machine, or when it was not renewed for as long as
it lasts by the clock of the one who waits: clocks of two machines are never compared.
"""

import secrets
from typing import Final, NamedTuple

from opensearchpy import OpenSearch

from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseLostError, LeaseUnansweredError, ask_until
from indexer.sinks.lease_holder import LeaseHolder
from indexer.sinks.opensearch.lease_document import LeaseDocument, LeaseStore, SeenLease
from indexer.sinks.opensearch.lease_tenure import Tenure, now

TTL_S: Final = 15.0
_LONGEST_PAUSE_S: Final = 0.5
_TRIES: Final = 3


class _Watched(NamedTuple):
    """A state of the document that was seen first at `since`."""

    token: str | None
    seq_no: int
    since: float


class OpenSearchLease:
    """One asker for the lease of one prefix in one cluster."""

    def __init__(self, client: OpenSearch, prefix: str, ttl: float = TTL_S) -> None:
        """Ask nothing yet.

        Args:
            client: is used from a thread as well; its own time limits don't matter.
            prefix: what all index names begin with.
            ttl: seconds without a renewal after which others may take the lease; it is renewed three times as often.
        """
        # Under a build's load a write waits in the engine's queue behind large ones, for seconds.
        self._store = LeaseStore(client, prefix, timeout=ttl / 3)
        self._ttl = ttl
        self._watched: _Watched | None = None
        self._tenure: Tenure | None = None

    def acquire(self, job: str, wait: float) -> None:
        """Take the lease, asking again for `wait` seconds; of an engine that fails, for no longer than the ttl.

        What was seen is remembered: whoever tries once from time to time takes over as well.
        """
        token = secrets.token_hex(16)
        answered = now()

        def ask() -> None:
            nonlocal answered
            try:
                self._take(job, token)
            except LeaseHeldError:
                answered = now()
                raise
            except LeaseUnansweredError as error:
                if now() - answered > self._ttl:
                    raise SinkError(str(error)) from error
                raise

        ask_until(ask, wait, min(_LONGEST_PAUSE_S, self._ttl / 10))

    def check(self) -> None:
        """Whether the last renewal is young enough, or another one succeeds now.

        A process that was stopped or starved finds out here. What no check can see is a stop right after it.
        """
        if self._tenure is None:
            raise LeaseLostError("the lease is not held")
        self._tenure.check()

    def release(self) -> None:
        """Free the document, which stays."""
        if self._tenure is not None:
            tenure, self._tenure = self._tenure, None
            tenure.end()

    def _take(self, job: str, token: str) -> None:
        """Try once; somebody else's success meanwhile is a reason to look again."""
        for _ in range(_TRIES):
            began = now()
            seen = self._store.read()
            beat = 0 if seen is None else seen.document.beat + 1
            document = LeaseDocument(token, LeaseHolder.here(job), beat, self._ttl)
            if seen is None:
                taken = self._store.create(document)
            elif self._is_to_be_had(seen, token):
                taken = self._store.replace(seen, document)
            else:
                raise LeaseHeldError(f"another job has the lease: {seen.document.holder or 'one that is not known'}")
            if taken:
                self._tenure = Tenure(self._store, document, began)
                return
        raise LeaseHeldError("other jobs are asking for the lease at the same moment")

    def _is_to_be_had(self, seen: SeenLease, token: str) -> bool:
        document = seen.document
        # Our own token: the request that took it was carried out, and its answer was lost.
        if document.token in {None, token} or (document.holder is not None and document.holder.is_dead()):
            return True
        watched = self._watched
        if watched is None or (watched.token, watched.seq_no) != (document.token, seen.seq_no):
            self._watched = _Watched(document.token, seen.seq_no, now())
            return False
        return now() - watched.since >= max(self._ttl, document.ttl)
