"""Mappings and settings of the OpenSearch indices, derived from the document classes.

Every text is a keyword, because terms are finished before indexing (X4). Undeclared fields are rejected.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from index_mappings.documents import DOCUMENTS, Form, Role, fields_with, sort_field
from index_mappings.generations import STAMP
from index_mappings.ngrams import EngineField, engine_fields, engine_values, suffixes_field
from index_mappings.tiers import INFIX_MIN
from index_mappings.typeahead.chunks import TYPEAHEAD, chunk_mapping

# M8 allows paging this deep, so the engine's result window must be as large.
RESULT_WINDOW: Final = 100_000


def mapping(kind: str) -> dict[str, Any]:
    """The mapping of one index kind (a key of DOCUMENTS, STAMP or TYPEAHEAD)."""
    if kind == STAMP:
        # One document, which is read by its id and never searched.
        return {"dynamic": "strict", "properties": {"stamp": {"type": "object", "enabled": False}}}
    if kind == TYPEAHEAD:
        return chunk_mapping()
    document = DOCUMENTS[kind]
    return {
        "dynamic": "strict",
        "_source": {"includes": list(fields_with(document, Role.STORED))},
        "properties": {field.name: _property(field) for field in cluster_fields(document)},
    }


def settings(kind: str, *, shards: int, replicas: int) -> dict[str, Any]:
    """The settings of one index kind while it is served."""
    if kind == STAMP:
        return {"number_of_shards": 1, "number_of_replicas": replicas}
    if kind == TYPEAHEAD:
        # Chunks are read by id, which needs no refresh.
        return {"number_of_shards": 1, "number_of_replicas": replicas, "refresh_interval": "-1"}
    return {
        # The writer refreshes, so that a micro-batch becomes visible as a whole.
        "refresh_interval": "-1",
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "max_result_window": RESULT_WINDOW,
        # Documents are stored in the order of answers, so that a search can terminate early.
        "sort.field": sort_field(kind),
        "sort.order": "asc",
        # Otherwise a starting node checks only the footers of most files, and answers from damaged ones.
        "shard.check_on_startup": "checksum",
    }


def wire_document(document: object) -> dict[str, Any]:
    """The document as the cluster indexes it: field name to value or list of terms."""
    document_class: type = type(document)
    return engine_values(document, cluster_fields(document_class))


@cache
def cluster_fields(document: type) -> tuple[EngineField, ...]:
    """The fields of a document class in the cluster."""
    return engine_fields(document, suffixes_field, _suffixes)


def _suffixes(texts: Iterable[str]) -> list[str]:
    """The distinct suffixes of texts of INFIX_MIN characters or more, sorted."""
    return sorted({text[start:] for text in texts for start in range(len(text) - INFIX_MIN + 1)})


def _property(field: EngineField) -> dict[str, Any]:
    match field.form:
        case Form.CARRIED:
            return {"type": "object", "enabled": False}
        case Form.NUMBER:
            return {"type": "double", "index": False, "doc_values": False}
        case Form.WHOLE:
            return {"type": "long", "doc_values": False}
        case Form.TERMS:
            return {"type": "keyword", "index": field.indexed, "doc_values": field.sortable or field.counted}
