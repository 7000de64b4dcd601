"""The files of embedded generations: small ones that are written atomically, and those that readers open.

The engine merges segments and removes files at any time, also after a commit. So a commit links the files that the
engine's meta file names into a folder that never changes, with checksums in a manifest. Each file's checksum is
computed once. A file that was merged away since is verified again, as its damage would be part of the merged one.
"""

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import (
    COMMITTED,
    MANIFEST_SUFFIX,
    META_FILE,
    CommittedIndex,
    FilesManifest,
    FileSum,
    files_manifest_path,
    from_stamp_json,
    generation_directory,
    index_directory,
    pointed_to,
    pointer_path,
    stamp_path,
    to_checked_json,
)
from index_mappings.generations import Stamp
from indexer.sinks.failures import SinkError, as_sink_error
from shop_directory.durable_files import synchronise

# The suffix of a file until it is complete.
FRESH: Final = ".new"
# The names of tantivy's segments.
_SEGMENT: Final = re.compile(r"[0-9a-f]{32}")
# Partial files: ours, and the engine's.
_PARTIAL: Final = (f"*{FRESH}", ".tmp*")
# Readers open the files of a stamp within two seconds, unless they have to verify many.
GRACE_S: Final = 30.0
# Attempts to link, as the engine may replace its meta file in between.
_TRIES: Final = 100
_NAME_LENGTH: Final = 16
# The kind under which a damage of the manifest itself is counted.
FILES: Final = "files"
_NEW: Final = CommittedIndex("", {})


class StampDamagedError(SinkError):
    """The stamp of a generation is not a stamp; the message says what to do."""


