"""Loads documents into OpenSearch in constant memory, with a few bulk requests in flight.

Each operation is serialised once. Those that fail temporarily are sent again, which is safe as they are idempotent;
documents that are refused for good go to the dead-letter file. Of an error only status and type are read, as its
message holds documents (V1). The loss of an index is detected, so that a build can start again.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, Final, NamedTuple

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential
from tenacity.nap import sleep_using_event

from index_mappings.opensearch import wire_document
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.retries import UNREADABLE, RequestFailure, failure_of

# The requested parts of an answer, without messages of errors. The statuses preserve the positions of the items.
_ANSWER_PARTS: Final = "errors,items.*.status,items.*.error.type"
# How long a node waits for a primary shard before it answers with an error.
_SHARD_WAIT: Final = "1s"
# The seconds of red health after which an index counts as lost: longer than a cluster takes to promote a copy.
_LOST_AFTER_S: Final = 10.0
_WATCH_TIMEOUT_S: Final = 10
_RED_CHECKS: Final = 3


class Operation(NamedTuple):
    """One operation of a bulk request: the document's id, and the lines of action and document, with line feeds."""

    id: str
    lines: bytes

    @property
    def document(self) -> object:
        """The document in its wire form; None for a delete."""
        source = self.lines.split(b"\n", 1)[1]
        return orjson.loads(source) if source else None


def index_operations(documents: Iterable[object]) -> Iterator[Operation]:
    """Operations that write documents of the contract's classes."""
    for document in documents:
        values = wire_document(document)
        source = orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
        yield Operation(values["id"], b'{"index":{"_id":%b}}\n%b' % (orjson.dumps(values["id"]), source))


@dataclass(frozen=True, slots=True)
class Pace:
    """How documents are sent. Times are in seconds.

    Attributes:
        chunk_documents, chunk_bytes: the bounds of a request, unless a single document is larger.
        requests: the highest number of requests in flight.
        give_up_after: the longest time in which nothing succeeds.
        lost_after: the time after which a red index counts as lost.
        first_pause: the longest first pause before sending again; it doubles each time, up to `longest_pause`.
    """

    chunk_documents: int = 500
    chunk_bytes: int = 4 * 1024 * 1024
    requests: int = 2
    request_timeout: float = 60.0
    give_up_after: float = 120.0
    lost_after: float = _LOST_AFTER_S
    first_pause: float = 0.25
    longest_pause: float = 5.0


def chunks(operations: Iterable[Operation], pace: Pace) -> Iterator[list[Operation]]:
    """Group operations into those of one request."""
    gathered: list[Operation] = []
    size = 0
    for operation in operations:
        if gathered and (len(gathered) >= pace.chunk_documents or size + len(operation.lines) > pace.chunk_bytes):
            yield gathered
            gathered, size = [], 0
        gathered.append(operation)
        size += len(operation.lines)
    if gathered:
        yield gathered


def operation_failures(answer: Mapping[str, Any], count: int) -> list[RequestFailure | None]:
    """Why each of `count` operations of a request failed, in their order; None for one that was done.

    An answer that does not say it of each operation is a failure of all of them, which may succeed later.
    """
    try:
        results = [next(iter(item.values())) for item in answer["items"]]
        failures = [
            RequestFailure(int(result["status"]), str(result["error"]["type"])) if "error" in result else None
            for result in results
        ]
    except (LookupError, TypeError, AttributeError, ValueError, StopIteration):
        failures = []
    return failures if len(failures) == count else [UNREADABLE] * count


