"""Opens the typeaheads of an index directory, whose files are in the generation's directory."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from index_mappings.embedded import FileSum, generation_directory
from index_mappings.generations import Stamp
from index_mappings.typeahead.manifest import SUFFIX, TypeaheadManifest, is_name, manifest_path, typeahead_directory
from index_mappings.typeahead.segment import segment_path
from service.search.embedded.checks import CheckedFile, FileChecks
from service.search.failures import BackendUnavailable, GenerationGone, TypeaheadUnavailable

if TYPE_CHECKING:
    from service.search.typeahead.segments import SegmentPool
    from service.search.typeahead.typeahead import Typeahead

_WATCHED: Final = 3


class LocalTypeaheads:
    """Opens the typeaheads of an index directory."""

    def __init__(self, root: Path, checks: FileChecks) -> None:
        """Read nothing yet; `checks` verify the files of open typeaheads repeatedly."""
        self._root = root
        self._checks = checks
        self._pool: SegmentPool | None = None
        self._watched: list[tuple[str, int]] = []

    async def open(self, stamp: Stamp) -> "Typeahead":
        """Open the typeahead of a stamp in a thread; all of its files are read and checked.

        Raises as `Engine.typeahead`.
        """
        return await asyncio.to_thread(self._open, stamp)

    def _open(self, stamp: Stamp) -> "Typeahead":
        # Importing numpy and numba takes a second, so it must not happen in the event loop.
        from service.search.typeahead.segments import DamagedSegmentError  # noqa: PLC0415 - see above
        from service.search.typeahead.typeahead import open_pool, open_typeahead  # noqa: PLC0415 - see above

        directory = generation_directory(self._root, stamp.generation)
        if not directory.is_dir():
            raise GenerationGone(f"generation {stamp.generation} is no longer there")
        if not is_name(stamp.typeahead):
            raise BackendUnavailable(f"the stamp of generation {stamp.generation} names no typeahead")
        self._pool = self._pool or open_pool()
        files = typeahead_directory(directory)
        try:
            manifest = _manifest(manifest_path(files, stamp.typeahead).read_bytes(), stamp.typeahead)
            typeahead = open_typeahead(files, manifest, self._pool)
        except DamagedSegmentError as error:
            raise TypeaheadUnavailable(f"its file {error.name} is damaged; this is tried again") from error
        except (OSError, ValueError) as error:
            raise BackendUnavailable(f"the typeahead of generation {stamp.generation} cannot be opened") from error
        self._watch(stamp, files, manifest)
        return typeahead

    def _watch(self, stamp: Stamp, directory: Path, manifest: TypeaheadManifest) -> None:
        sizes = {segment_path(directory, name): size for name, size in manifest.files().items()}
        checked = [
            CheckedFile(path, f"typeahead/{path.name} of generation {stamp.generation}", FileSum(size, path.stem))
            for path, size in sizes.items()
        ]
        # When a stamp is opened, requests may still use the stamp before it.
        self._watched.append(stamp.key)
        self._checks.watch(typeahead_scope(stamp), ("typeahead", stamp.key), checked)
        while len(self._watched) > _WATCHED:
            self._checks.release(("typeahead", self._watched.pop(0)))


def _manifest(data: bytes, name: str) -> TypeaheadManifest:
    try:
        return TypeaheadManifest.from_bytes(data, name)
    except ValueError as error:
        raise TypeaheadUnavailable(f"its file {name}{SUFFIX} is damaged; this is tried again") from error


def typeahead_scope(stamp: Stamp) -> str:
    """The scope of a damaged file of a typeahead: other manifests do not share the damage, as they name new files."""
    return f"{stamp.generation}/{stamp.typeahead}"