def read_pointer(root: Path) -> tuple[str | None, str | None]:
    """The live and the previous generation."""
    pointer = pointer_path(root)
    try:
        return pointed_to(pointer.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise SinkError(f"what is live in {root} cannot be read: {error}") from error
    except ValueError as error:
        raise SinkError(
            f"what is live in {root} cannot be read: {error}: write the name of the newest folder of its generations"
            f" into {pointer}"
        ) from error


def read_stamp(root: Path, generation: str) -> Stamp:
    """Read a generation's stamp; it is an error that it names another generation."""
    stamp = read_any_stamp(root, generation)
    if stamp.generation != generation:
        raise SinkError(f"the stamp {stamp_path(root, generation)} is another generation's")
    return stamp


def read_any_stamp(root: Path, generation: str) -> Stamp:
    """Read the stamp in a generation's directory, whichever generation it names."""
    path = stamp_path(root, generation)
    try:
        return from_stamp_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SinkError(f"the stamp {path} cannot be read: {error}") from error
    except ValueError as error:
        raise StampDamagedError(
            f"the stamp {path} cannot be read: {error}: roll back to the previous generation, or remove the file and"
            " build again"
        ) from error


def write_stamp(root: Path, stamp: Stamp) -> None:
    """Replace a generation's stamp."""
    write_whole(stamp_path(root, stamp.generation), to_checked_json(stamp.as_wire()))


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
    """Write a file atomically, so that it is complete or absent also after a power failure."""
    try:
        write_bytes_whole(path, text.encode())
    except OSError as error:
        raise SinkError(f"{path} cannot be written: {error.strerror}") from error


def write_bytes_whole(path: Path, data: bytes) -> None:
    """As `write_whole`, for bytes."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}{FRESH}")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    synchronise(path.parent)


def has_orphaned_segments(directory: Path) -> bool:
    """Whether an index's directory holds files of segments that are not part of it, left by a killed writer."""
    try:
        known = _segments(directory, (directory / META_FILE).read_bytes())
    except (OSError, SinkError):
        return False  # reported when it is opened
    return any(
        _SEGMENT.fullmatch(stem := path.name.partition(".")[0]) and stem not in known for path in directory.iterdir()
    )


def remove_torn(directories: Iterable[Path]) -> None:
    """Remove the partial files of killed jobs in these directories; only under the lease."""
    for directory in directories:
        for path in [path for pattern in _PARTIAL for path in directory.glob(pattern)]:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


class CommittedFiles:
    """The committed files of a generation; only under the lease."""

    def __init__(self, root: Path, generation: str) -> None:
        self._root, self._generation = root, generation
        self._generation_directory = generation_directory(root, generation)
        self._directory = self._generation_directory / COMMITTED

    def commit(self, former_name: str) -> str:
        """Link the current files of the indices, and compute their checksums.

        `former_name` is the manifest that the stamp names, empty for the first commit. Returns that of the next stamp.
        """
        former = self.manifest(former_name) if former_name else FilesManifest({})
        with as_sink_error(f"the files of generation {self._generation} could not be committed"):
            self._directory.mkdir(exist_ok=True)
            current = FilesManifest({kind: self._index(kind, former.indices.get(kind, _NEW)) for kind in DOCUMENTS})
            data = current.to_bytes()
            name = FileSum.of(data).sha256
            if name != former_name:
                write_bytes_whole(files_manifest_path(self._generation_directory, name), data)
            self._tidy({name, *_folders(current)}, {former_name, *_folders(former)})
        return name

    def manifest(self, name: str) -> FilesManifest:
        """Read a manifest by its name."""
        with as_sink_error(f"the files of generation {self._generation} are not known"):
            return FilesManifest.from_bytes(files_manifest_path(self._generation_directory, name).read_bytes(), name)

    def has_all(self, name: str) -> bool:
        """Whether all files of a manifest exist in their sizes; reads none of them."""
        try:
            return all(
                (self._directory / one.folder / file).stat().st_size == expected.size
                for one in self.manifest(name).indices.values()
                for file, expected in one.files.items()
            )
        except (SinkError, OSError):
            return False

    def damaged(self, name: str) -> tuple[tuple[str, str], ...]:
        """The kind and path of each missing or damaged file of a manifest; reads all of them."""
        try:
            manifest = self.manifest(name)
        except SinkError:
            return ((FILES, files_manifest_path(Path(), name).as_posix()),)
        found = ((kind, index, file) for kind, index in manifest.indices.items() for file in index.files)
        return tuple((kind, f"{kind}/{file}") for kind, index, file in found if not self._is_whole(index, file))

    def _index(self, kind: str, former: CommittedIndex) -> CommittedIndex:
        directory = index_directory(self._root, self._generation, kind)
        for _ in range(_TRIES):
            meta = (directory / META_FILE).read_bytes()
            meta_sum = FileSum.of(meta)
            if former.files.get(META_FILE) == meta_sum:
                return former
            folder = self._directory / f"{kind}-{meta_sum.sha256[:_NAME_LENGTH]}"
            fresh = folder.with_name(f"{folder.name}.{os.getpid()}{FRESH}")
            fresh.mkdir()
            try:
                is_whole = _link_all(_segment_files(directory, meta), fresh)
                if is_whole and (directory / META_FILE).read_bytes() == meta:
                    return self._linked(kind, folder, fresh, meta, former)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        raise SinkError(f"the {kind} of generation {self._generation} change too often to be committed")

    def _linked(self, kind: str, folder: Path, fresh: Path, meta: bytes, former: CommittedIndex) -> CommittedIndex:
        """Compute the checksums of a folder of links, and rename it to its final name."""
        sums = {path.name: former.files.get(path.name) or FileSum.of_file(path) for path in fresh.iterdir()}
        for name in former.files.keys() - sums.keys() - {META_FILE}:
            if not self._is_whole(former, name):
                raise SinkError(f"the file {kind}/{name} of generation {self._generation} is damaged: build again")
        write_bytes_whole(fresh / META_FILE, meta)
        sums[META_FILE] = FileSum.of(meta)
        shutil.rmtree(folder, ignore_errors=True)  # of a commit that was killed before its stamp
        fresh.replace(folder)
        synchronise(self._directory)
        return CommittedIndex(folder.name, sums)

    def _is_whole(self, index: CommittedIndex, name: str) -> bool:
        try:
            return FileSum.of_file(self._directory / index.folder / name) == index.files[name]
        except OSError:
            return False

    def _tidy(self, named: set[str], former: set[str]) -> None:
        """Remove folders and manifests that no stamp has named for the grace period."""
        oldest = time.time() - GRACE_S
        for path in list(self._directory.iterdir()):
            name = path.name.removesuffix(MANIFEST_SUFFIX)
            if name in named:
                continue
            with suppress(OSError):  # it stays until the next commit
                if name in former:
                    os.utime(path)  # the grace period begins now
                elif path.stat().st_mtime < oldest:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _folders(manifest: FilesManifest) -> set[str]:
    return {index.folder for index in manifest.indices.values()}


def _segments(directory: Path, meta: bytes) -> Mapping[str, object]:
    """The segments that the engine's meta file names, each with the number of its file of deletes."""
    try:
        return {
            segment["segment_id"].replace("-", ""): (segment.get("deletes") or {}).get("opstamp")
            for segment in json.loads(meta)["segments"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SinkError(f"the engine's file {directory / META_FILE} cannot be read") from error


def _segment_files(directory: Path, meta: bytes) -> Iterator[Path]:
    deletes = _segments(directory, meta)
    for path in directory.iterdir():
        segment, _, rest = path.name.partition(".")
        if segment in deletes and (not rest.endswith("del") or rest == f"{deletes[segment]}.del"):
            yield path


def _link_all(paths: Iterable[Path], folder: Path) -> bool:
    """Link files into a folder; returns whether all of them still existed."""
    for path in paths:
        try:
            os.link(path, folder / path.name)
        except FileNotFoundError:
            return False  # merged away, so the meta file was replaced
        except OSError:
            shutil.copyfile(path, folder / path.name)  # a file system without links
    return True
