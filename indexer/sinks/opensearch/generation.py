"""Generations in OpenSearch: read, written as a whole, and changed when they are sealed.

An incomplete answer is an error, as in the service (E3). Automatic refreshes are off, so that readers see all documents
of a micro-batch together. Changes of a sealed generation are written in the order documents, typeahead, fenced stamp.
A merge changes no answers, so one that fails or takes too long is logged and fails no build.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConflictError, RequestError

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import OPERATIONS_ID, STAMP, STAMP_ID, Operations, Stamp, index_name
from index_mappings.opensearch import TYPEAHEAD, mapping, settings
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.generation_typeahead import SinkTypeaheadBuild, SinkTypeaheadEditor, needed_space
from indexer.sinks.opensearch.bulk_loading import BulkLoader, IndexWatch
from indexer.sinks.opensearch.retries import (
    RETRY_S,
    IncompleteError,
    delete_matching,
    fence,
    none_if_missing,
    retry_transient,
    whole,
)
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead
from shop_directory.typeahead.writing.merging import BackgroundMerging

# A million shops take minutes, as their build does.
MERGE_BOUND_S: Final = 600.0
# The kinds with aliases; services read the typeahead by the generation of the stamp.
ALIASED: Final = (*DOCUMENTS, STAMP)
KINDS: Final = (TYPEAHEAD, *ALIASED)
_WHOLE: Final = {"allow_partial_search_results": "false"}
_GREEN_S: Final = 120.0
_EXISTS_ALREADY: Final = "resource_already_exists_exception"
_POLL_EVERY_S: Final = 0.2
_BRIEF_RETRY_S: Final = 3.0
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


class OpenSearchReader:
    """Reads the indices of one generation, and writes single documents next to its stamp."""

    def __init__(self, client: OpenSearch, prefix: str, generation: str) -> None:
        self._client = client
        self._prefix = prefix
        self._generation = generation

    def count(self, kind: str) -> int:
        return self._count(kind, {"match_all": {}})

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        return self._count(kind, {"terms": {"id": list(ids)}})

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        if not ids:
            return {}  # the engine refuses an empty request

        def ask() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self._client.mget(body={"ids": list(ids)}, index=self._index(kind))["docs"]
            if any("error" in document for document in found):
                raise IncompleteError
            return found

        found = retry_transient(ask, f"the {kind} could not be read back")
        return {document["_id"]: document["_source"] for document in found if document["found"]}

    def page(self, kind: str, after: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        body = {"query": {"match_all": {}}, "size": limit, "sort": [{"id": "asc"}], "search_after": [after]}
        answer = retry_transient(
            lambda: whole(self._client.search(index=self._index(kind), body=body, params=_WHOLE)),
            f"a page of the {kind} could not be read",
        )
        return [(hit["_id"], hit["_source"]) for hit in answer["hits"]["hits"]]

    def operations(self) -> Operations | None:
        """The document next to the stamp."""
        index, failure = self._index(STAMP), "the operations document could not be read"
        found = none_if_missing(lambda: self._client.get(index=index, id=OPERATIONS_ID), failure)
        try:
            return None if found is None else Operations.from_wire(found["_source"]["stamp"]["operations"])
        except (KeyError, TypeError, ValueError):
            return None

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        """Write the document next to the stamp without a refresh, as it is read by its id."""
        body, failure = {"stamp": {"operations": operations.as_wire()}}, "the operations document could not be written"
        if wait_for_engine:
            self.put(OPERATIONS_ID, body, failure)
        else:
            self.put(OPERATIONS_ID, body, failure, {"request_timeout": _BRIEF_RETRY_S}, _BRIEF_RETRY_S)

    def put(
        self,
        document_id: str,
        body: object,
        failure: str,
        params: Mapping[str, Any] = MappingProxyType({}),
        seconds: float = RETRY_S,
    ) -> dict[str, Any]:
        """Write a document of the stamp's index; its one field, `stamp`, is all that the strict mapping allows."""
        index = self._index(STAMP)
        return retry_transient(
            lambda: self._client.index(index=index, id=document_id, body=body, params=dict(params)), failure, seconds
        )

    def _count(self, kind: str, query: dict[str, Any]) -> int:
        body = {"query": query, "size": 0, "track_total_hits": True}
        answer = retry_transient(
            lambda: whole(self._client.search(index=self._index(kind), body=body, params=_WHOLE)),
            f"the {kind} could not be counted",
        )
        return int(answer["hits"]["total"]["value"])

    def _index(self, kind: str) -> str:
        return index_name(self._prefix, kind, self._generation)

    def show(self) -> None:
        """Refresh all indices."""
        names = ",".join(self._index(kind) for kind in DOCUMENTS)

        def refresh() -> None:
            if self._client.indices.refresh(index=names)["_shards"]["failed"]:
                raise IncompleteError

        retry_transient(refresh, "the generation could not be refreshed")


