"""Sends chunks of bulk operations to OpenSearch and does not let go of one until all of it is settled.

Sending again is safe: each operation names its document, and has the same outcome however often it is done.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Event
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential
from tenacity.nap import sleep_using_event

from indexer.sinks.dead_letters import DeadLetters, Letter
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.bulk_answers import (
    ANSWER_PARTS,
    UNREADABLE,
    Trouble,
    UnreadableAnswerError,
    Verdict,
    judge,
)
from indexer.sinks.opensearch.bulk_chunks import Chunk
from indexer.sinks.opensearch.index_watch import IndexWatch, trouble_of
from indexer.sinks.opensearch.throttle import Throttle

# How long a node waits for a shard that has no primary before it says so.
_SHARD_WAIT: Final = "1s"
_STOPPED: Final = Trouble(None, "stopped")


@dataclass(frozen=True, slots=True)
class Pace:
    """How documents are sent. Times are in seconds.

    Attributes:
        chunk_documents: how many operations a request has at most.
        chunk_bytes: how large its body is at most, unless one document alone is larger.
        requests: how many are in flight at most.
        request_timeout: how long an answer may take.
        patience: how long nothing at all may succeed.
        lost_after: for how long an index has to be red to count as lost.
        first_pause: how long the first pause before sending again is at most; it doubles each time.
        longest_pause: how long any pause is at most.
    """

    chunk_documents: int = 500
    chunk_bytes: int = 4 * 1024 * 1024
    requests: int = 2
    request_timeout: float = 60.0
    patience: float = 120.0
    lost_after: float = 10.0
    first_pause: float = 0.25
    longest_pause: float = 5.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of the operations.

    Attributes:
        written: how many were done.
        refused: how many the engine refused for good; they are in the dead-letter file.
    """

    written: int
    refused: int

    def __add__(self, other: "Loaded") -> "Loaded":
        return Loaded(self.written + other.written, self.refused + other.refused)


class BulkSender:
    """The sending of one call, by several threads."""

    def __init__(
        self,
        client: OpenSearch,
        index: str,
        letters: DeadLetters,
        *,
        pace: Pace,
        throttle: Throttle,
        watch: IndexWatch,
    ) -> None:
        """Note where chunks go.

        Args:
            client: makes one attempt a request, so that retries are counted here alone.
            index: the index's concrete name.
            letters: take what is refused for good.
            pace: bounds.
            throttle: how many requests may be in flight just now.
            watch: of the same index.
        """
        self._client = client
        self._index = index
        self._letters = letters
        self._pace = pace
        self._throttle = throttle
        self._watch = watch
        self._stop = Event()
        self._progress = time.monotonic()
        timeout = min(pace.request_timeout, max(1.0, pace.patience))
        self._params = {"filter_path": ANSWER_PARTS, "timeout": _SHARD_WAIT, "request_timeout": timeout}

    def stop(self) -> None:
        """Send nothing more: those who pause are woken, and give up."""
        self._stop.set()

    def verify_index(self) -> None:
        """Make sure that the index is there, and no other in its place.

        Raises:
            IndexLostError: it is not.
            SinkError: that can't be told within the patience.
        """
        self._raise(self._retrying()(self._watch.verify))

    def send(self, chunk: Chunk) -> Loaded:
        """Send a chunk until each of its operations is done or refused.

        Raises:
            IndexLostError: the index can't be written to any more.
            SinkError: nothing succeeded within the patience, the engine will take none of it, or it was stopped.
        """
        errand = _Errand(chunk)
        trouble = self._retrying()(self._attempt, errand)
        if trouble is not None and trouble.is_of_the_request:
            return errand.loaded + self._send_apart(errand.left, trouble)
        self._raise(trouble)
        return errand.loaded

    def _send_apart(self, chunk: Chunk, trouble: Trouble) -> Loaded:
        """Send what was refused as a whole by halves, until the operation at fault is alone."""
        if len(chunk) > 1:
            first, second = chunk.halves()
            return self.send(first) + self.send(second)
        self._refuse(chunk, ((0, trouble),))
        return Loaded(0, 1)

    def _attempt(self, errand: "_Errand") -> Trouble | None:
        with self._throttle.turn() as begun:
            if self._stop.is_set():
                return _STOPPED
            outcome = self._ask(errand.left)
        after: Trouble | None
        if isinstance(outcome, Trouble):
            troubles, after = frozenset((outcome,)), outcome
        else:
            troubles, after = outcome.troubles, self._settle(errand, outcome)
        if any(trouble.is_pressure for trouble in troubles):
            self._throttle.narrow(begun)
        elif after is None:
            self._throttle.widen()
        if any(trouble.says_no_index for trouble in troubles):
            self._watch.verify()
        elif any(trouble.may_be_of_the_index for trouble in troubles):
            self._watch.look()
        return after

    def _ask(self, chunk: Chunk) -> Verdict | Trouble:
        try:
            answer = self._client.bulk(index=self._index, body=chunk.body(), params=dict(self._params))
            return judge(answer, len(chunk))
        except UnreadableAnswerError:
            return UNREADABLE
        except OpenSearchException as error:
            return trouble_of(error)

    def _settle(self, errand: "_Errand", verdict: Verdict) -> Trouble | None:
        """Note what was done; returns why the errand is not over, if it is not."""
        self._refuse(errand.left, verdict.refused)
        errand.loaded += Loaded(verdict.done, len(verdict.refused))
        errand.left = errand.left.only(verdict.again)
        if verdict.done or verdict.refused:
            self._progress = time.monotonic()
            self._watch.note_success()
        return verdict.fatal or next(iter(verdict.troubles), None)

    def _refuse(self, chunk: Chunk, refused: Iterable[tuple[int, Trouble]]) -> None:
        for place, trouble in refused:
            operation = chunk.operations[place]
            letter = Letter(self._index, operation.id, trouble.status, trouble.kind, operation.document)
            self._letters.add(letter)

    def _retrying(self) -> Retrying:
        started = time.monotonic()

        def ends(_: RetryCallState) -> bool:
            idle = time.monotonic() - max(started, self._progress)
            return self._stop.is_set() or idle >= self._pace.patience

        return Retrying(
            retry=retry_if_result(lambda trouble: trouble is not None and trouble.passes),
            wait=wait_random_exponential(multiplier=self._pace.first_pause, max=self._pace.longest_pause),
            sleep=sleep_using_event(self._stop),
            stop=ends,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )

    def _raise(self, trouble: Trouble | None) -> None:
        if trouble is None:
            return
        if trouble.passes and not self._stop.is_set():
            patience = f"{self._pace.patience:g} s"
            raise SinkError(f"{self._index}: nothing succeeded for {patience}; the last trouble: {trouble}")
        raise SinkError(f"{self._index}: writing was given up: {trouble}")


class _Errand:
    """One chunk on its way: what is left of it, and what became of the rest."""

    __slots__ = ("left", "loaded")

    def __init__(self, chunk: Chunk) -> None:
        self.left = chunk
        self.loaded = Loaded(0, 0)