class IndexWatch:
    """Watches one index, or the health of several; thread-safe."""

    def __init__(self, client: OpenSearch, index: str, lost_after: float = _LOST_AFTER_S) -> None:
        """Several index names, separated by commas, serve `check_health` only."""
        self._client = client
        self._index = index
        self._lost_after = lost_after
        self._lock = Lock()
        self._identity: str | None = None
        self._red_since = 0.0
        self._red_checks = 0

    def verify(self) -> RequestFailure | None:
        """Verify that it is the same index as at the first call: a cluster may create one of the same name by itself.

        Returns why that is unknown now; None if it is the same. Raises IndexLostError if it is another index, or none.
        """
        try:
            found = self._client.indices.get_settings(
                index=self._index, name="index.uuid", params={"request_timeout": _WATCH_TIMEOUT_S}
            )
            identity = found[self._index]["settings"]["index"]["uuid"]
        except NotFoundError:
            identity = None
        except OpenSearchException as error:
            return failure_of(error)
        except (LookupError, TypeError):
            return UNREADABLE
        with self._lock:
            self._identity = self._identity or identity
            if identity is None or identity != self._identity:
                raise IndexLostError(f"the index {self._index} is gone")
        return None

    def note_success(self) -> None:
        """Reset the red health: a write succeeded."""
        with self._lock:
            self._red_checks = 0

    def check_health(self) -> bool:
        """Whether the index is red, after a failure that this would explain; False if that is unknown.

        Raises IndexLostError if it was red at every check, for longer than a shard takes to move.
        """
        red = self._is_red()
        with self._lock:
            if not red:
                self._red_checks = 0
                return False
            if not self._red_checks:
                self._red_since = time.monotonic()
            self._red_checks += 1
            since = time.monotonic() - self._red_since
            if self._red_checks >= _RED_CHECKS and since >= self._lost_after:
                raise IndexLostError(
                    f"the index {self._index} has had a shard without any copy for {since:.0f} s;"
                    " GET /_cluster/allocation/explain says why, such as a disk that is nearly full"
                )
            return True

    def _is_red(self) -> bool:
        try:
            params = {"timeout": "1s", "request_timeout": _WATCH_TIMEOUT_S}
            return bool(self._client.cluster.health(index=self._index, params=params)["status"] == "red")
        except (OpenSearchException, LookupError, TypeError):
            return False  # unknown: the whole cluster is unavailable, and the retries are bounded


