"""Fetches the files of a typeahead from OpenSearch into a folder that the processes of a machine share.

Files are fetched in chunks, two at a time over all files; requests that the cluster rejects for lack of capacity are
retried with growing pauses. A missing or damaged file is an error, never a shorter answer (E3).
"""

import asyncio
import logging
import os
import random
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from errno import EACCES, EDQUOT, EFBIG, EMFILE, ENFILE, ENOSPC, EPERM, EROFS, errorcode
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import AuthorizationException, NotFoundError, OpenSearchException, TransportError
from opensearchpy.exceptions import ConnectionError as NoConnection
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from index_mappings.generations import Stamp, index_name
from index_mappings.opensearch import TYPEAHEAD, chunk_count, chunk_id, chunk_of, file_size
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import detached_from_request
from shop_directory.search.failures import BackendUnavailable, GenerationGone, TypeaheadUnavailable
from shop_directory.search.opensearch.folder import NeededManifests, TypeaheadFolder
from shop_directory.typeahead.manifest import SUFFIX as MANIFEST
from shop_directory.typeahead.manifest import Announcement, TypeaheadManifest, is_name, manifest_path
from shop_directory.typeahead.segment import SUFFIX as SEGMENT

if TYPE_CHECKING:
    # They import numpy and numba, which takes a second: only a process that opens a typeahead needs them.
    from shop_directory.typeahead.reading.segments import SegmentPool
    from shop_directory.typeahead.reading.typeahead import Typeahead

