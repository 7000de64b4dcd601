"""Documents as the embedded engine takes them: terms, the stored part, and their place in the order."""

from collections.abc import Callable

import orjson
import tantivy

from index_mappings.documents import stored_part
from index_mappings.embedded import (
    BAND_COLUMN,
    HEAD_EDGE_MAX,
    STORED_COLUMN,
    columns,
    far,
    far_field,
    head_field,
    headed,
    misspelt,
    parts_of,
    placing_columns,
)
from index_mappings.opensearch import sort_field
from index_mappings.roles import edges_field, engine_values


def schema(kind: str) -> tantivy.Schema:
    """The schema of one kind's index."""
    builder = tantivy.SchemaBuilder()
    rank = sort_field(kind)
    for column in (*columns(kind), *placing_columns(kind)):
        if column.whole:
            builder.add_integer_field(column.name, indexed=not column.sortable, fast=column.sortable)
            continue
        if column.parted:
            builder.add_json_field(column.name, stored=False, tokenizer_name="raw", index_option="basic")
            continue
        builder.add_text_field(
            column.name,
            stored=column.name == rank,
            fast=column.sortable,
            tokenizer_name="raw",
            index_option="basic",
        )
    builder.add_bytes_field(STORED_COLUMN, stored=True)
    return builder.build()


class Finisher:
    """Finishes the documents of one index."""

    def __init__(self, kind: str, head: int, place: Callable[[str], int]) -> None:
        """Prepare.

        Args:
            kind: of the documents.
            head: bands below it are the head.
            place: gives the band of a rank.
        """
        self._names = tuple(column.name for column in columns(kind))
        self._rank = sort_field(kind)
        self._headed = tuple((head_field(name), edges_field(name)) for name in headed(kind))
        self._far = tuple((far_field(name), edges_field(name)) for name in misspelt(kind))
        self._parted = tuple(
            (column.name, column.parted) for column in (*columns(kind), *placing_columns(kind)) if column.parted
        )
        self._head = head
        self._place = place

    def finish(self, document: object) -> tuple[tantivy.Document, int]:
        """The document as the engine takes it, and how many terms are in its lists."""
        values = engine_values(document)
        terms = {name: values[name] for name in self._names}
        band = self._place(terms[self._rank])
        if band < self._head:
            for head, edges in self._headed:
                terms[head] = ["", *(edge for edge in terms[edges] if len(edge) <= HEAD_EDGE_MAX)]
        for name, edges in self._far:
            terms[name] = far(terms[edges])
        count = sum(len(value) for value in terms.values() if isinstance(value, list))
        parted = {name: parts_of(characters, terms.pop(name)) for name, characters in self._parted}
        own = {BAND_COLUMN: band, STORED_COLUMN: orjson.dumps(stored_part(document))}
        finished = tantivy.Document(**terms, **own)
        for name, parts in parted.items():
            finished.add_json(name, parts)
        return finished, count
