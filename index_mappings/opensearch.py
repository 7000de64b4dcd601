"""What OpenSearch is told of the indices: strict mappings derived from the document classes, and settings.

Every text is a keyword: the terms are finished before they arrive (X4), and a field that is not declared is refused.
"""

from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP
from index_mappings.roles import EngineField, Form, Role, declared_fields, engine_fields, stored_fields

# M8 lets a caller page this deep; the engine's own window must reach as far.
RESULT_WINDOW: Final = 100_000


def mapping(kind: str) -> dict[str, Any]:
    """The mapping of one index kind (a key of DOCUMENTS, or STAMP)."""
    if kind == STAMP:
        # One document, read by its id: nothing of it is searched.
        return {"dynamic": "strict", "properties": {"stamp": {"type": "object", "enabled": False}}}
    document = DOCUMENTS[kind]
    return {
        "dynamic": "strict",
        "_source": {"includes": list(stored_fields(document))},
        "properties": {field.name: _property(field) for field in engine_fields(document)},
    }


def settings(kind: str, *, shards: int, replicas: int) -> dict[str, Any]:
    """The settings of one index kind while it serves."""
    if kind == STAMP:
        return {"number_of_shards": 1, "number_of_replicas": replicas}
    return {
        # What is written shows when its writer says so, all of a micro-batch at once.
        "refresh_interval": "-1",
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "max_result_window": RESULT_WINDOW,
        # Documents lie in the order in which they are answered, so a search may end early.
        "sort.field": sort_field(kind),
        "sort.order": "asc",
    }


def sort_field(kind: str) -> str:
    """The field that orders a kind's documents."""
    (name,) = (field.name for field in declared_fields(DOCUMENTS[kind]) if Role.SORT in field.roles)
    return name


def _property(field: EngineField) -> dict[str, Any]:
    match field.form:
        case Form.CARRIED:
            return {"type": "object", "enabled": False}
        case Form.NUMBER:
            return {"type": "double", "index": False, "doc_values": False}
        case Form.WHOLE:
            return {"type": "long", "doc_values": False}
        case Form.TERMS:
            return {"type": "keyword", "index": field.indexed, "doc_values": field.sortable}
