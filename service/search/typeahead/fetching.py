"""Fetches the files of a typeahead from OpenSearch into a folder that the processes of a machine share.

A file comes in chunks, two at a time over all files; what the cluster has no room for now is asked for again, later and
later. Only whole files count: what is missing or damaged is an error, and never a shorter answer (E3).
"""

import asyncio
import logging
import random
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import TransportError
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from index_mappings.generations import index_name
from index_mappings.typeahead.announcement import Announcement
from index_mappings.typeahead.chunks import TYPEAHEAD, chunk_count, chunk_id, chunk_of, file_size
from index_mappings.typeahead.manifest import SUFFIX as MANIFEST
from index_mappings.typeahead.manifest import TypeaheadManifest, is_name, manifest_path
from index_mappings.typeahead.segment import SUFFIX as SEGMENT
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import detached_from_request
from service.search.failures import BackendUnavailable, TypeaheadUnavailable
from service.search.typeahead.fetch_failures import explained
from service.search.typeahead.folder import TypeaheadFolder
from service.search.typeahead.needed import NeededManifests

# Categories and bitmaps: some 3 MB for a million shops.
_MOST_MANIFEST_BYTES: Final = 64 * 1024**2
_CHUNKS_AT_A_TIME: Final = 2
_CHUNK_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 15.0
_LONGEST_PAUSE_SECONDS: Final = 2.0
_LOCK_LOOK_SECONDS: Final = 0.1
_LOCK_PATIENCE_SECONDS: Final = 60.0
# Services that see an announcement in the same second do not all begin in it.
_SPREAD_SECONDS: Final = 1.0
_PASSING: Final = frozenset(
    (
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    )
)
_LOG: Final = logging.getLogger(__name__)


