"""The dead-letter file: documents and changes that were refused, one JSON object in each line.

It may hold any record, also of hidden shops (V1), so only its owner can read it. Refused values are nowhere else.
"""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from indexer.sinks.failures import SinkError
from indexer.sources.protocol import RefusedChange

_PRIVATE_FILE: Final = 0o600
_PRIVATE_DIRECTORY: Final = 0o700


class DeadLetters:
    """Appends to the file; thread-safe. The first letter creates file and directory."""

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Prepare; nothing is opened yet. Letters of earlier runs stay in the file; a missing directory is created."""
        self.path = path
        self._now = now
        self._lock = Lock()
        self._file: int | None = None

    def add(self, index: str, document_id: str, status: int | None, reason: str, document: object) -> None:
        """Append a document that an engine refused for good; None for one that should be deleted.

        `status` is the engine's HTTP status, None if it was never sent; `reason` is the error's type, never its text.
        """
        self._append({"index": index, "id": document_id, "status": status, "reason": reason, "document": document})

    def add_change(self, refused: RefusedChange) -> None:
        """Append a change that can't be applied, as it was received, with its location."""
        about = {"index": None, "id": None, "status": None, "reason": "; ".join(refused.reasons)}
        self._append({**about, "location": refused.location, "document": refused.raw})

    def close(self) -> None:
        """Close the file, if it is open."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _append(self, letter: dict[str, Any]) -> None:
        at = self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # ASCII only, so that half of a surrogate pair in the input can be written.
        line = f"{json.dumps({'at': at, **letter}, separators=(',', ':'))}\n".encode("ascii")
        try:
            with self._lock:
                if self._file is None:
                    self._file = open_private(self.path)
                write_whole(self._file, line)
        except OSError as error:
            raise SinkError(f"the dead-letter file {self.path} cannot be written: {error.strerror}") from error


def open_private(path: Path) -> int:
    """Open a file of lines for appending, which its owner alone can read; returns its descriptor."""
    path.parent.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE)
    try:
        os.fchmod(file, _PRIVATE_FILE)  # also if another program created the file
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            write_whole(file, b"\n")  # ends a partial line of a killed run
    except OSError:
        os.close(file)
        raise
    return file


def write_whole(file: int, line: bytes) -> None:
    """Write all bytes."""
    while line:
        line = line[os.write(file, line) :]
