"""Reading an embedded generation back: what its indices hold, by id and in the order of the ids."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import tantivy

from index_mappings.embedded import STORED_COLUMN, index_directory
from index_mappings.operations import Operations
from indexer.sinks.embedded.files import read_operations
from indexer.sinks.failures import SinkError

_PAGE: Final = 5_000
# What every id and slug of a catalogue looks like; anything else would mean something in a query's text.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class EmbeddedReader:
    """One generation's directory, as of when each kind was asked for first."""

    def __init__(self, root: Path, generation: str) -> None:
        self._root = root
        self._generation = generation
        self._opened: dict[str, tuple[tantivy.Index, tantivy.Searcher]] = {}

    def reopen(self) -> None:
        """See what was committed meanwhile."""
        self._opened.clear()

    def count(self, kind: str) -> int:
        """How many documents the index says it has."""
        return int(self._open(kind)[1].num_docs)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        index, searcher = self._open(kind)
        query = tantivy.Query.term_set_query(index.schema, "id", list(ids))
        found = searcher.search(query, limit=max(1, len(ids)), count=False)
        return {values["id"]: values for values in (_stored(searcher, address) for _, address in found.hits)}

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids the index holds."""
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
                raise SinkError(f"the {kind} hold ids that no catalogue has: build a new generation")
            seen = page[-1][0]
            query = index.parse_query(f"id:>{plain[-1]}", [])

    def page(self, kind: str, after: str, most: int) -> list[tuple[str, dict[str, Any]]]:
        """The first ids after one."""
        index, searcher = self._open(kind)
        plain = _PLAIN.match(after)
        # Of an id that no catalogue has, only the beginning can be asked for; what comes too early is passed over.
        query = index.parse_query(f"id:>{plain[0]}", []) if plain else tantivy.Query.all_query()
        limit = most
        while True:
            found = searcher.search(query, limit=limit, order_by_field="id", order=tantivy.Order.Asc, count=False)
            stored = [_stored(searcher, address) for _, address in found.hits]
            later = [(values["id"], values) for values in stored if values["id"] > after]
            if len(later) >= most or len(stored) < limit:
                return later[:most]
            limit *= 2

    def operations(self) -> Operations | None:
        """What the file says."""
        return read_operations(self._root, self._generation)

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
