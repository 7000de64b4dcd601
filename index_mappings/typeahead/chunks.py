"""Files of a typeahead as documents of an index: how a server without files keeps segments and manifests.

A file is cut into chunks, each packed by itself and kept as one document whose id names file and place. A manifest is
such a file too. Nothing of it is searched: a reader asks for the ids that it computes.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

# The kind of index, as `index_name` takes it: one for each generation.
TYPEAHEAD: Final = "typeahead"
# Before packing. Fewer requests than smaller ones, and still far below a server's bound on a request.
CHUNK_BYTES: Final = 4 * 1024 * 1024
# Level 1 makes a third of it in a tenth of the time of the default.
_LEVEL: Final = 1


def chunk_count(size: int) -> int:
    """How many chunks a file of so many bytes has; an empty one has one."""
    return max(1, -(-size // CHUNK_BYTES))


def chunk_id(name: str, place: int) -> str:
    """The id of a chunk's document."""
    return f"{name}-{place}"


def chunk_document(name: str, size: int, data: bytes | memoryview) -> dict[str, Any]:
    """The document of a chunk.

    Args:
        name: of its file.
        size: of its whole file, in bytes.
        data: the chunk's own bytes.
    """
    return {"file": name, "bytes": size, "data": b64encode(zlib.compress(data, _LEVEL)).decode("ascii")}


def file_size(document: Mapping[str, Any]) -> int:
    """The size of the file that a chunk is of, in bytes, as the chunk states it.

    Raises:
        ValueError: it states none.
    """
    size = document.get("bytes")
    if not isinstance(size, int) or size < 0:
        raise ValueError("a chunk of the typeahead is damaged")
    return size


def chunk_of(document: Mapping[str, Any], name: str, place: int, size: int) -> bytes:
    """The bytes of one chunk of a file.

    Args:
        document: the chunk's.
        name: of its file.
        place: of the chunk in the file, from 0 on.
        size: of the whole file, in bytes.

    Raises:
        ValueError: it is damaged, or a chunk of another file.
    """
    data = chunk_data(document)
    if document.get("file") != name or file_size(document) != size or len(data) != _length(place, size):
        raise ValueError("a chunk of the typeahead belongs to another file")
    return data


def chunk_data(document: Mapping[str, Any]) -> bytes:
    """The bytes of a chunk, at most CHUNK_BYTES of them.

    Raises:
        ValueError: it is damaged, or larger than a chunk.
    """
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(b64decode(document["data"], validate=True), CHUNK_BYTES)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise ValueError("a chunk of the typeahead is damaged") from error
    if not unpacking.eof:
        raise ValueError("a chunk of the typeahead is damaged or too large")
    return data


def chunk_mapping() -> dict[str, Any]:
    """The mapping of the index: chunks are carried, and found by their file only when that is removed."""
    return {
        "dynamic": "strict",
        "properties": {
            "file": {"type": "keyword"},
            "bytes": {"type": "long", "index": False, "doc_values": False},
            "data": {"type": "binary"},
        },
    }


def _length(place: int, size: int) -> int:
    return min(CHUNK_BYTES, size - place * CHUNK_BYTES)
