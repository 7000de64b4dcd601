"""The marks of `index hide`: keys of shops that are hidden, whatever their records say, until `index show` (V4).

They are lines of one file in the directory of states, which every state reads again when it has grown: a mark outlives
builds, lost states and rollbacks. It is no version of a record, so a marked shop takes newer records as any other.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from index_mappings.values import wire_timestamp


def marks_size(path: Path) -> int:
    """The size of the file in bytes; 0 without one."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def read_marks(path: Path) -> tuple[frozenset[str], int]:
    """The marked keys, and the size of the file that was read; OSError if that fails."""
    content = path.read_bytes() if path.exists() else b""
    marked: dict[str, bool] = {}
    for line in content.split(b"\n")[:-1]:
        with suppress(ValueError, KeyError, TypeError):  # the partial line of a command that was killed
            mark = json.loads(line)
            marked[str(mark["key"])] = bool(mark["hidden"])
    return frozenset(key for key, hidden in marked.items() if hidden), len(content)


def mark_lines(keys: Iterable[str], *, hidden: bool) -> bytes:
    """The lines that mark keys, or take their marks away."""
    at = wire_timestamp(datetime.now(UTC))
    return "".join(f"{json.dumps({'at': at, 'key': key, 'hidden': hidden})}\n" for key in keys).encode()
