"""The files of a typeahead as documents of a generation: written in chunks, read back whole into a local folder.

A file's chunks are written before anything refers to the file, and each write may be done twice: the same id has the
same bytes.
"""

import logging
import os
import shutil
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from opensearchpy import OpenSearch

from index_mappings.generations import index_name
from index_mappings.typeahead import manifest, segment
from index_mappings.typeahead.chunks import (
    CHUNK_BYTES,
    TYPEAHEAD,
    chunk_count,
    chunk_document,
    chunk_id,
    chunk_of,
    file_size,
)
from index_mappings.typeahead.manifest import TypeaheadManifest
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.retries import IncompleteError, if_there, retry_transient
from indexer.sinks.typeahead.store import GRACE_S, PART_SUFFIX, remove_files, write_named

# Packing one chunk and sending another go on together.
_CHUNKS_AT_A_TIME: Final = 2
# Every micro-batch may leave files; looking for them costs a search.
_LOOK_EVERY_S: Final = 30.0
_MOST_FILES: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Checked:
    """The file that was compared with its name: the same inode, size and time are the same bytes."""

    inode: int
    size: int
    changed_ns: int


class OpenSearchTypeahead:
    """The store of one generation's typeahead in a cluster; a `TypeaheadStore`."""

    def __init__(
        self, client: OpenSearch, prefix: str, generation: str, directory: Path, grace: float = GRACE_S
    ) -> None:
        """Name the place, and make the local folder where it is missing.

        Args:
            client: asks the cluster.
            prefix: what all index names begin with.
            generation: whose typeahead it is.
            directory: the local folder, of this generation alone.
            grace: seconds for which files stay in the cluster when no manifest that is kept names them any more.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self._client = client
        self._index = index_name(prefix, TYPEAHEAD, generation)
        self._grace = grace
        self._checked: dict[Path, _Checked] = {}
        self._next_look = 0.0
        # Since when a file in the cluster is needed no more, in seconds of the monotonic clock.
        self._unneeded: dict[str, float] = {}

    def fetch(self, name: str, suffix: str) -> Path:
        """Return the local path of a file, which is read from the cluster where it is missing or damaged here.

        Raises:
            OSError: the local folder can't be used.
            ValueError: the file in the cluster is missing or damaged.
            SinkError: the cluster does not answer.
        """
        path = self.directory / f"{name}{suffix}"
        if not self._is_whole(path):
            self._read(path)
        return path

    def put(self, path: Path) -> None:
        """Write a local file's chunks, and return when all are acknowledged."""
        self._unneeded.pop(path.stem, None)
        size = path.stat().st_size

        def write(place: int) -> None:
            with path.open("rb") as file:
                file.seek(place * CHUNK_BYTES)
                body = chunk_document(path.stem, size, file.read(CHUNK_BYTES))
            retry_transient(
                lambda: self._client.index(index=self._index, id=chunk_id(path.stem, place), body=body),
                "a chunk of the typeahead could not be written",
            )

        with ThreadPoolExecutor(_CHUNKS_AT_A_TIME, thread_name_prefix="typeahead") as pool:
            list(pool.map(write, range(chunk_count(size))))

    def tidy(self, keep: Collection[str]) -> None:
        """Remove local files, and now and then documents of files that were needed no more for the whole grace.

        What can't be removed now stays for the next time: no answer depends on it.
        """
        remove_files(self.directory, keep)
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + min(_LOOK_EVERY_S, self._grace)
        try:
            unneeded = self._stored() - set(keep)
            self._unneeded = {name: self._unneeded.get(name, now) for name in unneeded}
            due = [name for name, since in self._unneeded.items() if now - since >= self._grace]
            if due:
                self._remove(due)
        except SinkError as error:
            _LOG.warning("files of the typeahead that are needed no more could not be removed: %s", error)

    def damaged(self, manifest_name: str) -> tuple[str, ...]:
        """The files of a manifest, itself among them, that can't be read back whole from the cluster.

        Raises:
            OSError: the local folder can't be used.
            SinkError: the cluster does not answer.
        """
        part = self.directory / f"{os.getpid()}-check{PART_SUFFIX}"
        found: list[str] = []
        try:
            try:
                self._copy(manifest_name, part)
                files = TypeaheadManifest.from_bytes(part.read_bytes(), manifest_name).files()
            except ValueError:
                return (f"{manifest_name}{manifest.SUFFIX}",)
            for name in files:
                try:
                    self._copy(name, part)
                except ValueError:
                    found.append(f"{name}{segment.SUFFIX}")
        finally:
            part.unlink(missing_ok=True)
        return tuple(found)

    def _is_whole(self, path: Path) -> bool:
        try:
            status = path.stat()
            identity = _Checked(status.st_ino, status.st_size, status.st_mtime_ns)
            if self._checked.get(path) == identity:
                return True
            if _sum(path) != path.stem:
                return False
        except FileNotFoundError:
            return False
        self._checked[path] = identity
        return True

    def _read(self, path: Path) -> None:
        part = path.with_suffix(PART_SUFFIX)
        try:
            self._copy(path.stem, part)
            write_named(self.directory, part, path.stem, path.suffix)
        finally:
            part.unlink(missing_ok=True)

    def _copy(self, name: str, part: Path) -> int:
        """Read a file from the cluster and return its size; ValueError where it is missing or damaged."""
        with part.open("wb") as file:
            document = self._chunk(name, 0)
            size = file_size(document)
            for place in range(chunk_count(size)):
                file.write(chunk_of(document if place == 0 else self._chunk(name, place), name, place, size))
            file.flush()
            os.fsync(file.fileno())
        if _sum(part) != name:
            raise ValueError("a file of the typeahead is not what its name says")
        return size

    def _chunk(self, name: str, place: int) -> dict[str, Any]:
        index, document_id = self._index, chunk_id(name, place)
        found = if_there(
            lambda: self._client.get(index=index, id=document_id), "a chunk of the typeahead could not be read"
        )
        if found is None:
            raise ValueError("a chunk of the typeahead is missing")
        document: dict[str, Any] = found["_source"]
        return document

    def _stored(self) -> set[str]:
        """The files that have documents."""
        body = {"size": 0, "aggs": {"files": {"terms": {"field": "file", "size": _MOST_FILES}}}}

        def ask() -> dict[str, Any]:
            self._client.indices.refresh(index=self._index)
            answer: dict[str, Any] = self._client.search(index=self._index, body=body)
            if answer["timed_out"] or answer["_shards"]["failed"]:
                raise IncompleteError
            return answer

        answer = retry_transient(ask, "the files of the typeahead could not be listed")
        return {bucket["key"] for bucket in answer["aggregations"]["files"]["buckets"]}

    def _remove(self, names: list[str]) -> None:
        body = {"query": {"terms": {"file": names}}}

        def ask() -> None:
            # What is written again meanwhile is a conflict, and stays.
            answer = self._client.delete_by_query(index=self._index, body=body, params={"conflicts": "proceed"})
            if answer["failures"] or answer["timed_out"]:
                raise IncompleteError

        retry_transient(ask, "files of the typeahead could not be removed")


