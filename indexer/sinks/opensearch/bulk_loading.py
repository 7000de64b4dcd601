"""Loads documents into OpenSearch in constant memory, with a few bulk requests in flight.

Operations that fail temporarily are sent again, which is safe as they are idempotent; documents that are refused for
good go to the dead-letter file. No error holds a part of a document (V1).
"""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Event
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential
from tenacity.nap import sleep_using_event

from indexer.sinks.dead_letters import DeadLetters, Letter
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.bulk_requests import (
    ANSWER_PARTS,
    UNREADABLE,
    BulkOutcome,
    Chunk,
    Operation,
    RequestFailure,
    UnreadableAnswerError,
    bulk_outcome,
    chunks,
    delete_operations,
    index_operations,
)
from indexer.sinks.opensearch.index_watch import LOST_AFTER_S, IndexWatch, failure_of

# How long a node waits for a primary shard before it answers with an error.
_SHARD_WAIT: Final = "1s"
_STOPPED: Final = RequestFailure(None, "stopped")


class Throttle:
    """A semaphore with a variable limit of at least one: half after the engine reports overload, then slowly more."""

    def __init__(self, highest: int) -> None:
        """Begin with the highest limit."""
        self._highest = highest
        self.limit = highest
        self._occupied = 0
        self._round = 0
        self._successes = 0
        self._changed = Condition()

    @contextmanager
    def slot(self) -> Iterator[int]:
        """Wait for a slot and occupy it; yields the number of its round, for `narrow`."""
        with self._changed:
            self._changed.wait_for(lambda: self._occupied < self.limit)
            self._occupied += 1
            round_number = self._round
        try:
            yield round_number
        finally:
            with self._changed:
                self._occupied -= 1
                self._changed.notify_all()

    def narrow(self, round_number: int) -> None:
        """Halve the limit, once for all slots of a round, as they saw the same overload."""
        with self._changed:
            if round_number == self._round:
                self._round += 1
                self.limit = max(1, self.limit // 2)
                self._successes = 0

    def widen(self) -> None:
        """Record a success; a few in a row for each slot raise the limit by one."""
        with self._changed:
            self._successes += 1
            if self.limit < self._highest and self._successes >= 4 * self.limit:
                self.limit += 1
                self._successes = 0
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Pace:
    """How documents are sent. Times are in seconds.

    Attributes:
        chunk_documents: the highest number of operations of a request.
        chunk_bytes: the largest size of its body, unless a single document is larger.
        requests: the highest number of requests in flight.
        request_timeout: the longest time for an answer.
        give_up_after: the longest time in which nothing succeeds.
        lost_after: the time after which a red index counts as lost.
        first_pause: the longest first pause before sending again; it doubles each time.
        longest_pause: the longest pause.
    """

    chunk_documents: int = 500
    chunk_bytes: int = 4 * 1024 * 1024
    requests: int = 2
    request_timeout: float = 60.0
    give_up_after: float = 120.0
    lost_after: float = LOST_AFTER_S
    first_pause: float = 0.25
    longest_pause: float = 5.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """The outcome of some operations.

    Attributes:
        written: the number of operations that were done.
        refused: the number of those that were refused for good, whose documents are in the dead-letter file.
    """

    written: int
    refused: int

    def __add__(self, other: "Loaded") -> "Loaded":
        return Loaded(self.written + other.written, self.refused + other.refused)


class BulkSender:
    """Sends the chunks of one call; thread-safe."""

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
        """Prepare; nothing is sent. The client does not retry, as this class does."""
        self._client = client
        self._index = index
        self._letters = letters
        self._pace = pace
        self._throttle = throttle
        self._watch = watch
        self._stop = Event()
        self._progress = time.monotonic()
        timeout = min(pace.request_timeout, max(1.0, pace.give_up_after))
        self._params = {"filter_path": ANSWER_PARTS, "timeout": _SHARD_WAIT, "request_timeout": timeout}

    def stop(self) -> None:
        """Send nothing more: pausing threads wake up and fail."""
        self._stop.set()

    def verify_index(self) -> None:
        """Verify that the index exists, and was not replaced."""
        self._raise(self._retrying()(self._watch.verify))

    def send(self, chunk: Chunk) -> Loaded:
        """Send a chunk until each of its operations is done or refused.

        Raises:
            IndexLostError: the index is lost.
            SinkError: nothing succeeded for `pace.give_up_after`, the engine refuses all of it, or it was stopped.
        """
        pending = _PendingChunk(chunk)
        failure = self._retrying()(self._attempt, pending)
        if failure is not None and failure.concerns_request:
            return pending.loaded + self._send_apart(pending.remaining, failure)
        self._raise(failure)
        return pending.loaded

    def _send_apart(self, chunk: Chunk, failure: RequestFailure) -> Loaded:
        """Send the halves of a refused chunk, until the refused operation is alone."""
        if len(chunk) > 1:
            first, second = chunk.halves()
            return self.send(first) + self.send(second)
        self._refuse(chunk, ((0, failure),))
        return Loaded(0, 1)

    def _attempt(self, pending: "_PendingChunk") -> RequestFailure | None:
        with self._throttle.slot() as round_number:
            if self._stop.is_set():
                return _STOPPED
            outcome = self._request(pending.remaining)
        unresolved: RequestFailure | None
        if isinstance(outcome, RequestFailure):
            failures, unresolved = frozenset((outcome,)), outcome
        else:
            failures, unresolved = outcome.failures, self._settle(pending, outcome)
        if any(failure.is_overload for failure in failures):
            self._throttle.narrow(round_number)
        elif unresolved is None:
            self._throttle.widen()
        if any(failure.is_missing_index for failure in failures):
            self._watch.verify()
        elif any(failure.may_concern_index for failure in failures):
            self._watch.check_health()
        return unresolved

    def _request(self, chunk: Chunk) -> BulkOutcome | RequestFailure:
        try:
            answer = self._client.bulk(index=self._index, body=chunk.body(), params=dict(self._params))
            return bulk_outcome(answer, len(chunk))
        except UnreadableAnswerError:
            return UNREADABLE
        except OpenSearchException as error:
            return failure_of(error)

    def _settle(self, pending: "_PendingChunk", outcome: BulkOutcome) -> RequestFailure | None:
        """Record the outcome; returns why operations are still pending, if there are any."""
        self._refuse(pending.remaining, outcome.refused)
        pending.loaded += Loaded(outcome.done, len(outcome.refused))
        pending.remaining = pending.remaining.only(outcome.again)
        if outcome.done or outcome.refused:
            self._progress = time.monotonic()
            self._watch.note_success()
        return outcome.fatal or next(iter(outcome.failures), None)

    def _refuse(self, chunk: Chunk, refused: Iterable[tuple[int, RequestFailure]]) -> None:
        for position, failure in refused:
            operation = chunk.operations[position]
            letter = Letter(self._index, operation.id, failure.status, failure.kind, operation.document)
            self._letters.add(letter)

    def _retrying(self) -> Retrying:
        started = time.monotonic()

        def ends(_: RetryCallState) -> bool:
            idle = time.monotonic() - max(started, self._progress)
            return self._stop.is_set() or idle >= self._pace.give_up_after

        return Retrying(
            retry=retry_if_result(lambda failure: failure is not None and failure.is_transient),
            wait=wait_random_exponential(multiplier=self._pace.first_pause, max=self._pace.longest_pause),
            sleep=sleep_using_event(self._stop),
            stop=ends,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )

    def _raise(self, failure: RequestFailure | None) -> None:
        if failure is None:
            return
        if failure.is_transient and not self._stop.is_set():
            seconds = f"{self._pace.give_up_after:g} s"
            raise SinkError(f"{self._index}: nothing succeeded for {seconds}; the last failure: {failure}")
        raise SinkError(f"{self._index}: writing was given up: {failure}")


class _PendingChunk:
    """The operations of a chunk that are pending, and the outcome of the others."""

    __slots__ = ("loaded", "remaining")

    def __init__(self, chunk: Chunk) -> None:
        self.remaining = chunk
        self.loaded = Loaded(0, 0)


_DEFAULT_PACE: Final = Pace()


class BulkLoader:
    """Writes and removes documents, one call at a time."""

    def __init__(self, client: OpenSearch, letters: DeadLetters, pace: Pace = _DEFAULT_PACE) -> None:
        """Prepare; nothing is sent. Documents that are refused for good become dead letters.

        The client was created with `max_retries=0`, as this class retries, and with a `pool_maxsize` of at least
        `pace.requests`, as further connections would be opened for each request.
        """
        self._client = client
        self._letters = letters
        self._pace = pace
        self._throttle = Throttle(pace.requests)  # shared by all calls, as an overload outlasts them

    def load(self, index: str, documents: Iterable[object]) -> Loaded:
        """Write documents of unique ids, replacing those with their ids; they are consumed as they are sent.

        Raises:
            IndexLostError: the index is gone, was created again, or has lost all copies of a shard.
            SinkError: nothing succeeded for `pace.give_up_after`, the engine refuses all requests, or a dead letter
                can't be written. Some documents may have been written.
        """
        return self._run(index, index_operations(documents))

    def delete(self, index: str, ids: Iterable[str]) -> Loaded:
        """Remove documents; a missing one counts as removed. Bounds and errors are those of `load`."""
        return self._run(index, delete_operations(ids))

    def _run(self, index: str, operations: Iterable[Operation]) -> Loaded:
        watch = IndexWatch(self._client, index, self._pace.lost_after)
        sender = BulkSender(self._client, index, self._letters, pace=self._pace, throttle=self._throttle, watch=watch)
        sender.verify_index()
        loaded = Loaded(0, 0)
        waiting: set[Future[Loaded]] = set()
        with ThreadPoolExecutor(self._pace.requests, thread_name_prefix="bulk") as pool:
            try:
                for chunk in chunks(operations, self._pace.chunk_documents, self._pace.chunk_bytes):
                    waiting.add(pool.submit(sender.send, chunk))
                    # One more chunk than there are threads is ready, so that no thread waits for the next.
                    if len(waiting) > self._pace.requests:
                        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        loaded += _sum(ended)
                while waiting:
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    loaded += _sum(ended)
            except BaseException:
                # The pool waits for requests in flight: none may reach the cluster after the caller's cleanup.
                sender.stop()
                raise
        sender.verify_index()
        return loaded


def _sum(ended: Iterable[Future[Loaded]]) -> Loaded:
    return sum((future.result() for future in ended), Loaded(0, 0))