class OpenSearchWriter(OpenSearchReader):
    """Writes a new generation."""

    def __init__(
        self, client: OpenSearch, prefix: str, generation: str, loader: BulkLoader, store: OpenSearchTypeahead
    ) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        self._store = store
        self._typeahead = SinkTypeaheadBuild(store)
        self._names = ",".join(self._index(kind) for kind in KINDS)
        self._watch = IndexWatch(client, self._names)

    def needed_space(self, counts: Mapping[str, int]) -> tuple[Path, int]:
        """The local copy of the typeahead. The cluster watches over its own disks."""
        return self._store.directory, needed_space(counts["shops"])

    def create(self, shards: int, replicas: int) -> None:
        """Create the indices with their primary shards, and copies of each; after a failure some of them may exist."""
        for kind in KINDS:
            body = {"settings": settings(kind, shards=shards, replicas=replicas), "mappings": mapping(kind)}
            create = partial(self._client.indices.create, index=self._index(kind), body=body)
            try:
                retry_transient(create, "the indices could not be created")
            except SinkError as error:
                # No other job creates an index of this name: an earlier attempt succeeded, but its answer was lost.
                if not isinstance(error.__cause__, RequestError) or error.__cause__.error != _EXISTS_ALREADY:
                    raise

    def add(
        self,
        kind: str,
        documents: Iterable[object],
        tick: Callable[[], None] = lambda: None,  # noqa: ARG002 - documents are written as they are received
    ) -> int:
        """Load the documents; those that are refused for good go to the dead-letter file."""
        return self._loader.load(self._index(kind), self._typeahead.passing(documents)).written

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        """Write the document next to the stamp; raises IndexLostError if a shard of the generation has no copy left."""
        self._wait_while_red()
        with self._lost_if_red():
            super().write_operations(operations, wait_for_engine=wait_for_engine)

    def merge(self, tick: Callable[[], None]) -> None:
        """Merge each kind's index to one segment."""
        merge(self._client, [self._index(kind) for kind in DOCUMENTS], tick)

    def seal(self, stamp: Stamp) -> Stamp:
        """Write the typeahead, then the stamp that names it, refresh, and wait for all copies."""
        with self._lost_if_red():
            with closing(self._typeahead) as typeahead:
                stamp = replace(stamp, typeahead=typeahead.finish())
            self.put(STAMP_ID, {"stamp": stamp.as_wire()}, "the stamp could not be written", {"refresh": "true"})
            self.show()
        self._wait_until_whole()
        return stamp

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


