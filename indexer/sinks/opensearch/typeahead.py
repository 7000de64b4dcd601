"""The files of a typeahead as documents of a generation: written in chunks, read into a local folder.

A file's chunks are written before anything refers to the file. Writing is idempotent, as ids are made of checksums.
"""

import logging
import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opensearchpy import OpenSearch

from index_mappings.generations import index_name
from index_mappings.opensearch import CHUNK_BYTES, TYPEAHEAD, chunk_count, chunk_document, chunk_id, chunk_of, file_size
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.retries import delete_matching, none_if_missing, retry_transient, whole
from shop_directory.typeahead.manifest import file_hash
from shop_directory.typeahead.writing.segment_file import check_file
from shop_directory.typeahead.writing.store import GRACE_S, PART_SUFFIX, TypeaheadStore, write_named

# A service reads the stamp once a second, and begins within another second.
LOOK_S: Final = 2.0
# Whatever the number of services; those that need longer fetch the remainder when the generation is live.
MAX_WAIT_S: Final = 120.0
_RATE: Final = 50 * 1024.0**2
# One chunk is encoded while another one is sent.
_CHUNKS_AT_A_TIME: Final = 2
# A pool holds all work that is submitted; a file of ten million shops has tens of thousands of chunks.
_SUBMITTED_CHUNKS: Final = 256
# Each micro-batch may leave unneeded files, but finding them costs a search.
_TIDY_EVERY_S: Final = 30.0
_MOST_FILES: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TypeaheadOptions:
    """How typeaheads are written, and how long publishing waits for readers to fetch them.

    Without a local folder for all files, a temporary one is used. `readers` are machines with services, each of which
    fetches the files once; 0 waits for none. The cluster sends all of them `rate` bytes a second.
    """

    folder: Path | None = None
    readers: int = 0
    rate: float = _RATE

    def seconds(self, size: int) -> float:
        """How many seconds readers get to fetch files of so many bytes."""
        return min(MAX_WAIT_S, LOOK_S + size * self.readers / self.rate) if self.readers else 0.0


class OpenSearchTypeahead(TypeaheadStore):
    """The store of one generation's typeahead in a cluster."""

    def __init__(
        self, client: OpenSearch, prefix: str, generation: str, directory: Path, grace: float = GRACE_S
    ) -> None:
        """Create the local folder, of this generation alone, if it is missing.

        Unneeded files stay in the cluster for `grace` seconds.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(directory)
        self._client = client
        self._index = index_name(prefix, TYPEAHEAD, generation)
        self._grace = grace
        self._check_part = directory / f"{os.getpid()}-check{PART_SUFFIX}"
        self._next_tidy = 0.0
        # When a file in the cluster was first seen to be unneeded, in seconds of the monotonic clock.
        self._unneeded: dict[str, float] = {}

    def fetch(self, name: str, suffix: str) -> Path:
        """Read a file from the cluster if it is missing or damaged locally."""
        path = self.directory / f"{name}{suffix}"
        try:
            check_file(path)
        except (FileNotFoundError, ValueError):
            part = path.with_suffix(PART_SUFFIX)
            try:
                self._copy(name, part)
                write_named(self.directory, part, name, suffix)
            finally:
                part.unlink(missing_ok=True)
        return path

    def put(self, path: Path) -> None:
        """Write a local file's chunks, and wait until all are acknowledged."""
        self._unneeded.pop(path.stem, None)
        size = path.stat().st_size

        def write(number: int) -> None:
            with path.open("rb") as file:
                file.seek(number * CHUNK_BYTES)
                body = chunk_document(path.stem, size, file.read(CHUNK_BYTES))
            retry_transient(
                lambda: self._client.index(index=self._index, id=chunk_id(path.stem, number), body=body),
                "a chunk of the typeahead could not be written",
            )

        with ThreadPoolExecutor(_CHUNKS_AT_A_TIME, thread_name_prefix="typeahead") as pool:
            count = chunk_count(size)
            for low in range(0, count, _SUBMITTED_CHUNKS):
                list(pool.map(write, range(low, min(count, low + _SUBMITTED_CHUNKS))))

    def tidy(self, needed: Collection[str]) -> None:
        """Remove local files, and from time to time the documents of files that were unneeded for the grace period.

        A failed removal is logged, and repeated later.
        """
        super().tidy(needed)
        now = time.monotonic()
        if now < self._next_tidy:
            return
        self._next_tidy = now + min(_TIDY_EVERY_S, self._grace)
        try:
            unneeded = self._stored() - set(needed)
            self._unneeded = {name: self._unneeded.get(name, now) for name in unneeded}
            due = [name for name, since in self._unneeded.items() if now - since >= self._grace]
            if due:
                query = {"terms": {"file": due}}
                delete_matching(self._client, self._index, query, "files of the typeahead could not be removed")
        except SinkError as error:
            _LOG.warning("unneeded files of the typeahead could not be removed: %s", error)

    def damaged(self, manifest_name: str, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """Read the files from the cluster; `check` is called before each chunk."""
        try:
            return super().damaged(manifest_name, check)
        finally:
            self._check_part.unlink(missing_ok=True)

    def _verified(self, name: str, suffix: str, check: Callable[[], None]) -> Path:  # noqa: ARG002 - of local files
        try:
            self._copy(name, self._check_part, check)
        except OSError as error:
            raise SinkError(f"the typeahead could not be checked: {error}") from error
        return self._check_part

    def _copy(self, name: str, part: Path, check: Callable[[], None] = lambda: None) -> None:
        """Copy a file from the cluster; raises ValueError if it is missing or damaged."""
        with part.open("wb") as file:
            document = self._chunk(name, 0)
            size = file_size(document)
            for number in range(chunk_count(size)):
                check()
                file.write(chunk_of(document if number == 0 else self._chunk(name, number), name, number, size))
            file.flush()
            os.fsync(file.fileno())
        if file_hash(part) != name:
            raise ValueError("a file of the typeahead is damaged")

    def _chunk(self, name: str, number: int) -> dict[str, Any]:
        index, document_id = self._index, chunk_id(name, number)
        found = none_if_missing(
            lambda: self._client.get(index=index, id=document_id), "a chunk of the typeahead could not be read"
        )
        if found is None:
            raise ValueError("a chunk of the typeahead is missing")
        document: dict[str, Any] = found["_source"]
        return document

    def _stored(self) -> set[str]:
        body = {"size": 0, "aggs": {"files": {"terms": {"field": "file", "size": _MOST_FILES}}}}

        def ask() -> dict[str, Any]:
            self._client.indices.refresh(index=self._index)
            return whole(self._client.search(index=self._index, body=body))

        answer = retry_transient(ask, "the files of the typeahead could not be listed")
        return {bucket["key"] for bucket in answer["aggregations"]["files"]["buckets"]}