class BulkSender:
    """Sends the operations of one call, and counts those that are refused for good; thread-safe."""

    def __init__(self, client: OpenSearch, index: str, letters: DeadLetters, pace: Pace) -> None:
        self._client = client
        self._index = index
        self._letters = letters
        self._pace = pace
        self._watch = IndexWatch(client, index, pace.lost_after)
        self._stop = Event()
        self._progress = time.monotonic()
        timeout = min(pace.request_timeout, max(1.0, pace.give_up_after))
        self._params = {"filter_path": _ANSWER_PARTS, "timeout": _SHARD_WAIT, "request_timeout": timeout}
        self._lock = Lock()
        self.refused = 0

    def stop(self) -> None:
        """Send nothing more: pausing threads wake up and fail."""
        self._stop.set()

    def verify_index(self) -> None:
        """Verify that the index exists, and was not replaced."""
        self._raise(self._retried(self._watch.verify))

    def send(self, operations: list[Operation]) -> None:
        """Send operations until each is done or refused.

        Raises IndexLostError if the index is lost, and SinkError if nothing succeeded for `pace.give_up_after`, the
        engine refuses all of them, or it was stopped.
        """
        failure = self._retried(lambda: self._attempt(operations))
        if failure is None or not failure.concerns_request:
            self._raise(failure)
        elif len(operations) == 1:
            self._refuse(operations.pop(), failure)
        else:
            # Halves, until the refused operation is alone.
            middle = len(operations) // 2
            self.send(operations[:middle])
            self.send(operations[middle:])

    def _attempt(self, operations: list[Operation]) -> RequestFailure | None:
        """Send operations, and remove those that are settled; returns why others are not."""
        if self._stop.is_set():
            return RequestFailure(None, "stopped")
        body = b"".join([operation.lines for operation in operations])
        try:
            answer = self._client.bulk(index=self._index, body=body, params=dict(self._params))
            failures = self._settle(operations, operation_failures(answer, len(operations)))
        except OpenSearchException as error:
            failures = [failure_of(error)]
        if any(failure.is_missing_index for failure in failures):
            self._watch.verify()
        elif any(failure.may_concern_index for failure in failures):
            self._watch.check_health()
        return min(failures, key=lambda failure: failure.is_transient, default=None)

    def _settle(self, operations: list[Operation], failures: list[RequestFailure | None]) -> list[RequestFailure]:
        unsettled: list[tuple[Operation, RequestFailure]] = []
        for operation, failure in zip(operations, failures, strict=True):
            if failure is not None and failure.concerns_document:
                self._refuse(operation, failure)
            elif failure is not None:
                unsettled.append((operation, failure))
        if len(unsettled) < len(operations):
            self._progress = time.monotonic()
            self._watch.note_success()
        operations[:] = [operation for operation, _ in unsettled]
        return [failure for _, failure in unsettled]

    def _refuse(self, operation: Operation, failure: RequestFailure) -> None:
        self._letters.add(self._index, operation.id, failure.status, failure.kind, operation.document)
        with self._lock:
            self.refused += 1

    def _retried(self, attempt: Callable[[], RequestFailure | None]) -> RequestFailure | None:
        started = time.monotonic()

        def ends(_: RetryCallState) -> bool:
            idle = time.monotonic() - max(started, self._progress)
            return self._stop.is_set() or idle >= self._pace.give_up_after

        retrying = Retrying(
            retry=retry_if_result(lambda failure: failure is not None and failure.is_transient),
            wait=wait_random_exponential(multiplier=self._pace.first_pause, max=self._pace.longest_pause),
            sleep=sleep_using_event(self._stop),
            stop=ends,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        return retrying(attempt)

    def _raise(self, failure: RequestFailure | None) -> None:
        if failure is None:
            return
        if failure.is_transient and not self._stop.is_set():
            seconds = f"{self._pace.give_up_after:g} s"
            raise SinkError(f"{self._index}: nothing succeeded for {seconds}; the last failure: {failure}")
        raise SinkError(f"{self._index}: writing was given up: {failure}")


class Loaded(NamedTuple):
    """How many operations of a call were done, and how many were refused for good and are in the dead-letter file."""

    written: int
    refused: int


class BulkLoader:
    """Writes and removes documents, one call at a time; documents that are refused for good become dead letters.

    The client was created with `max_retries=0`, as this class retries, and with a `pool_maxsize` of at least
    `pace.requests`, as further connections would be opened for each request.
    """

    def __init__(self, client: OpenSearch, letters: DeadLetters, pace: Pace) -> None:
        self._client = client
        self._letters = letters
        self._pace = pace

    def load(self, index: str, documents: Iterable[object]) -> Loaded:
        """Write documents of unique ids, replacing those with their ids; they are consumed as they are sent.

        Raises IndexLostError if the index is gone, was created again, or has lost all copies of a shard, and SinkError
        as `BulkSender.send`, or if a dead letter can't be written. Some documents may have been written.
        """
        return self._run(index, index_operations(documents))

    def delete(self, index: str, ids: Iterable[str]) -> Loaded:
        """Remove documents; a missing one counts as removed. Bounds and errors are those of `load`."""
        return self._run(index, (Operation(one, b'{"delete":{"_id":%b}}\n' % orjson.dumps(one)) for one in ids))

    def _run(self, index: str, operations: Iterable[Operation]) -> Loaded:
        sender = BulkSender(self._client, index, self._letters, self._pace)
        sender.verify_index()
        sent = 0
        waiting: set[Future[None]] = set()
        with ThreadPoolExecutor(self._pace.requests, thread_name_prefix="bulk") as pool:
            try:
                for chunk in chunks(operations, self._pace):
                    sent += len(chunk)
                    waiting.add(pool.submit(sender.send, chunk))
                    # One more chunk than there are threads is ready, so that no thread waits for the next.
                    if len(waiting) > self._pace.requests:
                        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        for future in ended:
                            future.result()
                for future in as_completed(waiting):
                    future.result()
            except BaseException:
                # The pool waits for requests in flight: none may reach the cluster after the caller's cleanup.
                sender.stop()
                raise
        sender.verify_index()
        return Loaded(sent - sender.refused, sender.refused)