class OpenSearchEditor(OpenSearchReader):
    """Changes a sealed generation in place; only under the lease."""

    def __init__(
        self,
        client: OpenSearch,
        prefix: str,
        generation: str,
        *,
        loader: BulkLoader,
        store: OpenSearchTypeahead,
        merging: BackgroundMerging,
    ) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        found = self._read_stamp()
        self._fence = fence(found)
        try:
            self._stamp = Stamp.from_wire(found["_source"]["stamp"])
        except (KeyError, TypeError, ValueError) as error:
            raise SinkError(f"the stamp of {generation} is damaged") from error
        self.typeahead = SinkTypeaheadEditor(self, store, self._stamp.typeahead, merging)

    @property
    def stamp(self) -> Stamp:
        return self._stamp

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """None: a node verifies its files, and fails a shard with damaged ones."""
        return ()

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Remove, then replace documents."""
        refused = self._loader.delete(self._index(kind), removed).refused if removed else 0
        listed = list(documents)
        refused += self._loader.load(self._index(kind), listed).refused if listed else 0
        for document_id in removed:
            self.typeahead.remove(kind, document_id)
        for document in listed:
            self.typeahead.put(document)
        return refused

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove the documents that a search finds by the shops' ids; others are removed by their own ids."""
        if not shop_ids:
            return
        query = {"terms": {"shop_refs": list(shop_ids)}}
        delete_matching(self._client, self._index(kind), query, f"the {kind} of hidden shops could not be removed")

    def commit(self, stamp: Stamp) -> None:
        """Write the typeahead, then replace the stamp, unless another job replaced it."""
        stamp = replace(stamp, typeahead=self.typeahead.commit())
        try:
            done = self.put(STAMP_ID, {"stamp": stamp.as_wire()}, "the stamp could not be replaced", self._fence)
        except SinkError as error:
            if isinstance(error.__cause__, ConflictError) and self._is_ours(stamp):
                return  # an earlier attempt succeeded, but its answer was lost
            raise
        self._fence, self._stamp = fence(done), stamp

    def close(self) -> None:
        """Do nothing."""

    def _is_ours(self, stamp: Stamp) -> bool:
        found = self._read_stamp()
        if found["_source"]["stamp"] != stamp.as_wire():
            return False
        self._fence, self._stamp = fence(found), stamp
        return True

    def _read_stamp(self) -> dict[str, Any]:
        return retry_transient(
            lambda: self._client.get(index=self._index(STAMP), id=STAMP_ID),
            f"the stamp of {self._generation} could not be read",
        )


def merge(client: OpenSearch, indices: Sequence[str], tick: Callable[[], None], bound: float = MERGE_BOUND_S) -> bool:
    """Merge, and wait for the end; readers see no change before the next refresh.

    The indices are of a generation that no other job writes to. `tick` is called repeatedly, at least each half
    second while the cluster answers; its errors are raised. A merge that takes longer than `bound` seconds continues in
    the cluster, but is not waited for. Returns whether all indices were merged; if not, that is logged.
    """
    deadline = time.monotonic() + bound
    names = ",".join(indices)
    # After a flush, a merge drops the sources that the engine stores for the recovery of replicas: a third of an index.
    _logged(lambda: client.indices.flush(index=names), "the new generation could not be flushed before its merge")
    # New parameters for each attempt, as the client removes some of them.
    started = _logged(
        lambda: client.indices.forcemerge(index=names, params={"max_num_segments": 1, "wait_for_completion": "false"}),
        "the new generation could not be merged",
    )
    if started is None:
        return False
    task, pause = started["task"], _FIRST_PAUSE_S
    while time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
        tick()
        found = _logged(lambda: client.tasks.get(task_id=task), "it is not known whether the new generation was merged")
        if found is None:
            return False
        if found["completed"]:
            is_whole = "error" not in found and not found["response"]["_shards"]["failed"]
            if not is_whole:
                _LOG.warning("a part of the new generation could not be merged; it stays as it is")
            return is_whole
    _LOG.warning("the new generation was not merged within %g s; it stays as it is", bound)
    return False


def _logged(ask: Callable[[], dict[str, Any]], failure: str) -> dict[str, Any] | None:
    """The answer; None after a failure, which is logged."""
    try:
        return retry_transient(ask, failure)
    except SinkError as error:
        _LOG.warning("%s", error)
        return None