class TypeaheadFetcher:
    """Makes sure that the files of typeaheads are in a folder. Used by one event loop."""

    def __init__(
        self,
        client: AsyncOpenSearch,
        prefix: str,
        folder: Path,
        most_bytes: int,
        metrics: Metrics = NOTHING_MEASURED,
    ) -> None:
        """Note where files come from and go to; nothing is asked yet.

        Args:
            client: asks the cluster; it belongs to the caller.
            prefix: what all index names begin with.
            folder: private to this user; processes may share it.
            most_bytes: what the files of one typeahead may take together.
            metrics: count what is fetched.
        """
        self._client = client
        self._prefix = prefix
        self._folder = TypeaheadFolder(folder)
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._slots = asyncio.Semaphore(_CHUNKS_AT_A_TIME)
        self._needed = NeededManifests()
        self._background: dict[str, asyncio.Task[None]] = {}
        self._fetched_ahead = ""

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return self._folder.path

    async def fetch(self, generation: str, name: str) -> TypeaheadManifest:
        """Make sure that all files of one covering are there, and have those of the preferred one fetched.

        Args:
            generation: whose typeahead it is.
            name: of its manifest.

        Raises:
            GenerationGone: the generation is not there (any more).
            TypeaheadUnavailable: the files could not be had; the text says why.
        """
        with explained():
            manifest = await self._manifest(generation, name)
            self._needed.note(generation, name, manifest)
            missing = [self._missing(manifest, number) for number in range(len(manifest.coverings))]
            # The first, preferred one where it costs no more than another.
            least = min(missing, key=lambda files: sum(files.values()))
            await self._files(generation, least)
        if missing[0] is not least:
            self._start(name, self._files(generation, missing[0]))
        await asyncio.to_thread(self._folder.tidy, self._needed.names())
        await self._measure_folder()
        return manifest

    def fetch_ahead(self, announcement: Announcement) -> None:
        """Have the files of an announced typeahead fetched in the background; a failure is tried again when called."""
        if announcement.typeahead not in {self._fetched_ahead, *self._background}:
            self._start(announcement.typeahead, self._fetch_ahead(announcement))

    async def remove_damaged(self, manifest: TypeaheadManifest) -> None:
        """Remove files of a typeahead that are not what their names say, so that they are fetched again.

        Raises:
            TypeaheadUnavailable: they can't be removed, or read.
        """
        with explained():
            await asyncio.to_thread(self._folder.remove_damaged, manifest.files(), SEGMENT)

    async def close(self) -> None:
        """End what is fetched in the background."""
        tasks = tuple(self._background.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        async def logged() -> None:
            try:
                with explained():
                    await work
            except BackendUnavailable as error:
                # Nobody waits for it: whoever needs the files fetches them, and is told of the failure.
                _LOG.info("files of a typeahead could not be fetched ahead: %s", error)
            finally:
                del self._background[name]

        if name in self._background:
            work.close()
            return
        with detached_from_request():
            self._background[name] = asyncio.create_task(logged())

    async def _fetch_ahead(self, announcement: Announcement) -> None:
        await asyncio.sleep(random.uniform(0, _SPREAD_SECONDS))  # noqa: S311 - not a secret
        manifest = await self._manifest(announcement.generation, announcement.typeahead)
        self._needed.announce(announcement.typeahead, manifest)
        await self._files(announcement.generation, self._missing(manifest, 0))
        self._fetched_ahead = announcement.typeahead
        await self._measure_folder()

    async def _manifest(self, generation: str, name: str) -> TypeaheadManifest:
        """The manifest, from the folder or else from the cluster."""
        if not is_name(name):
            raise TypeaheadUnavailable("the live generation has none. Build the index again")
        path = manifest_path(self._folder.path, name)
        if self._folder.has(name, MANIFEST):
            try:
                return self._checked(TypeaheadManifest.from_bytes(await asyncio.to_thread(path.read_bytes), name))
            except ValueError:
                path.unlink(missing_ok=True)
        await self._file(generation, name, MANIFEST, None)
        return self._checked(TypeaheadManifest.from_bytes(await asyncio.to_thread(path.read_bytes), name))

    def _checked(self, manifest: TypeaheadManifest) -> TypeaheadManifest:
        sizes = manifest.files().values()
        if min(sizes, default=0) < 0 or sum(sizes) > self._most_bytes:
            raise TypeaheadUnavailable(
                f"its files have {sum(sizes) >> 20} MiB, which is more than "
                f"SHOP_DIRECTORY_TYPEAHEAD_MB allows ({self._most_bytes >> 20})"
            )
        return manifest

    def _missing(self, manifest: TypeaheadManifest, covering: int) -> dict[str, int]:
        """The files of a covering that are not in the folder, with their sizes."""
        files = {use.name: use.size for use in manifest.coverings[covering]}
        return {name: size for name, size in files.items() if not self._folder.has(name, SEGMENT, size)}

    async def _files(self, generation: str, files: Mapping[str, int]) -> None:
        for name, size in files.items():
            await self._file(generation, name, SEGMENT, size)

    async def _file(self, generation: str, name: str, suffix: str, size: int | None) -> None:
        """Make sure that one file is there: fetched here, or by another process that was faster."""
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
            if size > _MOST_MANIFEST_BYTES:
                raise ValueError("the manifest is too large")
        with self._folder.begin(name, suffix, size) as part:
            places = iter(range(chunk_count(size)))

            async def work() -> None:
                for place in places:
                    document = await self._chunk(index, name, place)
                    data = await asyncio.to_thread(chunk_of, document, name, place, size)
                    await asyncio.to_thread(part.write, place, data)

            workers = [asyncio.create_task(work()) for _ in range(_CHUNKS_AT_A_TIME)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            await asyncio.to_thread(part.finish)
        return size

    async def _chunk(self, index: str, name: str, place: int) -> dict[str, Any]:
        """The document of a chunk, asked for again while that may help."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(_passes),
            stop=stop_after_delay(_PATIENCE_SECONDS),
            wait=wait_random_exponential(multiplier=0.1, max=_LONGEST_PAUSE_SECONDS),
            reraise=True,
        )

        async def ask() -> dict[str, Any]:
            params = {"request_timeout": _CHUNK_SECONDS}
            async with self._slots:
                found = await self._client.get(index=index, id=chunk_id(name, place), params=params)
            document: dict[str, Any] = found["_source"]
            return document

        return await retrying(ask)

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
        """The right to write a file, waited for while another process or task has it."""
        until = time.monotonic() + _LOCK_PATIENCE_SECONDS
        while (lock := self._folder.try_lock(name)) is None:
            if time.monotonic() > until:
                raise TypeaheadUnavailable("another process of this machine is still fetching its files")
            await asyncio.sleep(_LOCK_LOOK_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret
        try:
            yield
        finally:
            self._folder.unlock(lock)

    async def _measure_folder(self) -> None:
        usage = await asyncio.to_thread(self._folder.usage)
        self._metrics.typeahead_folder(usage.files, usage.bytes)


def _passes(error: BaseException) -> bool:
    if isinstance(error, NoConnection) and isinstance(error.info, ssl.CertificateError):
        return False
    if isinstance(error, NoConnection):
        return True
    return isinstance(error, TransportError) and error.status_code in _PASSING
