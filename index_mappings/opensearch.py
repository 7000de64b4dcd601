"""What OpenSearch is told of the indices: strict mappings derived from the document classes, and settings.

Every text is a keyword: the terms are finished before they arrive (X4), and a field that is not declared is refused.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP
from index_mappings.parts import short_beginnings, short_field, short_parts
from index_mappings.roles import EngineField, Form, Role, engine_fields, fields_with, stored_fields
from index_mappings.tiers import INFIX_MIN
from index_mappings.typeahead.chunks import TYPEAHEAD, chunk_mapping

# M8 lets a caller page this deep; the engine's own window must reach as far.
RESULT_WINDOW: Final = 100_000


def mapping(kind: str) -> dict[str, Any]:
    """The mapping of one index kind (a key of DOCUMENTS, STAMP or TYPEAHEAD)."""
    if kind == STAMP:
        # One document, read by its id: nothing of it is searched.
        return {"dynamic": "strict", "properties": {"stamp": {"type": "object", "enabled": False}}}
    if kind == TYPEAHEAD:
        return chunk_mapping()
    document = DOCUMENTS[kind]
    return {
        "dynamic": "strict",
        "_source": {"includes": list(stored_fields(document))},
        "properties": {field.name: _property(field) for field in cluster_fields(document)},
    }


def settings(kind: str, *, shards: int, replicas: int) -> dict[str, Any]:
    """The settings of one index kind while it serves."""
    if kind == STAMP:
        return {"number_of_shards": 1, "number_of_replicas": replicas}
    if kind == TYPEAHEAD:
        # Chunks are read by their ids, which needs no refresh.
        return {"number_of_shards": 1, "number_of_replicas": replicas, "refresh_interval": "-1"}
    return {
        # What is written shows when its writer says so, all of a micro-batch at once.
        "refresh_interval": "-1",
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "max_result_window": RESULT_WINDOW,
        # Documents lie in the order in which they are answered, so a search may end early.
        "sort.field": sort_field(kind),
        "sort.order": "asc",
        # Otherwise a node that starts looks at the ends of most files only, and answers from what is damaged.
        "shard.check_on_startup": "checksum",
    }


def sort_field(kind: str) -> str:
    """The field that orders a kind's documents."""
    (name,) = fields_with(DOCUMENTS[kind], Role.SORT)
    return name


def suffixes_field(name: str) -> str:
    """Where the endings of an INFIX field are: a part of INFIX_MIN characters or more is the beginning of an ending."""
    return f"{name}_suffixes"


def wire_document(document: object) -> dict[str, Any]:
    """The finished document as the cluster is given it: field name to value or list of terms."""
    document_class: type = type(document)
    own, prefixed, parted = _plan(document_class)
    values: dict[str, Any] = {}
    for name in own:
        value = getattr(document, name)
        values[name] = list(value) if isinstance(value, tuple) else value
    for name, short in prefixed:
        values[short] = short_beginnings(getattr(document, name))
    for name, short, suffixes in parted:
        texts = getattr(document, name)
        values[short] = short_parts(texts)
        values[suffixes] = _suffixes(texts)
    return values


def cluster_fields(document: type) -> tuple[EngineField, ...]:
    """The fields of a document class as the cluster holds them."""
    parted = fields_with(document, Role.INFIX)
    short = (short_field(name) for name in (*fields_with(document, Role.PREFIX), *parted))
    added = (*short, *(suffixes_field(name) for name in parted))
    return (*engine_fields(document), *(EngineField(name, Form.TERMS, indexed=True) for name in added))


@cache
def _plan(document: type) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[tuple[str, str, str], ...]]:
    """What becomes of the fields: worked out once a class, as a build asks it of every document."""
    own = tuple(field.name for field in engine_fields(document))
    prefixed = tuple((name, short_field(name)) for name in fields_with(document, Role.PREFIX))
    parted = tuple((name, short_field(name), suffixes_field(name)) for name in fields_with(document, Role.INFIX))
    return own, prefixed, parted


def _suffixes(texts: Iterable[str]) -> list[str]:
    """The endings of texts of INFIX_MIN characters or more, sorted, each once."""
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
            return {"type": "keyword", "index": field.indexed, "doc_values": field.sortable}
