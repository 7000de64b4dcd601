"""Opens typeaheads over OpenSearch, after fetching their files into a local folder."""

import asyncio
from typing import TYPE_CHECKING, Final

from index_mappings.generations import Stamp
from index_mappings.typeahead.manifest import TypeaheadManifest
from service.runtime.telemetry import NO_METRICS, Metrics
from service.search.failures import TypeaheadUnavailable
from service.search.typeahead.fetching import TypeaheadFetcher

if TYPE_CHECKING:
    # They import numpy and numba, which takes a second: only a process that opens a typeahead needs them.
    from service.search.typeahead.segments import SegmentPool
    from service.search.typeahead.typeahead import Typeahead

UNUSABLE: Final = (
    "its files were fetched whole and cannot be used. Build the index again with the indexer of this service's version"
)


class FetchedTypeaheads:
    """Opens the typeaheads of stamps."""

    def __init__(self, fetcher: TypeaheadFetcher, metrics: Metrics = NO_METRICS) -> None:
        """Open nothing yet.

        Args:
            fetcher: fetches the files.
            metrics: report the number and size of open files.
        """
        self._fetcher = fetcher
        self._metrics = metrics
        self._pool: SegmentPool | None = None

    async def open(self, stamp: Stamp) -> "Typeahead":
        """Fetch the files of a stamp's typeahead, and open it.

        Raises:
            GenerationGone: the stamp's generation does not exist (any more).
            TypeaheadUnavailable: the files cannot be fetched, or cannot be used.
        """
        manifest = await self._fetcher.fetch(stamp.generation, stamp.typeahead)
        try:
            return await self._opened(manifest)
        except (OSError, ValueError):
            # The disk, or another process, changed a file after it was verified: fetch it again.
            await self._fetcher.remove_damaged(manifest)
        manifest = await self._fetcher.fetch(stamp.generation, stamp.typeahead)
        try:
            return await self._opened(manifest)
        except (OSError, ValueError) as error:
            raise TypeaheadUnavailable(UNUSABLE) from error

    async def close(self) -> None:
        """Cancel fetches in the background."""
        await self._fetcher.close()

    async def _opened(self, manifest: TypeaheadManifest) -> "Typeahead":
        # Hashing the files and importing numba take too long for the event loop.
        opened = await asyncio.to_thread(self._open, manifest)
        files = {use.name: use.size for use in manifest.coverings[0]}
        self._metrics.typeahead_open(len(files), sum(files.values()))
        return opened

    def _open(self, manifest: TypeaheadManifest) -> "Typeahead":
        from service.search.typeahead.compiled import load_kernel  # noqa: PLC0415 - see above
        from service.search.typeahead.segments import SegmentPool  # noqa: PLC0415 - see above
        from service.search.typeahead.typeahead import open_typeahead  # noqa: PLC0415 - see above

        if self._pool is None:
            load_kernel()
            self._pool = SegmentPool()
        return open_typeahead(self._fetcher.directory, manifest, self._pool)
