"""Holds OpenSearch's lease for one job: a thread renews it, and a loss is detected in time (G4).

The holder trusts a renewal for two thirds of the time to live, measured by its own clock from before it was sent. The
last third remains for writes that were checked before.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_fixed
from tenacity.stop import StopBaseT

from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseLostError, LeaseUnansweredError
from indexer.sinks.opensearch.lease_document import LeaseDocument, LeaseStore, SeenLease

_TRIES: Final = 3
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_log = logging.getLogger(__name__)


def now() -> float:
    """Seconds of this machine's monotonic clock, including its sleep if the system counts that."""
    return time.clock_gettime(_CLOCK)


class _Sent(NamedTuple):
    """An unanswered renewal: its beat, and when it was first sent."""

    beat: int
    began: float


class Tenure:
    """A lease that was acquired, until it is lost or released."""

    def __init__(self, store: LeaseStore, document: LeaseDocument, began: float) -> None:
        """Start the renewals of the written document; `began` is `now()` from before it was sent."""
        self._store = store
        self._document = document
        self._pid = os.getpid()
        self._confirmed = began
        self._sent: _Sent | None = None
        self._lost = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._renew_periodically, name="lease renewal", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Verify that the lease is held, by a renewal if the last one is too old.

        If the engine does not answer, this retries for one ttl: a late success also proves that no other job held it.

        Raises:
            LeaseLostError: it is lost, or can't be renewed.
        """
        if self._is_fresh():
            return
        if self._is_inherited():
            raise LeaseLostError("the lease belongs to another process")
        with self._lock:
            if self._is_fresh():
                return
            if self._lost:
                raise LeaseLostError("the lease was lost: another job may hold it")
            try:
                self._retry(self._renew, stop_after_delay(self._document.ttl))
            except LeaseLostError:
                raise
            except SinkError as error:
                self._lost = True
                raise LeaseLostError(f"the lease could not be renewed in time: {error}") from error

    def end(self) -> None:
        """Stop the renewals, and release the lease if it is still held.

        If the engine does not answer, other jobs detect the end of the process, or that the lease expires.
        """
        if self._is_inherited():
            return
        self._over.set()
        with self._lock:
            try:
                self._retry(self._free, stop_after_attempt(_TRIES))
            except SinkError as error:
                _log.warning("the lease could not be released: %s", error)
        self._thread.join()

    def _retry(self, request: Callable[[], None], stop: StopBaseT) -> None:
        unanswered = retry_if_exception_type(LeaseUnansweredError)
        Retrying(retry=unanswered, stop=stop, wait=wait_fixed(self._document.ttl / 15), reraise=True)(request)

    def _is_fresh(self) -> bool:
        trusted = self._document.ttl * 2 / 3
        return not self._lost and not self._is_inherited() and now() - self._confirmed < trusted

    def _is_inherited(self) -> bool:
        """Whether this is a forked process, whose parent holds the lease."""
        return os.getpid() != self._pid

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
                    pause = self._document.ttl / 15

    def _until_next(self) -> float:
        return max(0.0, self._confirmed + self._document.ttl / 3 - now())

    def _renew(self) -> None:
        """Write the next beat.

        Raises:
            LeaseLostError: another job holds the lease, or the document was removed.
            SinkError: the engine did not answer, or refused.
        """
        began = now()
        for _ in range(_TRIES):
            seen = self._own()
            if seen is None:
                self._lost = True
                raise LeaseLostError("the lease was lost: another job holds it, or its document was removed")
            if self._is_answered_by(seen):
                return
            beat = seen.document.beat + 1
            if self._sent is None or self._sent.beat != beat:
                self._sent = _Sent(beat, began)
            if self._store.replace(seen, replace(self._document, beat=beat)):
                self._confirmed, self._sent = began, None
                return
        raise LeaseUnansweredError("the lease changes while it is renewed")

    def _is_answered_by(self, seen: SeenLease) -> bool:
        """Whether an unanswered renewal was carried out, and is recent enough."""
        if self._sent is None or self._sent.beat != seen.document.beat:
            return False
        self._confirmed, self._sent = self._sent.began, None
        return self._is_fresh()

    def _free(self) -> None:
        for _ in range(_TRIES):
            seen = self._own()
            freed = replace(self._document, token=None, holder=None)
            if seen is None or self._store.replace(seen, replace(freed, beat=seen.document.beat + 1)):
                return

    def _own(self) -> SeenLease | None:
        """The document, if it is ours; else None.

        It is read before each write: the effect of a request without an answer is unknown, and in an index that was
        created again another job's document can have the sequence number of ours.
        """
        seen = self._store.read()
        return seen if seen is not None and seen.document.token == self._document.token else None
