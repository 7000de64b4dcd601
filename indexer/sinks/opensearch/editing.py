"""Changing a sealed OpenSearch generation in place: documents first, then the typeahead, then the fenced stamp."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConflictError

from index_mappings.generations import STAMP, STAMP_ID, Stamp
from index_mappings.operations import Operations
from index_mappings.typeahead.segment import Shown
from indexer.sinks.failures import SinkError, TypeaheadDamagedError
from indexer.sinks.opensearch.bulk_loading import BulkLoader
from indexer.sinks.opensearch.reading import OpenSearchReader
from indexer.sinks.opensearch.retries import IncompleteError, retry_transient
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead, local_files
from indexer.sinks.opensearch.writing import refresh, write_operations
from indexer.sinks.typeahead.build import rebuild_typeahead
from indexer.sinks.typeahead.editor import TypeaheadEditor
from indexer.sinks.typeahead.folding import Folding

_LOG: Final = logging.getLogger(__name__)


class OpenSearchEditor(OpenSearchReader):
    """A sealed generation that is changed in place; open it only under the lease."""

    def __init__(
        self,
        client: OpenSearch,
        prefix: str,
        generation: str,
        *,
        loader: BulkLoader,
        store: OpenSearchTypeahead,
        folding: Folding,
    ) -> None:
        super().__init__(client, prefix, generation)
        self._loader = loader
        self._store = store
        found = retry_transient(
            lambda: client.get(index=self._index(STAMP), id=STAMP_ID), f"the stamp of {generation} could not be read"
        )
        self._fence = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        try:
            self._stamp = Stamp.from_wire(found["_source"]["stamp"])
        except (KeyError, TypeError, ValueError) as error:
            raise SinkError(f"the stamp of {generation} is damaged") from error
        self._typeahead = TypeaheadEditor(store, self._stamp.typeahead, folding)
        self._putting: dict[str, Callable[[Any], None]] = {
            "shops": self._typeahead.put_shop,
            "categories": self._typeahead.put_category,
        }
        self._removing = {"shops": self._typeahead.remove_shop, "categories": self._typeahead.remove_category}

    @property
    def stamp(self) -> Stamp:
        """The stamp as it is now."""
        return self._stamp

    def typeahead_shown(self, after: str, end: str | None) -> Mapping[str, Shown]:
        """What the typeahead's files say."""
        try:
            return self._typeahead.shown(after, end)
        except (OSError, ValueError) as error:
            raise TypeaheadDamagedError(f"the typeahead cannot be read: {error}") from error

    def typeahead_damaged(self) -> tuple[str, ...]:
        """Read all files that the stamp leads to from the cluster."""
        with local_files():
            return self._store.damaged(self._stamp.typeahead)

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """None: a node checks its own files, and fails a shard whose files are damaged."""
        return ()

    def rebuild_typeahead(self) -> None:
        """Write all files again; a damaged one that comes out the same is replaced."""
        with local_files():
            self._typeahead.restart(rebuild_typeahead(self, self._store))

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Remove, then replace documents."""
        refused = self._loader.delete(self._index(kind), removed).refused if removed else 0
        listed = list(documents)
        refused += self._loader.load(self._index(kind), listed).refused if listed else 0
        for document_id in removed if kind in self._removing else ():
            self._removing[kind](document_id)
        for document in listed if kind in self._putting else ():
            self._putting[kind](document)
        return refused

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove what a search finds by the shops' ids; what was never shown is removed by its own id."""
        if not shop_ids:
            return
        body = {"query": {"terms": {"shop_refs": list(shop_ids)}}}

        def remove() -> None:
            answer = self._client.delete_by_query(index=self._index(kind), body=body, params={"conflicts": "proceed"})
            if answer["failures"] or answer["timed_out"]:
                raise IncompleteError

        retry_transient(remove, f"the {kind} of hidden shops could not be removed")

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:
        """Replace the document beside the stamp."""
        write_operations(self._client, self._index(STAMP), operations, patient=patient)

    def show(self) -> None:
        """One refresh of all indices."""
        refresh(self._client, self._prefix, self._generation)

    def commit(self, stamp: Stamp) -> None:
        """Write the typeahead, then replace the stamp's document, unless somebody else did."""
        stamp = replace(stamp, typeahead=self._commit_typeahead())
        try:
            done = retry_transient(
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

    def _commit_typeahead(self) -> str:
        """Write the changes of the typeahead, or all of it where its files can't be read. Returns its new name."""
        with local_files():
            try:
                return self._typeahead.commit()
            except (FileNotFoundError, ValueError) as error:
                # A shop that is under review now must not stay visible until somebody repairs it.
                _LOG.warning("the typeahead is built again from the index: %s", error)
                self._typeahead.restart(rebuild_typeahead(self, self._store))
                return self._typeahead.commit()

    def _is_ours(self, stamp: Stamp) -> bool:
        found = retry_transient(
            lambda: self._client.get(index=self._index(STAMP), id=STAMP_ID), "the stamp could not be read"
        )
        if found["_source"]["stamp"] != stamp.as_wire():
            return False
        self._fence = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        self._stamp = stamp
        return True
