"""Writing a file of arrays, one behind the other, with a table of them at its end (`index_mappings.typeahead`)."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from index_mappings.typeahead import ALIGNMENT, Part, checksum, trailer
from indexer.sinks.embedded_files import FRESH


class PartsFile:
    """A file that is being written; a context, at whose end it is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        """Name it; nothing is written yet."""
        self._path = path
        self._fresh = path.with_name(f"{path.name}.{os.getpid()}{FRESH}")
        self._parts: dict[str, Part] = {}
        self._at = self._checksum = 0
        self._begun: tuple[str, str, int] | None = None

    def __enter__(self) -> Self:
        self._file = self._fresh.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
        if error is None:
            self._fresh.replace(self._path)
        else:
            self._fresh.unlink(missing_ok=True)

    def begin(self, name: str, dtype: str) -> None:
        """Begin a part: what is written from here on is its items."""
        self._close_part()
        self.write(bytes(-self._at % ALIGNMENT))
        self._begun = name, dtype, self._at

    def write(self, data: bytes | memoryview) -> None:
        """Write the next bytes."""
        self._file.write(data)
        self._checksum = checksum(data, self._checksum)
        self._at += len(data)

    def part(self, name: str, dtype: str, items: object) -> None:
        """Write a whole part."""
        self.begin(name, dtype)
        self.write(np.ascontiguousarray(np.asarray(items, dtype=dtype)).tobytes())

    def end(self, told: dict[str, object]) -> None:
        """Write the table of the parts, and what else is told of the file."""
        self._close_part()
        parts = {name: list(part) for name, part in self._parts.items()}
        self.write(table := json.dumps({**told, "parts": parts, "bytes": self._at}).encode())
        self._file.write(trailer(len(table), self._checksum))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _close_part(self) -> None:
        if self._begun is not None:
            name, dtype, start = self._begun
            self._parts[name] = Part(dtype, start, (self._at - start) // np.dtype(dtype).itemsize)
            self._begun = None
