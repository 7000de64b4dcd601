"""The small files of the embedded engine: pointer, stamps, marks. Each is there whole or not at all."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from index_mappings.embedded import operations_path, pointed_to, pointer_path, stamp_path
from index_mappings.generations import Stamp
from index_mappings.integrity import from_checked_json, from_stamp_json, to_checked_json, to_stamp_json
from index_mappings.operations import Operations
from indexer.sinks.failures import SinkError

# What a file is called by until it is whole.
FRESH: Final = ".new"
# What tantivy names the files of a segment by.
_SEGMENT: Final = re.compile(r"[0-9a-f]{32}")
# What is renamed when it is whole: ours, and the engine's.
_TORN: Final = (f"*{FRESH}", ".tmp*")


def read_pointer(root: Path) -> tuple[str | None, str | None]:
    """The live and the previous generation.

    Raises:
        SinkError: the file cannot be read, or names no generation.
    """
    try:
        return pointed_to(pointer_path(root).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError) as error:
        raise SinkError(f"what is live in {root} cannot be read: {error}") from error


def read_stamp(root: Path, generation: str) -> Stamp:
    """A generation's stamp.

    Raises:
        SinkError: there is none, it is damaged, or another generation's.
    """
    stamp = read_any_stamp(root, generation)
    if stamp.generation != generation:
        raise SinkError(f"the stamp {stamp_path(root, generation)} is another generation's")
    return stamp


def read_any_stamp(root: Path, generation: str) -> Stamp:
    """The stamp that lies with a generation, whatever generation it names.

    Raises:
        SinkError: there is none, or it is damaged.
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


def read_operations(root: Path, generation: str) -> Operations | None:
    """A generation's operations document; None where there is none that can be read."""
    try:
        return Operations.from_wire(from_checked_json(operations_path(root, generation).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def write_operations(root: Path, generation: str, operations: Operations) -> None:
    """Replace a generation's operations document.

    Raises:
        SinkError: it cannot be written.
    """
    write_whole(operations_path(root, generation), to_checked_json(operations.as_wire()))


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Keep other publishers out; the lock ends with its holder, however that ends."""
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
    """Write a file that is there whole or not at all, also after a loss of power.

    Raises:
        SinkError: it cannot be written.
    """
    try:
        write_bytes_whole(path, text.encode())
    except OSError as error:
        raise SinkError(f"{path} cannot be written: {error.strerror}") from error


def write_bytes_whole(path: Path, data: bytes) -> None:
    """As `write_whole`, of bytes.

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


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a loss of power."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def has_strays(directory: Path) -> bool:
    """Whether an index's directory holds files of segments that are not part of it, as a killed writer leaves."""
    try:
        segments = json.loads((directory / "meta.json").read_text(encoding="utf-8"))["segments"]
    except (OSError, ValueError, KeyError):
        return False  # reading it will say what is wrong
    known = {segment["segment_id"].replace("-", "") for segment in segments}
    return any(
        _SEGMENT.fullmatch(stem := path.name.partition(".")[0]) and stem not in known for path in directory.iterdir()
    )


def remove_torn(directories: Iterable[Path]) -> None:
    """Remove the files that killed jobs were writing in these directories; call it under the lease."""
    for directory in directories:
        for torn in [path for pattern in _TORN for path in directory.glob(pattern)]:
            with suppress(OSError):
                shutil.rmtree(torn) if torn.is_dir() else torn.unlink()
