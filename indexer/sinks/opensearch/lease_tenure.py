"""The time for which one job holds OpenSearch's lease: renewed by a thread, and known to be lost in time (G4).

The holder trusts a renewal for two thirds of the time that others wait for the next one, counted from before it was
sent. It needs no clock but its own, and has a third of that time for what it was about to write.
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
    """Seconds of this machine's clock that only goes forward, its sleep included where the system counts it."""
    return time.clock_gettime(_CLOCK)


class _Sent(NamedTuple):
    """A renewal whose answer has not come: its beat, and when it was first sent."""

    beat: int
    began: float


class Tenure:
    """A lease that was taken, until it is lost or given back."""

    def __init__(self, store: LeaseStore, document: LeaseDocument, began: float) -> None:
        """Start to renew.

        Args:
            store: where the document is.
            document: as it was written when the lease was taken.
            began: `now()` from before that was sent.
        """
        self._store = store
        self._document = document
        self._pid = os.getpid()
        self._confirmed = began
        self._sent: _Sent | None = None
        self._lost = False
        self._over = threading.Event()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._renew_on, name="lease renewal", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Make sure that it is held, by a renewal where the last one is too long ago.

        An engine that does not answer is asked for one ttl: a late success proves as well that nobody else had it.

        Raises:
            LeaseLostError: it is lost, or can't be renewed.
        """
        if self._is_fresh():
            return
        if self._is_inherited():
            raise LeaseLostError("the lease is that of another process")
        with self._turn:
            if self._is_fresh():
                return
            if self._lost:
                raise LeaseLostError("the lease was lost: another job may have begun")
            try:
                self._persist(self._renew, stop_after_delay(self._document.ttl))
            except LeaseLostError:
                raise
            except SinkError as error:
                self._lost = True
                raise LeaseLostError(f"the lease could not be renewed in time: {error}") from error

    def end(self) -> None:
        """Stop renewing, and free what is still held.

        An engine that can't be told is left to find out: on this machine by the end of the process, elsewhere by time.
        """
        if self._is_inherited():
            return
        self._over.set()
        with self._turn:
            try:
                self._persist(self._free, stop_after_attempt(_TRIES))
            except SinkError as error:
                _log.warning("the lease could not be given back: %s", error)
        self._thread.join()

    def _persist(self, ask: Callable[[], None], stop: StopBaseT) -> None:
        again = retry_if_exception_type(LeaseUnansweredError)
        Retrying(retry=again, stop=stop, wait=wait_fixed(self._document.ttl / 15), reraise=True)(ask)

    def _is_fresh(self) -> bool:
        trusted = self._document.ttl * 2 / 3
        return not self._lost and not self._is_inherited() and now() - self._confirmed < trusted

    def _is_inherited(self) -> bool:
        """Whether this is a forked process: the lease is the other one's."""
        return os.getpid() != self._pid

    def _renew_on(self) -> None:
        pause = self._until_next()
        while not self._over.wait(pause):
            with self._turn:
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
            LeaseLostError: the document is not ours any more.
            SinkError: that could not be told.
        """
        began = now()
        for _ in range(_TRIES):
            seen = self._own()
            if seen is None:
                self._lost = True
                raise LeaseLostError("the lease was lost: another job has taken it, or its document was removed")
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
        """Whether a renewal that had no answer was carried out all the same, and is young enough."""
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
        """The document, while it is ours.

        It is read before each write: what a request did that ran out of time is not known, and in an index that was
        deleted and made again another's document can have the numbers that ours had.
        """
        seen = self._store.read()
        return seen if seen is not None and seen.document.token == self._document.token else None
