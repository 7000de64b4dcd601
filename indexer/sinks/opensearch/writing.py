"""Writing a whole OpenSearch generation.

Nothing shows before it is refreshed, and a generation refreshes only when its writer says so: all of a micro-batch is
seen at once.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from index_mappings.documents import DOCUMENTS, CategoryDocument, ShopDocument
from index_mappings.generations import STAMP, STAMP_ID, Stamp, index_name
from index_mappings.opensearch import mapping, settings
from index_mappings.operations import OPERATIONS_ID, Operations
from index_mappings.typeahead.chunks import TYPEAHEAD
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.bulk_loading import BulkLoader
from indexer.sinks.opensearch.merging import merge
from indexer.sinks.opensearch.reading import OpenSearchReader
from indexer.sinks.opensearch.retries import PATIENCE_S, IncompleteError, retry_transient
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead, local_files
from indexer.sinks.typeahead.build import TypeaheadBuild

# What the aliases lead to; the typeahead is asked for by the generation of the stamp.
ALIASED: Final = (*DOCUMENTS, STAMP)
KINDS: Final = (TYPEAHEAD, *ALIASED)
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
        store: OpenSearchTypeahead,
        *,
        publish: Callable[[], None],
        discard: Callable[[], None],
    ) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        self._typeahead = TypeaheadBuild(store)
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
        return self._loader.load(self._index(kind), self._with_typeahead(documents)).written

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:
        """Replace the document beside the stamp."""
        write_operations(self._client, self._index(STAMP), operations, patient=patient)

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Make one segment of each kind's documents; `meanwhile` is called while that takes time."""
        merge(self._client, [self._index(kind) for kind in DOCUMENTS], meanwhile)

    def seal(self, stamp: Stamp) -> Stamp:
        """Write the typeahead, then the stamp that leads to it, refresh, and wait until every copy is there."""
        with local_files(), self._typeahead as typeahead:
            stamp = replace(stamp, typeahead=typeahead.finish())
        retry_transient(
            lambda: self._client.index(
                index=self._index(STAMP), id=STAMP_ID, body={"stamp": stamp.as_wire()}, params={"refresh": "true"}
            ),
            "the stamp could not be written",
        )
        refresh(self._client, self._prefix, self._generation)
        self._wait_until_whole()
        return stamp

    def _with_typeahead(self, documents: Iterable[object]) -> Iterator[object]:
        """The same documents, of which the typeahead takes its part as they pass."""
        for document in documents:
            with local_files():
                if isinstance(document, ShopDocument):
                    self._typeahead.add_shop(document)
                elif isinstance(document, CategoryDocument):
                    self._typeahead.add_category(document)
            yield document

    def _create(self, kind: str, shape: Shape) -> None:
        body = {
            "settings": settings(kind, shards=shape.shards, replicas=shape.replicas),
            "mappings": mapping(kind),
        }
        failure = "the indices could not be created"
        try:
            retry_transient(lambda: self._client.indices.create(index=self._index(kind), body=body), failure)
        except SinkError as error:
            # Nobody else makes an index of this name: the answer to an earlier try was lost.
            if not isinstance(error.__cause__, RequestError) or error.__cause__.error != _THERE_ALREADY:
                raise

    def _wait_until_whole(self) -> None:
        """Wait for green; a copy that has no node to go to is not waited for, a part without any copy is lost."""
        names = ",".join(self._index(kind) for kind in KINDS)
        until = time.monotonic() + _GREEN_S
        while True:
            health = retry_transient(
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


def write_operations(client: OpenSearch, index: str, operations: Operations, *, patient: bool) -> None:
    """Write an operations document without a refresh: it is read by its id, which sees it at once.

    Raises:
        SinkError: it could not be written.
    """
    body = {"stamp": {"operations": operations.as_wire()}}  # the one field that the strict mapping of stamps knows
    params = {} if patient else {"request_timeout": _IMPATIENT_S}
    retry_transient(
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

    retry_transient(refreshed, "what was written could not be shown")
