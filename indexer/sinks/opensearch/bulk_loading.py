"""Loads documents into OpenSearch: a few bulk requests in flight, in constant memory, each document until it is in.

What the engine has no room for now is sent again, that and nothing else; what it will never take goes to the
dead-letter file. No error says a word of a document (V1).
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
        """Keep what is needed; nothing is sent.

        Args:
            client: has to be made with `max_retries=0`, as retries are counted here, and with a `pool_maxsize` of at
                least `pace.requests`, as each further connection is opened anew for every request.
            letters: take what the engine refuses for good.
            pace: bounds of sizes and times.
        """
        self._client = client
        self._letters = letters
        self._pace = pace
        self._throttle = Throttle(pace.requests)  # kept, as pressure does not end with a call

    def load(self, index: str, documents: Iterable[object]) -> Loaded:
        """Write documents, each in the place of any with its id.

        Args:
            index: the index's concrete name.
            documents: of the contract's classes, each id once; read as they are sent, so there may be any number.

        Raises:
            IndexLostError: the index is gone, was made anew, or has had a shard without any copy for a while.
            SinkError: nothing succeeded within the patience, the engine takes none of them, or a dead letter can't be
                written. Some documents may have been written.
        """
        return self._run(index, index_operations(documents))

    def delete(self, index: str, ids: Iterable[str]) -> Loaded:
        """Remove documents; one that is not there counts as removed. Bounds and errors are those of `load`."""
        return self._run(index, delete_operations(ids))

    def _run(self, index: str, operations: Iterable[Operation]) -> Loaded:
        watch = IndexWatch(self._client, index, self._pace.lost_after)
        errands = BulkSender(self._client, index, self._letters, pace=self._pace, throttle=self._throttle, watch=watch)
        errands.verify_index()
        loaded = Loaded(0, 0)
        waiting: set[Future[Loaded]] = set()
        with ThreadPoolExecutor(self._pace.requests, thread_name_prefix="bulk") as pool:
            try:
                for chunk in chunks(operations, self._pace.chunk_documents, self._pace.chunk_bytes):
                    waiting.add(pool.submit(errands.send, chunk))
                    # One chunk more than are sent is ready, so that no sender waits for the next.
                    if len(waiting) > self._pace.requests:
                        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        loaded += _sum(ended)
                while waiting:
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    loaded += _sum(ended)
            except BaseException:
                # The pool waits for requests in flight: none may reach the cluster after the caller has cleaned up.
                errands.stop()
                raise
        errands.verify_index()
        return loaded


def _sum(ended: Iterable[Future[Loaded]]) -> Loaded:
    return sum((future.result() for future in ended), Loaded(0, 0))
