"""A file of a typeahead as documents, and what is announced before a publication."""

from typing import Any

import pytest

from index_mappings.typeahead.chunks import CHUNK_BYTES, chunk_count, chunk_document, chunk_id, chunk_of, file_size
from index_mappings.typeahead.manifest import Announcement

_NAME = "ab" * 32


@pytest.mark.parametrize(
    ("size", "chunks"), [(0, 1), (1, 1), (CHUNK_BYTES, 1), (CHUNK_BYTES + 1, 2), (2 * CHUNK_BYTES, 2)]
)
def test_a_file_comes_back_from_its_chunks(size: int, chunks: int) -> None:
    data = bytes(number % 251 for number in range(size))
    assert chunk_count(size) == chunks
    documents = [
        chunk_document(_NAME, size, data[position * CHUNK_BYTES :][:CHUNK_BYTES]) for position in range(chunks)
    ]
    assert [file_size(document) for document in documents] == [size] * chunks
    assert b"".join(chunk_of(document, _NAME, position, size) for position, document in enumerate(documents)) == data
    assert len({chunk_id(_NAME, position) for position in range(chunks)}) == chunks


@pytest.mark.parametrize(
    "change",
    [
        {"file": "cd" * 32},
        {"bytes": 7},
        {"bytes": "8"},
        {"bytes": -1},
        {"data": "not base64"},
        {"data": chunk_document(_NAME, 8, b"longer than 8")["data"]},
        {"data": chunk_document(_NAME, 8, bytes(CHUNK_BYTES + 1))["data"]},
        {"data": chunk_document(_NAME, 8, b"8 bytes.")["data"][:-8]},
    ],
)
def test_a_chunk_that_is_damaged_or_of_another_file_is_refused(change: dict[str, Any]) -> None:
    document = chunk_document(_NAME, 8, b"8 bytes.")
    assert chunk_of(document, _NAME, 0, 8) == b"8 bytes."
    with pytest.raises(ValueError, match="a chunk of the typeahead"):
        chunk_of({**document, **change}, _NAME, 0, 8)


def test_an_announcement_is_read_as_it_was_written() -> None:
    announced = Announcement("20250101t000000000000-abcdef", _NAME)
    assert Announcement.from_wire(announced.to_wire()) == announced


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"stamp": None},
        {"stamp": {"announced": {}}},
        {"stamp": {"announced": {"generation": "../elsewhere", "typeahead": _NAME}}},
        {"stamp": {"announced": {"generation": "20250101t000000000000-abcdef", "typeahead": "../elsewhere"}}},
        {"stamp": {"announced": {"generation": 1, "typeahead": 2}}},
    ],
)
def test_what_is_no_announcement_announces_nothing(document: dict[str, Any]) -> None:
    assert Announcement.from_wire(document) is None
