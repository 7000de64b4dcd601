"""The files that readers of an embedded generation open: linked, summed and named by a manifest at each commit.

The engine merges segments and removes files whenever it likes, also after a commit. So a commit links what the engine's
meta file names into a folder of its own, which nobody changes. What was written once is summed once. A file that went
since the last commit is summed a last time: its documents are in a merged one now, whose sum would make a damage valid.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import generation_directory, index_directory
from index_mappings.integrity import (
    MANIFEST_SUFFIX,
    META_FILE,
    CommittedIndex,
    FilesManifest,
    FileSum,
    committed_directory,
    files_manifest_path,
)
from indexer.sinks.embedded.files import FRESH, sync_directory, write_bytes_whole
from indexer.sinks.failures import SinkError

# Readers open what a stamp names within two seconds, unless they have much to check.
GRACE_S: Final = 30.0
# How often the engine may replace its meta file while it is being linked.
_TRIES: Final = 100
_NAME_LENGTH: Final = 16
# The kind that a finding about the manifest itself is counted under.
FILES: Final = "files"


class CommittedFiles:
    """The committed files of a generation; only under the lease."""

    def __init__(self, root: Path, generation: str) -> None:
        """Name the generation; nothing is read yet."""
        self._root, self._generation = root, generation
        self._generation_directory = generation_directory(root, generation)
        self._directory = committed_directory(self._generation_directory)

    def commit(self, former_name: str) -> str:
        """Link and sum what the indices consist of now.

        Args:
            former_name: the manifest that the stamp names; empty for the first.

        Returns:
            The name of the manifest that the next stamp must name.

        Raises:
            SinkError: a file can't be read or linked, or is not what was written any more.
        """
        former = self.manifest(former_name) if former_name else FilesManifest({})
        try:
            self._directory.mkdir(exist_ok=True)
            now = FilesManifest({kind: self._index(kind, former.indices.get(kind)) for kind in DOCUMENTS})
            data = now.to_bytes()
            name = FileSum.of(data).sha256
            if name != former_name:
                write_bytes_whole(files_manifest_path(self._generation_directory, name), data)
            self._tidy({name, *_folders(now)}, {former_name, *_folders(former)})
        except OSError as error:
            raise SinkError(f"the files of generation {self._generation} could not be committed: {error}") from error
        return name

    def manifest(self, name: str) -> FilesManifest:
        """A manifest by its name.

        Raises:
            SinkError: it can't be read, or is damaged.
        """
        try:
            return FilesManifest.from_bytes(files_manifest_path(self._generation_directory, name).read_bytes(), name)
        except (OSError, ValueError) as error:
            raise SinkError(f"the files of generation {self._generation} are not known: {error}") from error

    def damaged(self, name: str) -> tuple[tuple[str, str], ...]:
        """The kind and path of each file that a manifest names and that is missing or damaged; reads all of them."""
        try:
            manifest = self.manifest(name)
        except SinkError:
            return ((FILES, files_manifest_path(Path(), name).as_posix()),)
        found = ((kind, index, file) for kind, index in manifest.indices.items() for file in index.files)
        return tuple((kind, f"{kind}/{file}") for kind, index, file in found if not self._is_whole(index, file))

    def _index(self, kind: str, former: CommittedIndex | None) -> CommittedIndex:
        directory = index_directory(self._root, self._generation, kind)
        for _ in range(_TRIES):
            meta = (directory / META_FILE).read_bytes()
            own = FileSum.of(meta)
            if former is not None and former.files.get(META_FILE) == own:
                return former
            folder = self._directory / f"{kind}-{own.sha256[:_NAME_LENGTH]}"
            fresh = folder.with_name(f"{folder.name}.{os.getpid()}{FRESH}")
            fresh.mkdir()
            try:
                is_whole = _link_all(_segment_files(directory, meta), fresh)
                if is_whole and (directory / META_FILE).read_bytes() == meta:
                    return self._linked(kind, folder, fresh, meta, former)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        raise SinkError(f"the {kind} of generation {self._generation} change all the time")

    def _linked(
        self, kind: str, folder: Path, fresh: Path, meta: bytes, former: CommittedIndex | None
    ) -> CommittedIndex:
        """Give a folder of links its name when the sums of its files are known."""
        known: Mapping[str, FileSum] = former.files if former is not None else {}
        sums = {path.name: known.get(path.name) or file_sum(path) for path in fresh.iterdir()}
        for name in known.keys() - sums.keys() - {META_FILE}:
            if former is not None and not self._is_whole(former, name):
                raise SinkError(f"the file {kind}/{name} of generation {self._generation} is damaged: build again")
        write_bytes_whole(fresh / META_FILE, meta)
        sums[META_FILE] = FileSum.of(meta)
        shutil.rmtree(folder, ignore_errors=True)  # of a commit that ended before its stamp
        fresh.replace(folder)
        sync_directory(self._directory)
        return CommittedIndex(folder.name, sums)

    def _is_whole(self, index: CommittedIndex, name: str) -> bool:
        try:
            return file_sum(self._directory / index.folder / name) == index.files[name]
        except OSError:
            return False

    def _tidy(self, named: set[str], former: set[str]) -> None:
        """Remove what no stamp has named for a while."""
        oldest = time.time() - GRACE_S
        for path in list(self._directory.iterdir()):
            name = path.name.removesuffix(MANIFEST_SUFFIX)
            if name in named:
                continue
            with suppress(OSError):  # a reader may be opening it; then it stays until later
                if name in former:
                    os.utime(path)  # from now on nobody needs it
                elif path.stat().st_mtime < oldest:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def file_sum(path: Path) -> FileSum:
    """The sum of a file.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
        return FileSum(stream.tell(), digest)


def _folders(manifest: FilesManifest) -> set[str]:
    return {index.folder for index in manifest.indices.values()}


def _segment_files(directory: Path, meta: bytes) -> Iterator[Path]:
    """The files of the segments that the engine's meta file names."""
    try:
        segments: list[Mapping[str, Any]] = json.loads(meta)["segments"]
        deletes = {
            segment["segment_id"].replace("-", ""): (segment.get("deletes") or {}).get("opstamp")
            for segment in segments
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SinkError(f"the engine's file {directory / META_FILE} cannot be read") from error
    for path in directory.iterdir():
        segment, _, rest = path.name.partition(".")
        if segment in deletes and (not rest.endswith("del") or rest == f"{deletes[segment]}.del"):
            yield path


def _link_all(paths: Iterable[Path], folder: Path) -> bool:
    """Link files into a folder; whether all of them were still there."""
    for path in paths:
        try:
            os.link(path, folder / path.name)
        except FileNotFoundError:
            return False  # merged away: the meta file is another one by now
        except OSError:
            shutil.copyfile(path, folder / path.name)  # a file system without links
    return True
