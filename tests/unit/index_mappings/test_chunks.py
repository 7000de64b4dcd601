"""Chunks of the typeahead's files: any bytes come back, in pieces that hold up nothing."""

import json
from hashlib import shake_256
from typing import Final

import pytest

from index_mappings.opensearch import CHUNK_BYTES, chunk_count, chunk_document, chunk_of

# What Python's base64 and JSON decode in less than a millisecond, at a third of their usual speed.
_MOST_BYTES: Final = 400_000


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5])
def test_a_file_of_incompressible_bytes_comes_back_in_pieces_that_are_decoded_quickly(size: int) -> None:
    data = shake_256().digest(size)
    count = chunk_count(size)
    assert count == max(1, -(-size // CHUNK_BYTES))
    documents = [
        chunk_document("name", size, data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]) for number in range(count)
    ]
    assert max(len(json.dumps(document)) for document in documents) <= _MOST_BYTES
    assert b"".join(chunk_of(document, "name", number, size) for number, document in enumerate(documents)) == data
