"""The OpenSearch indices: mappings and settings, and the documents with the files of a typeahead.

Mappings are derived from the document classes. Every text is a keyword, because terms are finished before indexing
(X4). Undeclared fields are rejected.

A file of a typeahead, segment or manifest, is split into chunks, each compressed and stored as one document whose id
has the file's name and the chunk's number. These documents are never searched: a reader computes the ids.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from index_mappings.documents import DOCUMENTS, Form, Role, fields_with, sort_field
from index_mappings.generations import STAMP
from index_mappings.ngrams import SUFFIXES, EngineField, engine_fields, engine_values
from index_mappings.tiers import INFIX_MIN

# M8 allows paging this deep, so the engine's result window must be as large.
RESULT_WINDOW: Final = 100_000
# The kind of index, as `index_name` takes it: one for each generation.
TYPEAHEAD: Final = "typeahead"
# Before compression. Requests for suggestions wait while a service parses a chunk, or decodes it from base64: 0.6 ms at
# most for this size, and 8 for 4 MiB.
CHUNK_BYTES: Final = 256 * 1024
# The length of the longest prefixes that are terms. Of most longer ones a few values begin so.
PREFIX_MAX: Final = 8
# Level 1 compresses to a third, in a tenth of the default level's time.
_LEVEL: Final = 1


def mapping(kind: str) -> dict[str, Any]:
    """The mapping of one index kind (a key of DOCUMENTS, STAMP or TYPEAHEAD)."""
    if kind == STAMP:
        # One document, which is read by its id and never searched.
        return {"dynamic": "strict", "properties": {"stamp": {"type": "object", "enabled": False}}}
    if kind == TYPEAHEAD:
        return {
            "dynamic": "strict",
            "properties": {
                "file": {"type": "keyword"},  # by which a file's chunks are removed
                "bytes": {"type": "long", "index": False, "doc_values": False},
                "data": {"type": "binary"},
            },
        }
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
        # Chunks are read by id, which needs no refresh. The codec undoes what base64 adds to them, a third.
        return {
            "number_of_shards": 1,
            "number_of_replicas": replicas,
            "refresh_interval": "-1",
            "codec": "best_compression",
        }
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
    suffixes = (
        EngineField(name + SUFFIXES, name, Form.TERMS, _suffixes, indexed=True)
        for name in fields_with(document, Role.INFIX)
    )
    return (*engine_fields(document, PREFIX_MAX), *suffixes)


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
            # Not indexed, so that only the documents that meet the rest of a query are compared.
            return {"type": "long", "index": False}
        case Form.TERMS:
            return {"type": "keyword", "index": field.indexed, "doc_values": field.sortable or field.counted}


def chunk_count(size: int) -> int:
    """The number of chunks of a file of `size` bytes; at least one."""
    return max(1, -(-size // CHUNK_BYTES))


def chunk_id(name: str, number: int) -> str:
    """The id of a chunk's document."""
    return f"{name}-{number}"


def chunk_document(name: str, size: int, data: bytes | memoryview) -> dict[str, Any]:
    """The document of a chunk; `size` is that of its file, in bytes."""
    return {"file": name, "bytes": size, "data": b64encode(zlib.compress(data, _LEVEL)).decode("ascii")}


def file_size(document: Mapping[str, Any]) -> int:
    """The size of a chunk's file in bytes, as the chunk's document states it; ValueError if that is damaged."""
    size = document.get("bytes")
    if not isinstance(size, int) or size < 0:
        raise ValueError("a chunk of the typeahead is damaged")
    return size


def chunk_of(document: Mapping[str, Any], name: str, number: int, size: int) -> bytes:
    """The bytes of one chunk of a file of `size` bytes; ValueError if the document is damaged, or of another file."""
    try:
        decompressor = zlib.decompressobj()
        data = decompressor.decompress(b64decode(document["data"], validate=True), CHUNK_BYTES)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise ValueError("a chunk of the typeahead is damaged") from error
    if not decompressor.eof:
        raise ValueError("a chunk of the typeahead is damaged or too large")
    length = min(CHUNK_BYTES, size - number * CHUNK_BYTES)
    if document.get("file") != name or file_size(document) != size or len(data) != length:
        raise ValueError("a chunk of the typeahead belongs to another file")
    return data
