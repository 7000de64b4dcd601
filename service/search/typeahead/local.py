"""The typeaheads of an index directory: the embedded engine's files lie in the generation itself."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp
from index_mappings.typeahead.manifest import TypeaheadManifest, is_name, manifest_path, typeahead_directory
from service.search.failures import BackendUnavailable, GenerationGone

if TYPE_CHECKING:
    from service.search.typeahead.segments import SegmentPool
    from service.search.typeahead.typeahead import Typeahead


class LocalTypeaheads:
    """Opens typeaheads of an index directory."""

    def __init__(self, root: Path) -> None:
        """Name the index directory; nothing is read yet."""
        self._root = root
        self._pool: SegmentPool | None = None

    async def open(self, stamp: Stamp) -> "Typeahead":
        """The typeahead of a stamp, opened in a thread: all of it is read and checked.

        Raises:
            BackendUnavailable: a file is missing or damaged.
            GenerationGone: the generation was removed meanwhile.
        """
        return await asyncio.to_thread(self._open, stamp)

    def _open(self, stamp: Stamp) -> "Typeahead":
        # numpy and numba take a second to import, which is no time of the event loop.
        from service.search.typeahead.compiled import load_kernel  # noqa: PLC0415 - see above
        from service.search.typeahead.segments import SegmentPool  # noqa: PLC0415 - see above
        from service.search.typeahead.typeahead import open_typeahead  # noqa: PLC0415 - see above

        directory = generation_directory(self._root, stamp.generation)
        if not directory.is_dir():
            raise GenerationGone(f"generation {stamp.generation} is no longer there")
        if not is_name(stamp.typeahead):
            raise BackendUnavailable(f"the stamp of generation {stamp.generation} names no typeahead")
        if self._pool is None:
            load_kernel()
            self._pool = SegmentPool()
        files = typeahead_directory(directory)
        try:
            data = manifest_path(files, stamp.typeahead).read_bytes()
            return open_typeahead(files, TypeaheadManifest.from_bytes(data, stamp.typeahead), self._pool)
        except (OSError, ValueError) as error:
            raise BackendUnavailable(f"the typeahead of generation {stamp.generation} cannot be opened") from error
