"""The OpenSearch sink: an index a kind a generation, published by one atomic change of all aliases (G1).

What is replaced must still be there (`must_exist`), so a publisher that was overtaken fails instead of winning.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException
from opensearchpy.helpers import parallel_bulk

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, index_name, is_generation
from index_mappings.opensearch import mapping, settings
from index_mappings.roles import engine_values
from indexer.sinks.protocol import SinkError

_KINDS: Final = (*DOCUMENTS, STAMP)
_CHUNK_DOCUMENTS: Final = 500
_CHUNK_BYTES: Final = 8 * 1024 * 1024
_TIMEOUT: Final = 60.0


class OpenSearchSink:
    """Generations in a cluster."""

    def __init__(self, urls: Sequence[str], prefix: str, shards: int = 1) -> None:
        """Connect lazily.

        Args:
            urls: the cluster's nodes.
            prefix: what all index names begin with.
            shards: primary shards of each index of documents.
        """
        # Below these levels the client logs whole requests: shops, and the hidden ids that verification asks for.
        logging.getLogger("opensearch").setLevel(logging.INFO)
        logging.getLogger("opensearchpy.trace").setLevel(logging.WARNING)
        self._client = OpenSearch(list(urls), timeout=_TIMEOUT)
        self._prefix = prefix
        self._shards = shards

    def live(self) -> Stamp | None:
        """The stamp behind the alias."""
        try:
            found = self._client.get(index=alias_name(self._prefix, STAMP), id=STAMP_ID)
            return Stamp.from_wire(found["_source"]["stamp"])
        except NotFoundError:
            return None
        except (OpenSearchException, ValueError, KeyError) as error:
            raise SinkError(f"what is live cannot be read: {error}") from error

    def begin(self, generation: str) -> "OpenSearchWriter":
        """Create the generation's indices, to be filled without refreshes and replicas."""
        replaced = self.live()
        writer = OpenSearchWriter(self._client, self._prefix, generation, replaced.generation if replaced else None)
        try:
            for kind in _KINDS:
                body = {"settings": settings(kind, shards=self._shards, replicas=0), "mappings": mapping(kind)}
                body["settings"]["refresh_interval"] = "-1"
                self._client.indices.create(index=index_name(self._prefix, kind, generation), body=body)
        except OpenSearchException as error:
            writer.discard()
            raise SinkError(f"the indices could not be created: {error}") from error
        return writer

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """Delete the indices of other generations."""
        try:
            names = self._client.indices.get(index=f"{self._prefix}-*", params={"expand_wildcards": "all"})
            others = [name for name in names if self._generation_of(name) not in (None, *keep)]
            for name in others:
                self._client.indices.delete(index=name, params={"ignore_unavailable": "true"})
        except OpenSearchException as error:
            raise SinkError(f"older generations could not be removed: {error}") from error
        return tuple(sorted({str(self._generation_of(name)) for name in others}))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _generation_of(self, name: str) -> str | None:
        for kind in _KINDS:
            generation = name.removeprefix(f"{self._prefix}-{kind}-")
            if generation != name and is_generation(generation):
                return generation
        return None


class OpenSearchWriter:
    """The indices of one generation."""

    def __init__(self, client: OpenSearch, prefix: str, generation: str, replaced: str | None) -> None:
        self._client = client
        self._prefix = prefix
        self._generation = generation
        self._replaced = replaced

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Send the documents, a few requests at a time."""
        index = self._index(kind)
        count = 0
        try:
            for _, _ in parallel_bulk(
                self._client,
                _actions(index, documents),
                thread_count=2,
                queue_size=2,
                chunk_size=_CHUNK_DOCUMENTS,
                max_chunk_bytes=_CHUNK_BYTES,
            ):
                count += 1
        except OpenSearchException as error:
            # The error's own text holds documents.
            raise SinkError(f"the {kind} could not be written: {type(error).__name__}") from error
        return count

    def seal(self, stamp: Stamp) -> None:
        """Write the stamp, refresh, and give the indices the settings with which they serve."""
        names = ",".join(self._index(kind) for kind in _KINDS)
        try:
            self._client.index(index=self._index(STAMP), body={"stamp": stamp.as_wire()}, id=STAMP_ID)
            nodes = self._client.cluster.health()["number_of_data_nodes"]
            serving = {"refresh_interval": None, "number_of_replicas": 1 if nodes > 1 else 0}
            self._client.indices.put_settings(body={"index": serving}, index=names)
            self._client.indices.refresh(index=names)
            self._client.cluster.health(index=names, params={"wait_for_status": "green"})
        except OpenSearchException as error:
            raise SinkError(f"the indices could not be made ready: {error}") from error

    def count(self, kind: str) -> int:
        """How many documents a search can find."""
        try:
            return int(self._client.count(index=self._index(kind))["count"])
        except OpenSearchException as error:
            raise SinkError(f"the {kind} could not be counted: {error}") from error

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        if not ids:
            return {}  # the engine refuses to be asked for nothing
        try:
            found = self._client.mget(body={"ids": list(ids)}, index=self._index(kind))["docs"]
        except OpenSearchException as error:
            raise SinkError(f"the {kind} could not be read back: {error}") from error
        return {document["_id"]: document["_source"] for document in found if document["found"]}

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids a search can find."""
        try:
            body = {"query": {"terms": {"id": list(ids)}}}
            return int(self._client.count(index=self._index(kind), body=body)["count"])
        except OpenSearchException as error:
            raise SinkError(f"the {kind} could not be counted by id: {error}") from error

    def publish(self) -> None:
        """Move all aliases at once."""
        actions: list[dict[str, Any]] = []
        for kind in _KINDS:
            alias = alias_name(self._prefix, kind)
            if self._replaced is not None:
                old = index_name(self._prefix, kind, self._replaced)
                actions.append({"remove": {"index": old, "alias": alias, "must_exist": True}})
            # Two first publishers have no predecessor to lose; but of a write index an alias can have only one.
            actions.append({"add": {"index": self._index(kind), "alias": alias, "is_write_index": True}})
        try:
            self._client.indices.update_aliases(body={"actions": actions})
        except OpenSearchException as error:
            raise SinkError(f"the generation could not be published: {error}") from error

    def discard(self) -> None:
        """Delete the indices, as far as they are there."""
        names = [self._index(kind) for kind in _KINDS]
        try:
            self._client.indices.delete(index=",".join(names), params={"ignore_unavailable": "true"})
        except OpenSearchException as error:
            raise SinkError(f"an unfinished generation could not be removed: {error}") from error

    def _index(self, kind: str) -> str:
        return index_name(self._prefix, kind, self._generation)


def _actions(index: str, documents: Iterable[object]) -> Iterator[dict[str, Any]]:
    for document in documents:
        values = engine_values(document)
        yield {"_op_type": "index", "_index": index, "_id": values["id"], "_source": values}
