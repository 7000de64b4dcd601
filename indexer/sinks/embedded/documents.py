"""Documents in the form of the embedded engine: terms, the stored part, and the band."""

from collections.abc import Callable

import orjson
import tantivy

from index_mappings.documents import stored_part
from index_mappings.embedded import BAND_COLUMN, STORED_COLUMN, column_values, columns
from index_mappings.opensearch import sort_field


def schema(kind: str) -> tantivy.Schema:
    """The schema of one kind's index."""
    builder = tantivy.SchemaBuilder()
    rank = sort_field(kind)
    for column in columns(kind):
        if column.whole:
            builder.add_integer_field(column.name, indexed=not column.sortable, fast=column.sortable)
            continue
        builder.add_text_field(
            column.name,
            stored=column.name == rank,
            fast=column.sortable,
            tokenizer_name="raw",
            index_option="position" if column.ordered else "basic",
        )
    builder.add_bytes_field(STORED_COLUMN, stored=True)
    return builder.build()


def finished(kind: str, document: object, band_of: Callable[[str], int]) -> tantivy.Document:
    """The document in the engine's form.

    Args:
        kind: its kind.
        document: a document of the contract.
        band_of: returns the band of a rank.
    """
    values = column_values(kind, document)
    values[BAND_COLUMN] = band_of(values[sort_field(kind)])
    values[STORED_COLUMN] = orjson.dumps(stored_part(document))
    return tantivy.Document(**values)