class TypeaheadStores:
    """The stores of a cluster's generations; a folder for each of them below one."""

    def __init__(self, client: OpenSearch, prefix: str, folder: Path | None) -> None:
        """Make nothing yet.

        Args:
            client: asks the cluster.
            prefix: what all index names begin with.
            folder: for all of them; None is one that is gone after `close`.
        """
        self._client = client
        self._prefix = prefix
        self._folder = folder
        self._temporary: TemporaryDirectory[str] | None = None
        self._stores: dict[str, OpenSearchTypeahead] = {}

    def of(self, generation: str) -> OpenSearchTypeahead:
        """The store of a generation."""
        if self._folder is None:
            self._temporary = TemporaryDirectory(prefix="shop-directory-typeahead-")
            self._folder = Path(self._temporary.name)
        if generation not in self._stores:
            directory = self._folder / generation
            self._stores[generation] = OpenSearchTypeahead(self._client, self._prefix, generation, directory)
        return self._stores[generation]

    def drop(self, generation: str) -> None:
        """Remove a generation's local folder."""
        self._stores.pop(generation, None)
        if self._folder is not None:
            shutil.rmtree(self._folder / generation, ignore_errors=True)

    def close(self) -> None:
        """Remove what is for this process only."""
        if self._temporary is not None:
            self._temporary.cleanup()


@contextmanager
def local_files() -> Iterator[None]:
    """Raise what befalls the local files of a typeahead as what a sink raises."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SinkError(f"the local files of the typeahead cannot be used: {reason}") from error


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
