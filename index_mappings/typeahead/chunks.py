"""Files of a typeahead, segments and manifests, as documents of an OpenSearch index.

A file is split into chunks, each compressed and stored as one document whose id has the file's name and the chunk's
number. The documents are never searched: a reader computes the ids.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

# The kind of index, as `index_name` takes it: one for each generation.
TYPEAHEAD: Final = "typeahead"
# Before compression. Large enough for few requests, and far below a cluster's limit of a request's size.
CHUNK_BYTES: Final = 4 * 1024 * 1024
# Level 1 compresses to a third, in a tenth of the default level's time.
_LEVEL: Final = 1


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


def chunk_mapping() -> dict[str, Any]:
    """The mapping of the index: chunks are only stored; the file's name is indexed for removing its chunks."""
    return {
        "dynamic": "strict",
        "properties": {
            "file": {"type": "keyword"},
            "bytes": {"type": "long", "index": False, "doc_values": False},
            "data": {"type": "binary"},
        },
    }
