"""Reads the documents of an embedded generation, by id and in the order of the ids."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import tantivy

from index_mappings.embedded import STORED_COLUMN, index_directory, operations_path
from index_mappings.generations import Operations
from index_mappings.integrity import from_checked_json
from indexer.sinks.failures import SinkError

_PAGE: Final = 5_000
# The syntax of all ids and slugs; other characters would have a meaning in a query.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class EmbeddedReader:
    """Reads one generation; each kind as of when it was opened."""

    def __init__(self, root: Path, generation: str) -> None:
        self._root = root
        self._generation = generation
        self._opened: dict[str, tuple[tantivy.Index, tantivy.Searcher]] = {}

    def reopen(self) -> None:
        """Read later commits as well."""
        self._opened.clear()

    def count(self, kind: str) -> int:
        """The number of documents of the index."""
        return int(self._open(kind)[1].num_docs)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        index, searcher = self._open(kind)
        query = tantivy.Query.term_set_query(index.schema, "id", list(ids))
        found = searcher.search(query, limit=max(1, len(ids)), count=False)
        return {values["id"]: values for values in (_stored(searcher, address) for _, address in found.hits)}

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        """The number of these ids in the index."""
        index, searcher = self._open(kind)
        query = tantivy.Query.term_set_query(index.schema, "id", list(ids))
        return len(searcher.search(query, limit=max(1, len(ids)), count=False).hits)

    def scan(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Ids and stored parts in the order of the ids."""
        index, searcher = self._open(kind)
        seen, query = "", tantivy.Query.all_query()
        while True:
            found = searcher.search(query, limit=_PAGE, order_by_field="id", order=tantivy.Order.Asc, count=False)
            page = [(stored["id"], stored) for stored in (_stored(searcher, address) for _, address in found.hits)]
            yield from ((document_id, stored) for document_id, stored in page if document_id > seen)
            if len(page) < _PAGE:
                return
            plain = [document_id for document_id, _ in page if _PLAIN.fullmatch(document_id)]
            if not plain or plain[-1] <= seen:
                raise SinkError(f"the {kind} have invalid ids: build a new generation")
            seen = page[-1][0]
            query = index.parse_query(f"id:>{plain[-1]}", [])

    def page(self, kind: str, after: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        """The first ids after one."""
        index, searcher = self._open(kind)
        plain = _PLAIN.match(after)
        # A query can only have the valid beginning of an invalid id; earlier ids are skipped.
        query = index.parse_query(f"id:>{plain[0]}", []) if plain else tantivy.Query.all_query()
        size = limit
        while True:
            found = searcher.search(query, limit=size, order_by_field="id", order=tantivy.Order.Asc, count=False)
            stored = [_stored(searcher, address) for _, address in found.hits]
            later = [(values["id"], values) for values in stored if values["id"] > after]
            if len(later) >= limit or len(stored) < size:
                return later[:limit]
            size *= 2

    def operations(self) -> Operations | None:
        """The operations document."""
        path = operations_path(self._root, self._generation)
        try:
            return Operations.from_wire(from_checked_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def _open(self, kind: str) -> tuple[tantivy.Index, tantivy.Searcher]:
        if kind not in self._opened:
            try:
                index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
                index.config_reader("manual")
                self._opened[kind] = (index, index.searcher())
            except (OSError, ValueError) as error:
                raise SinkError(f"the {kind} of generation {self._generation} cannot be read: {error}") from error
        return self._opened[kind]


def _stored(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> dict[str, Any]:
    stored: dict[str, Any] = orjson.loads(searcher.doc(address)[STORED_COLUMN][0])
    return stored
