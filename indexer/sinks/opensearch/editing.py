"""Changes a sealed OpenSearch generation in place: documents first, then the typeahead, then the fenced stamp."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConflictError

from index_mappings.generations import STAMP, STAMP_ID, Stamp
from index_mappings.typeahead.segment import Shown
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.bulk_loading import BulkLoader
from indexer.sinks.opensearch.retries import delete_matching, retry_transient
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead
from indexer.sinks.opensearch.writing import WritableGeneration
from indexer.sinks.typeahead.background_merging import BackgroundMerging
from indexer.sinks.typeahead.editor import TypeaheadSync, typeahead_errors


class OpenSearchEditor(WritableGeneration):
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
        self._store = store
        found = self._read_stamp()
        self._fence = _fence(found)
        try:
            self._stamp = Stamp.from_wire(found["_source"]["stamp"])
        except (KeyError, TypeError, ValueError) as error:
            raise SinkError(f"the stamp of {generation} is damaged") from error
        self._typeahead = TypeaheadSync(self, store, self._stamp.typeahead, merging)

    @property
    def stamp(self) -> Stamp:
        """The current stamp."""
        return self._stamp

    def typeahead_shown(self, after: str, end: str | None) -> Mapping[str, Shown]:
        """Read the files of the typeahead."""
        return self._typeahead.shown(after, end)

    def typeahead_damaged(self, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """Read all files of the typeahead from the cluster."""
        with typeahead_errors():
            return self._store.damaged(self._stamp.typeahead, check)

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """None: a node verifies its files, and fails a shard with damaged ones."""
        return ()

    def rebuild_typeahead(self) -> None:
        """Write all files again, replacing damaged ones."""
        self._typeahead.rebuild()

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Remove, then replace documents."""
        refused = self._loader.delete(self._index(kind), removed).refused if removed else 0
        listed = list(documents)
        refused += self._loader.load(self._index(kind), listed).refused if listed else 0
        for document_id in removed:
            self._typeahead.remove(kind, document_id)
        for document in listed:
            self._typeahead.put(document)
        return refused

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove the documents that a search finds by the shops' ids; others are removed by their own ids."""
        if not shop_ids:
            return
        query = {"terms": {"shop_refs": list(shop_ids)}}
        delete_matching(self._client, self._index(kind), query, f"the {kind} of hidden shops could not be removed")

    def show(self) -> None:
        """Refresh all indices."""
        self._refresh()

    def commit(self, stamp: Stamp) -> None:
        """Write the typeahead, then replace the stamp, unless another job replaced it."""
        stamp = replace(stamp, typeahead=self._typeahead.commit())
        try:
            done = retry_transient(
                lambda: self._client.index(
                    index=self._index(STAMP), id=STAMP_ID, body={"stamp": stamp.as_wire()}, params=self._fence
                ),
                "the stamp could not be replaced",
            )
        except SinkError as error:
            if isinstance(error.__cause__, ConflictError) and self._is_ours(stamp):
                return  # an earlier attempt succeeded, but its answer was lost
            raise
        self._fence, self._stamp = _fence(done), stamp

    def close(self) -> None:
        """Do nothing."""

    def _is_ours(self, stamp: Stamp) -> bool:
        found = self._read_stamp()
        if found["_source"]["stamp"] != stamp.as_wire():
            return False
        self._fence, self._stamp = _fence(found), stamp
        return True

    def _read_stamp(self) -> dict[str, Any]:
        return retry_transient(
            lambda: self._client.get(index=self._index(STAMP), id=STAMP_ID),
            f"the stamp of {self._generation} could not be read",
        )


def _fence(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The condition that the stamp is still the one of an answer."""
    return {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
