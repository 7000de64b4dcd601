"""Writing OpenSearch generations: a whole one, and changes of one that is sealed.

Nothing shows before it is refreshed, and a generation refreshes only when its writer says so: all of a micro-batch is
seen at once.
"""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConflictError, RequestError

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP, STAMP_ID, Stamp, index_name
from index_mappings.opensearch import mapping, settings
from index_mappings.operations import OPERATIONS_ID, Operations
from indexer.sinks.opensearch_bulk import BulkLoader
from indexer.sinks.opensearch_merging import merge
from indexer.sinks.opensearch_patience import PATIENCE_S, IncompleteError, patiently
from indexer.sinks.opensearch_reading import OpenSearchReader
from indexer.sinks.protocol import IndexLostError, SinkError

KINDS: Final = (*DOCUMENTS, STAMP)
_GREEN_S: Final = 120.0
_THERE_ALREADY: Final = "resource_already_exists_exception"
_LOOK_EVERY_S: Final = 0.2
_IMPATIENT_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How a generation's indices are laid out: primary shards of each, and copies of each shard."""

    shards: int
    replicas: int


class OpenSearchWriter(OpenSearchReader):
    """The indices of a generation that is being written."""

    def __init__(
        self,
        client: OpenSearch,
        prefix: str,
        generation: str,
        loader: BulkLoader,
        *,
        publish: Callable[[], None],
        discard: Callable[[], None],
    ) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        self.publish = publish
        self.discard = discard

    def create(self, shape: Shape) -> None:
        """Make the indices; each is gone again if that fails."""
        try:
            for kind in KINDS:
                self._create(kind, shape)
        except SinkError:
            self.discard()
            raise

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Send the documents, a few requests at a time; those that are refused for good are dead letters."""
        return self._loader.load(self._index(kind), documents).written

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:
        """Replace the document beside the stamp."""
        write_operations(self._client, self._index(STAMP), operations, patient=patient)

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Make one segment of each kind's documents; `meanwhile` is called while that takes time."""
        merge(self._client, [self._index(kind) for kind in DOCUMENTS], meanwhile)

    def seal(self, stamp: Stamp) -> None:
        """Write the stamp, refresh, and wait until every copy is there."""
        patiently(
            lambda: self._client.index(
                index=self._index(STAMP), id=STAMP_ID, body={"stamp": stamp.as_wire()}, params={"refresh": "true"}
            ),
            "the stamp could not be written",
        )
        refresh(self._client, self._prefix, self._generation)
        self._wait_until_whole()

    def _create(self, kind: str, shape: Shape) -> None:
        body = {
            "settings": settings(kind, shards=shape.shards, replicas=shape.replicas),
            "mappings": mapping(kind),
        }
        failure = "the indices could not be created"
        try:
            patiently(lambda: self._client.indices.create(index=self._index(kind), body=body), failure)
        except SinkError as error:
            # Nobody else makes an index of this name: the answer to an earlier try was lost.
            if not isinstance(error.__cause__, RequestError) or error.__cause__.error != _THERE_ALREADY:
                raise

    def _wait_until_whole(self) -> None:
        """Wait for green; a copy that has no node to go to is not waited for, a part without any copy is lost."""
        names = ",".join(self._index(kind) for kind in KINDS)
        until = time.monotonic() + _GREEN_S
        while True:
            health = patiently(
                lambda: self._client.cluster.health(index=names),
                "the health of the new generation could not be asked for",
            )
            if health["status"] == "green":
                return
            # A copy that went with its node comes back with it, or after a minute elsewhere: by itself, and while live.
            moving = health["initializing_shards"] + health["relocating_shards"]
            if health["status"] == "yellow" and (not moving or time.monotonic() > until):
                return
            if time.monotonic() > until:
                raise IndexLostError("a part of the new generation has no copy left")
            time.sleep(_LOOK_EVERY_S)


class OpenSearchEditor(OpenSearchReader):
    """A sealed generation that is changed in place; open it only under the lease."""

    def __init__(self, client: OpenSearch, prefix: str, generation: str, loader: BulkLoader) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        found = patiently(
            lambda: client.get(index=self._index(STAMP), id=STAMP_ID), f"the stamp of {generation} could not be read"
        )
        self._fence = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        try:
            self._stamp = Stamp.from_wire(found["_source"]["stamp"])
        except (KeyError, TypeError, ValueError) as error:
            raise SinkError(f"the stamp of {generation} is damaged") from error

    @property
    def stamp(self) -> Stamp:
        """The stamp as it is now."""
        return self._stamp

    def suggestions(self, after: str, end: str | None) -> None:
        """Nothing is kept beside the indices."""

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Remove, then replace documents."""
        refused = self._loader.delete(self._index(kind), removed).refused if removed else 0
        listed = list(documents)
        return refused + (self._loader.load(self._index(kind), listed).refused if listed else 0)

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove what a search finds by the shops' ids; what was never shown is removed by its own id."""
        if not shop_ids:
            return
        body = {"query": {"terms": {"shop_refs": list(shop_ids)}}}

        def remove() -> None:
            answer = self._client.delete_by_query(index=self._index(kind), body=body, params={"conflicts": "proceed"})
            if answer["failures"] or answer["timed_out"]:
                raise IncompleteError

        patiently(remove, f"the {kind} of hidden shops could not be removed")

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:
        """Replace the document beside the stamp."""
        write_operations(self._client, self._index(STAMP), operations, patient=patient)

    def show(self) -> None:
        """One refresh of all indices."""
        refresh(self._client, self._prefix, self._generation)

    def commit(self, stamp: Stamp) -> None:
        """Replace the stamp's document, unless somebody else did."""
        try:
            done = patiently(
                lambda: self._client.index(
                    index=self._index(STAMP), id=STAMP_ID, body={"stamp": stamp.as_wire()}, params=self._fence
                ),
                "the stamp could not be replaced",
            )
        except SinkError as error:
            if isinstance(error.__cause__, ConflictError) and self._is_ours(stamp):
                return  # the answer to an earlier try was lost
            raise
        self._fence = {"if_seq_no": done["_seq_no"], "if_primary_term": done["_primary_term"]}
        self._stamp = stamp

    def close(self) -> None:
        """Nothing is held open."""

    def _is_ours(self, stamp: Stamp) -> bool:
        found = patiently(
            lambda: self._client.get(index=self._index(STAMP), id=STAMP_ID), "the stamp could not be read"
        )
        if found["_source"]["stamp"] != stamp.as_wire():
            return False
        self._fence = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        self._stamp = stamp
        return True


def write_operations(client: OpenSearch, index: str, operations: Operations, *, patient: bool) -> None:
    """Write an operations document without a refresh: it is read by its id, which sees it at once.

    Raises:
        SinkError: it could not be written.
    """
    body = {"stamp": {"operations": operations.as_wire()}}  # the one field that the strict mapping of stamps knows
    params = {} if patient else {"request_timeout": _IMPATIENT_S}
    patiently(
        lambda: client.index(index=index, id=OPERATIONS_ID, body=body, params=dict(params)),
        "the operations document could not be written",
        PATIENCE_S if patient else _IMPATIENT_S,
    )


def refresh(client: OpenSearch, prefix: str, generation: str) -> None:
    """Show what was written to a generation.

    Raises:
        SinkError: a shard could not do it.
    """
    names = ",".join(index_name(prefix, kind, generation) for kind in DOCUMENTS)

    def refreshed() -> None:
        answer = client.indices.refresh(index=names)
        if answer["_shards"]["failed"]:
            raise IncompleteError

    patiently(refreshed, "what was written could not be shown")
