"""Writes the file of a segment: its arrays in order, its header, and the name, which is its hash."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

import numpy as np

from index_mappings.typeahead.manifest import SegmentUse
from index_mappings.typeahead.segment import ALIGNMENT, ARRAYS, SUFFIX, Header, Part, header_bytes
from indexer.sinks.typeahead.arrays import Items
from indexer.sinks.typeahead.store import write_file

_COPY_BYTES: Final = 1 << 20


class Spill:
    """An array that grows in an unnamed temporary file instead of in memory."""

    def __init__(self, directory: Path, dtype: str) -> None:
        """Start with an empty array in a file of the folder; `dtype` is numpy's name of the items' type."""
        self._dtype = np.dtype(dtype)
        self._file: IO[bytes] = TemporaryFile(dir=directory)  # noqa: SIM115 - closed by `close`
        self._bytes = 0

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def __len__(self) -> int:
        return self._bytes // self._dtype.itemsize

    def append(self, items: Items) -> None:
        """Append items."""
        data = np.ascontiguousarray(items, self._dtype).data
        self._file.write(data)
        self._bytes += data.nbytes

    def items(self) -> Items:
        """The array so far, memory-mapped: the system can take back what it occupies."""
        self._file.flush()
        return np.memmap(self._file, self._dtype, "r") if self._bytes else np.zeros(0, self._dtype)

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the array in blocks."""
        self._file.seek(0)
        while chunk := self._file.read(_COPY_BYTES):
            yield chunk


class Contents(NamedTuple):
    """The contents of a segment.

    Attributes:
        shops: the number of shops.
        countries: of the rows of `markets` and `known`, the first of which is "".
        categories: slugs, by number.
        arrays: the arrays of ARRAYS, by name.
    """

    shops: int
    countries: tuple[str, ...]
    categories: tuple[str, ...]
    arrays: Mapping[str, Items]


def write_segment(
    directory: Path,
    shops: int,
    countries: tuple[str, ...],
    categories: tuple[str, ...],
    arrays: Mapping[str, Items | Spill],
) -> SegmentUse:
    """Write a durable segment into a folder, completely or not at all; its parts are those of `Contents`.

    Raises:
        OSError: it can't be written.
    """

    def write(file: IO[bytes]) -> str:
        hashed = _Hashed(file)
        parts = {name: hashed.array(arrays[name], dtype) for name, dtype in ARRAYS.items()}
        hashed.write(header_bytes(Header(shops, countries, categories, parts), hashed.size))
        return hashed.digest()

    path = write_file(directory, SUFFIX, write)
    return SegmentUse(path.stem, path.stat().st_size, shops)


class _Hashed:
    """A file whose bytes are hashed while they are written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def array(self, items: Items | Spill, dtype: str) -> Part:
        """Write an array at the next multiple of ALIGNMENT."""
        self.write(bytes(-self.size % ALIGNMENT))
        start = self.size
        chunks = items.chunks() if isinstance(items, Spill) else _chunks(items, dtype)
        for chunk in chunks:
            self.write(chunk)
        return Part(start, (self.size - start) // np.dtype(dtype).itemsize)

    def digest(self) -> str:
        return self._hash.hexdigest()


def _chunks(items: Items, dtype: str) -> Iterator[bytes]:
    step = _COPY_BYTES // np.dtype(dtype).itemsize
    for start in range(0, len(items), step):
        yield np.ascontiguousarray(items[start : start + step], dtype).tobytes()
