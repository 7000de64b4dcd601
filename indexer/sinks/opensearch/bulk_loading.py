"""Loads documents into OpenSearch in constant memory, with a few bulk requests in flight.

Operations that fail temporarily are sent again; documents that are refused for good go to the dead-letter file. No
error holds a part of a document (V1).
"""

from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from opensearchpy import OpenSearch

from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.opensearch.bulk_chunks import Operation, chunks, delete_operations, index_operations
from indexer.sinks.opensearch.bulk_sender import BulkSender, Loaded, Pace
from indexer.sinks.opensearch.index_watch import IndexWatch
from indexer.sinks.opensearch.throttle import Throttle

__all__ = ["BulkLoader", "Loaded", "Pace"]

_DEFAULT_PACE = Pace()


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