# Categories and bitmaps: some 3 MB for a million shops.
_MAX_MANIFEST_BYTES: Final = 64 * 1024**2
_PARALLEL_CHUNKS: Final = 2
_CHUNK_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 15.0
_MAX_PAUSE_SECONDS: Final = 2.0
_LOCK_POLL_SECONDS: Final = 0.1
# Longer than a chunk with its retries takes, and the hash of the largest segment (25 GB), in which nothing is written.
_LOCK_TIMEOUT_SECONDS: Final = 180.0
# A random delay, so that services that see an announcement in the same second do not all start together.
_MAX_JITTER_SECONDS: Final = 1.0
_TRANSIENT_STATUSES: Final = frozenset(
    (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
)
_LOG: Final = logging.getLogger(__name__)

FULL: Final = "the folder for its files has no room left. Give SHOP_DIRECTORY_TYPEAHEAD_DIR more"
READ_ONLY: Final = (
    "the folder for its files cannot be written by this process alone. "
    "Mount a volume or a tmpfs of its own at SHOP_DIRECTORY_TYPEAHEAD_DIR"
)
TOO_MANY_OPEN: Final = (
    "the process may open no more files. Raise its limit of file descriptors (ulimit -Hn), or lower "
    "SHOP_DIRECTORY_MAX_CONNECTIONS"
)
DAMAGED: Final = (
    "its files in the index are damaged. Run shop-directory index verify --repair, or build the index again"
)
MISSING: Final = "files are missing from the index. Run shop-directory index verify --repair, or build the index again"
NOT_ALLOWED: Final = "the service's user may not read the index of its files. Give its role the right"
ENGINE_UNAVAILABLE: Final = "the search engine does not answer while its files are fetched"

_NO_INDEX: Final = "index_not_found_exception"
_NO_SPACE: Final = frozenset((ENOSPC, EDQUOT, EFBIG))
_NO_PERMISSION: Final = frozenset((EACCES, EPERM, EROFS))
UNUSABLE: Final = (
    "its files were fetched whole and cannot be used. Build the index again with the indexer of this service's version"
)


class TypeaheadFetcher:
    """Opens typeaheads, whose files are fetched if they are not in the folder yet. Used by one event loop."""

    def __init__(
        self, client: AsyncOpenSearch, prefix: str, folder: Path, most_bytes: int, metrics: Metrics = NO_METRICS
    ) -> None:
        """Request nothing yet. The caller closes the client; processes of this user may share the folder."""
        self._client = client
        self._prefix = prefix
        self.directory = folder
        self._folder = TypeaheadFolder(folder)
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._slots = asyncio.Semaphore(_PARALLEL_CHUNKS)
        self._needed = NeededManifests()
        self._background: dict[str, asyncio.Task[None]] = {}
        self._fetched_ahead = ""
        self._pool: SegmentPool | None = None

    async def open(self, stamp: Stamp) -> "Typeahead":
        """Fetch the files of a stamp's typeahead, and open it. Raises as `fetch`."""
        manifest = await self.fetch(stamp.generation, stamp.typeahead)
        try:
            return await self._opened(manifest)
        except (OSError, ValueError):
            # The disk, or another process, changed a file after it was verified: fetch it again.
            await self.remove_damaged(manifest)
        manifest = await self.fetch(stamp.generation, stamp.typeahead)
        try:
            return await self._opened(manifest)
        except (OSError, ValueError) as error:
            raise TypeaheadUnavailable(UNUSABLE) from error

    async def fetch(self, generation: str, name: str) -> TypeaheadManifest:
        """Fetch the missing files of one covering, and in the background those of the preferred one.

        Raises GenerationGone, or TypeaheadUnavailable if the files are unavailable; the message says why.
        """
        with translate_failures():
            manifest = await self._manifest(generation, name)
            self._needed.add(generation, name, manifest)
            missing = [self._missing(manifest, number) for number in range(len(manifest.coverings))]
            # The preferred covering is the first one; it wins a tie.
            least = min(missing, key=lambda files: sum(files.values()))
            await self._files(generation, least)
        if missing[0] is not least:
            self._start(name, self._files(generation, missing[0]))
        await asyncio.to_thread(self._folder.tidy, self._needed.names())
        await self._measure_folder()
        return manifest

    def fetch_ahead(self, announcement: Announcement) -> None:
        """Fetch the files of an announced typeahead in the background; after a failure, the next call tries again."""
        if announcement.typeahead not in {self._fetched_ahead, *self._background}:
            self._start(announcement.typeahead, self._fetch_ahead(announcement))

    async def remove_damaged(self, manifest: TypeaheadManifest) -> None:
        """Remove files whose hash differs from their name, so that they are fetched again."""
        with translate_failures():
            await asyncio.to_thread(self._folder.remove_damaged, manifest.files(), SEGMENT)

    async def close(self) -> None:
        """Cancel the fetches in the background."""
        tasks = tuple(self._background.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _opened(self, manifest: TypeaheadManifest) -> "Typeahead":
        # Hashing the files and importing numba take too long for the event loop.
        opened = await asyncio.to_thread(self._open, manifest)
        files = {use.name: use.size for use in manifest.coverings[0]}
        self._metrics.typeahead_open(len(files), sum(files.values()))
        return opened

    def _open(self, manifest: TypeaheadManifest) -> "Typeahead":
        from shop_directory.typeahead.reading.typeahead import open_pool, open_typeahead  # noqa: PLC0415 - see above

        self._pool = self._pool or open_pool()
        return open_typeahead(self.directory, manifest, self._pool)

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        async def logged() -> None:
            try:
                with translate_failures():
                    await work
            except BackendUnavailable as error:
                # No request waits for these files; one that needs them fetches them, and reports the failure.
                _LOG.info("files of a typeahead could not be fetched ahead: %s", error)
            finally:
                del self._background[name]

        if name in self._background:
            work.close()
            return
        with detached_from_request():
            self._background[name] = asyncio.create_task(logged())

    async def _fetch_ahead(self, announcement: Announcement) -> None:
        await asyncio.sleep(random.uniform(0, _MAX_JITTER_SECONDS))  # noqa: S311 - not a secret
        manifest = await self._manifest(announcement.generation, announcement.typeahead)
        self._needed.announce(announcement.typeahead, manifest)
        await self._files(announcement.generation, self._missing(manifest, 0))
        self._fetched_ahead = announcement.typeahead
        await self._measure_folder()

    async def _manifest(self, generation: str, name: str) -> TypeaheadManifest:
        if not is_name(name):
            raise TypeaheadUnavailable("the live generation has none. Build the index again")
        path = manifest_path(self._folder.path, name)
        if self._folder.has(name, MANIFEST):
            with suppress(ValueError):
                return await self._read_manifest(path)
            path.unlink(missing_ok=True)
        await self._file(generation, name, MANIFEST, None)
        return await self._read_manifest(path)

    async def _read_manifest(self, path: Path) -> TypeaheadManifest:
        manifest = TypeaheadManifest.from_bytes(await asyncio.to_thread(path.read_bytes), path.stem)
        sizes = manifest.files().values()
        if min(sizes, default=0) < 0 or sum(sizes) > self._most_bytes:
            raise TypeaheadUnavailable(
                f"its files have {sum(sizes) >> 20} MiB, which is more than "
                f"SHOP_DIRECTORY_TYPEAHEAD_MB allows ({self._most_bytes >> 20})"
            )
        return manifest

    def _missing(self, manifest: TypeaheadManifest, covering: int) -> dict[str, int]:
        uses = manifest.coverings[covering]
        return {use.name: use.size for use in uses if not self._folder.has(use.name, SEGMENT, use.size)}

    async def _files(self, generation: str, files: Mapping[str, int]) -> None:
        for name, size in files.items():
            await self._file(generation, name, SEGMENT, size)

    async def _file(self, generation: str, name: str, suffix: str, size: int | None) -> None:
        """Fetch one file, unless another process has fetched it meanwhile."""
        async with self._locked(name):
            if self._folder.has(name, suffix, size):
                return
            began, fetched, outcome = time.monotonic(), 0, "unavailable"
            index = index_name(self._prefix, TYPEAHEAD, generation)
            try:
                fetched = await self._fetch(index, name, suffix, size)
                outcome = "ok"
            finally:
                self._metrics.typeahead_fetched(outcome, fetched, time.monotonic() - began)

    async def _fetch(self, index: str, name: str, suffix: str, size: int | None) -> int:
        """Fetch a file whose lock is held, and return its size in bytes."""
        if size is None:
            size = file_size(await self._chunk(index, name, 0))
            if size > _MAX_MANIFEST_BYTES:
                raise ValueError("the manifest is too large")
        with self._folder.begin(name, suffix, size) as part:
            numbers = iter(range(chunk_count(size)))

            async def fetch_chunks() -> None:
                for number in numbers:
                    document = await self._chunk(index, name, number)
                    data = await asyncio.to_thread(chunk_of, document, name, number, size)
                    await asyncio.to_thread(part.write, number, data)

            workers = [asyncio.create_task(fetch_chunks()) for _ in range(_PARALLEL_CHUNKS)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            await asyncio.to_thread(part.finish)
        return size

    async def _chunk(self, index: str, name: str, number: int) -> dict[str, Any]:
        retrying = AsyncRetrying(
            retry=retry_if_exception(_is_transient),
            stop=stop_after_delay(_RETRY_SECONDS),
            wait=wait_random_exponential(multiplier=0.1, max=_MAX_PAUSE_SECONDS),
            reraise=True,
        )

        async def get() -> dict[str, Any]:
            params = {"request_timeout": _CHUNK_SECONDS}
            async with self._slots:
                found = await self._client.get(index=index, id=chunk_id(name, number), params=params)
            document: dict[str, Any] = found["_source"]
            return document

        return await retrying(get)

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
        """Hold the lock of a file; waits for another process or task as long as that writes the file."""
        written, deadline = None, time.monotonic() + _LOCK_TIMEOUT_SECONDS
        while (lock := self._folder.try_lock(name)) is None:
            if (last := self._folder.last_written(name)) != written:
                written, deadline = last, time.monotonic() + _LOCK_TIMEOUT_SECONDS
            if time.monotonic() > deadline:
                raise TypeaheadUnavailable("another process of this machine has stopped fetching its files")
            await asyncio.sleep(_LOCK_POLL_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret
        try:
            yield
        finally:
            os.close(lock)

    async def _measure_folder(self) -> None:
        self._metrics.typeahead_folder(*await asyncio.to_thread(self._folder.usage))


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, NoConnection):
        return not isinstance(error.info, ssl.CertificateError)
    return isinstance(error, TransportError) and error.status_code in _TRANSIENT_STATUSES


@contextmanager
def translate_failures() -> Iterator[None]:
    """Raise errors of the disk, the cluster and the checks as TypeaheadUnavailable; GenerationGone without an index."""
    try:
        yield
    except NotFoundError as error:
        if error.error == _NO_INDEX:
            raise GenerationGone("the typeahead's index no longer exists") from error
        raise TypeaheadUnavailable(MISSING) from error
    except AuthorizationException as error:
        raise TypeaheadUnavailable(NOT_ALLOWED) from error
    except OpenSearchException as error:
        raise TypeaheadUnavailable(ENGINE_UNAVAILABLE) from error
    except ValueError as error:
        raise TypeaheadUnavailable(DAMAGED) from error
    except OSError as error:
        raise TypeaheadUnavailable(_disk_message(error)) from error


def _disk_message(error: OSError) -> str:
    if error.errno in _NO_SPACE:
        return FULL
    if error.errno in _NO_PERMISSION:
        return READ_ONLY
    if error.errno in {EMFILE, ENFILE}:
        return TOO_MANY_OPEN
    return f"the folder for its files cannot be used ({errorcode.get(error.errno or 0, 'unknown')})"
