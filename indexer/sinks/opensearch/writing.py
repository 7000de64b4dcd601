"""Writes a whole OpenSearch generation.

Automatic refreshes are off, so that readers see all documents of a micro-batch together.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import OPERATIONS_ID, STAMP, STAMP_ID, Operations, Stamp
from index_mappings.opensearch import mapping, settings
from index_mappings.typeahead.chunks import TYPEAHEAD
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.bulk_loading import BulkLoader
from indexer.sinks.opensearch.index_watch import IndexWatch
from indexer.sinks.opensearch.merging import merge
from indexer.sinks.opensearch.reading import OpenSearchReader
from indexer.sinks.opensearch.retries import RETRY_S, IncompleteError, retry_transient
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead
from indexer.sinks.typeahead.build import TypeaheadBuild
from indexer.sinks.typeahead.editor import typeahead_errors, with_typeahead

# The kinds with aliases; services read the typeahead by the generation of the stamp.
ALIASED: Final = (*DOCUMENTS, STAMP)
KINDS: Final = (TYPEAHEAD, *ALIASED)
_GREEN_S: Final = 120.0
_EXISTS_ALREADY: Final = "resource_already_exists_exception"
_POLL_EVERY_S: Final = 0.2
_BRIEF_RETRY_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The primary shards of each index of a generation, and the copies of each shard."""

    shards: int
    replicas: int


class WritableGeneration(OpenSearchReader):
    """What writers and editors of a generation have in common."""

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        """Write the document next to the stamp without a refresh, as it is read by its id."""
        body = {"stamp": {"operations": operations.as_wire()}}  # the one field that the strict mapping of stamps allows
        params = {} if wait_for_engine else {"request_timeout": _BRIEF_RETRY_S}
        retry_transient(
            lambda: self._client.index(index=self._index(STAMP), id=OPERATIONS_ID, body=body, params=dict(params)),
            "the operations document could not be written",
            RETRY_S if wait_for_engine else _BRIEF_RETRY_S,
        )

    def _refresh(self) -> None:
        names = ",".join(self._index(kind) for kind in DOCUMENTS)

        def refresh() -> None:
            if self._client.indices.refresh(index=names)["_shards"]["failed"]:
                raise IncompleteError

        retry_transient(refresh, "the generation could not be refreshed")


class OpenSearchWriter(WritableGeneration):
    """Writes a new generation."""

    def __init__(
        self,
        client: OpenSearch,
        prefix: str,
        generation: str,
        loader: BulkLoader,
        store: OpenSearchTypeahead,
        *,
        publish: Callable[[], None],
    ) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        self._typeahead = TypeaheadBuild(store)
        self._names = ",".join(self._index(kind) for kind in KINDS)
        self._watch = IndexWatch(client, self._names)
        self.publish = publish

    def create(self, shape: Shape) -> None:
        """Create the indices; after a failure some of them may exist."""
        for kind in KINDS:
            self._create(kind, shape)

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Load the documents; those that are refused for good go to the dead-letter file."""
        return self._loader.load(self._index(kind), with_typeahead(self._typeahead, documents)).written

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        """Write the document next to the stamp; raises IndexLostError if a shard of the generation has no copy left."""
        self._wait_while_red()
        with self._lost_if_red():
            super().write_operations(operations, wait_for_engine=wait_for_engine)

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Merge each kind's index to one segment."""
        merge(self._client, [self._index(kind) for kind in DOCUMENTS], meanwhile)

    def seal(self, stamp: Stamp) -> Stamp:
        """Write the typeahead, then the stamp that names it, refresh, and wait for all copies."""
        with self._lost_if_red():
            with typeahead_errors(), closing(self._typeahead) as typeahead:
                stamp = replace(stamp, typeahead=typeahead.finish())
            retry_transient(
                lambda: self._client.index(
                    index=self._index(STAMP), id=STAMP_ID, body={"stamp": stamp.as_wire()}, params={"refresh": "true"}
                ),
                "the stamp could not be written",
            )
            self._refresh()
        self._wait_until_whole()
        return stamp

    def _create(self, kind: str, shape: Shape) -> None:
        body = {
            "settings": settings(kind, shards=shape.shards, replicas=shape.replicas),
            "mappings": mapping(kind),
        }
        failure = "the indices could not be created"
        try:
            retry_transient(lambda: self._client.indices.create(index=self._index(kind), body=body), failure)
        except SinkError as error:
            # No other job creates an index of this name: an earlier attempt succeeded, but its answer was lost.
            if not isinstance(error.__cause__, RequestError) or error.__cause__.error != _EXISTS_ALREADY:
                raise

    def _wait_until_whole(self) -> None:
        """Wait for green health, except for copies without a node; a shard without any copy is lost."""
        self._wait_while_red()
        deadline = time.monotonic() + _GREEN_S
        while True:
            health = retry_transient(
                lambda: self._client.cluster.health(index=self._names),
                "the health of the new generation could not be read",
            )
            if health["status"] == "green":
                return
            # A copy of a lost node comes back with the node, or is allocated elsewhere after a minute.
            moving = health["initializing_shards"] + health["relocating_shards"]
            if health["status"] == "yellow" and (not moving or time.monotonic() > deadline):
                return
            if time.monotonic() > deadline:
                raise IndexLostError("a part of the new generation has no copy left")
            time.sleep(_POLL_EVERY_S)

    def _wait_while_red(self) -> None:
        while self._watch.check_health():
            time.sleep(_POLL_EVERY_S)

    @contextmanager
    def _lost_if_red(self) -> Iterator[None]:
        """Explain a failed write by the loss of an index, after which the build starts again."""
        try:
            yield
        except SinkError as error:
            if not isinstance(error, IndexLostError):
                self._wait_while_red()
            raise
