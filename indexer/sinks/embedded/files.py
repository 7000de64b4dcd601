"""The small files of the embedded engine, which are written atomically: pointer, stamps, marks."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from index_mappings.embedded import pointed_to, pointer_path, stamp_path
from index_mappings.generations import Stamp
from index_mappings.integrity import from_stamp_json, to_stamp_json
from indexer.sinks.failures import SinkError
from indexer.sinks.typeahead.store import sync_directory

# The suffix of a file until it is complete.
FRESH: Final = ".new"
# The names of tantivy's segments.
_SEGMENT: Final = re.compile(r"[0-9a-f]{32}")
# Partial files: ours, and the engine's.
_PARTIAL: Final = (f"*{FRESH}", ".tmp*")


def read_pointer(root: Path) -> tuple[str | None, str | None]:
    """The live and the previous generation.

    Raises:
        SinkError: the file cannot be read, or is damaged.
    """
    try:
        return pointed_to(pointer_path(root).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError) as error:
        raise SinkError(f"what is live in {root} cannot be read: {error}") from error


def read_stamp(root: Path, generation: str) -> Stamp:
    """Read a generation's stamp.

    Raises:
        SinkError: it is missing, damaged, or names another generation.
    """
    stamp = read_any_stamp(root, generation)
    if stamp.generation != generation:
        raise SinkError(f"the stamp {stamp_path(root, generation)} is another generation's")
    return stamp


def read_any_stamp(root: Path, generation: str) -> Stamp:
    """Read the stamp in a generation's directory, whichever generation it names.

    Raises:
        SinkError: it is missing or damaged.
    """
    path = stamp_path(root, generation)
    try:
        return from_stamp_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SinkError(f"the stamp {path} cannot be read: {error}") from error


def write_stamp(root: Path, stamp: Stamp) -> None:
    """Replace a generation's stamp.

    Raises:
        SinkError: it cannot be written.
    """
    write_whole(stamp_path(root, stamp.generation), to_stamp_json(stamp))


@contextmanager
def publisher_lock(root: Path) -> Iterator[None]:
    """Lock out other publishers; the lock ends with its process."""
    try:
        directory = os.open(root, os.O_RDONLY)
    except OSError as error:
        raise SinkError(f"{root} cannot be locked: {error.strerror}") from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, so that it is complete or absent also after a power failure.

    Raises:
        SinkError: it cannot be written.
    """
    try:
        write_bytes_whole(path, text.encode())
    except OSError as error:
        raise SinkError(f"{path} cannot be written: {error.strerror}") from error


def write_bytes_whole(path: Path, data: bytes) -> None:
    """As `write_whole`, for bytes.

    Raises:
        OSError: it cannot be written.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}{FRESH}")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)


def has_orphaned_segments(directory: Path) -> bool:
    """Whether an index's directory holds files of segments that are not part of it, left by a killed writer."""
    try:
        segments = json.loads((directory / "meta.json").read_text(encoding="utf-8"))["segments"]
    except (OSError, ValueError, KeyError):
        return False  # reported when it is opened
    known = {segment["segment_id"].replace("-", "") for segment in segments}
    return any(
        _SEGMENT.fullmatch(stem := path.name.partition(".")[0]) and stem not in known for path in directory.iterdir()
    )


def remove_torn(directories: Iterable[Path]) -> None:
    """Remove the partial files of killed jobs in these directories; only under the lease."""
    for directory in directories:
        for path in [path for pattern in _PARTIAL for path in directory.glob(pattern)]:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
