"""Reads the small files of an index directory, opens what a stamp names, indices and typeahead, and checks it (C1, E3).

Only the pointer file determines the live generation; a stamp must name the generation in whose directory it is.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import tantivy

from index_mappings.documents import DOCUMENTS, sort_field
from index_mappings.embedded import (
    ANCHORS_FILE,
    COMMITTED,
    META_FILE,
    OPERATIONS_FILE,
    FilesManifest,
    FileSum,
    files_manifest_path,
    from_checked_json,
    from_stamp_json,
    generation_directory,
    index_directory,
    pointed_to,
    pointer_path,
    stamp_path,
)
from index_mappings.generations import Operations, Stamp
from shop_directory.runtime.request_context import detached_from_request
from shop_directory.search.embedded.checks import CheckedFile, FileChecks
from shop_directory.search.embedded.order import Bands, RankedReader
from shop_directory.search.embedded.queries import OpenIndex
from shop_directory.search.failures import (
    BackendUnavailable,
    GenerationDamaged,
    GenerationGone,
    NothingPublished,
    TypeaheadUnavailable,
)
from shop_directory.search.protocol import Generations
from shop_directory.typeahead.manifest import FOLDER, SUFFIX, TypeaheadManifest, is_name, manifest_path
from shop_directory.typeahead.segment import segment_path

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.segments import SegmentPool
    from shop_directory.typeahead.reading.typeahead import Typeahead

P = ParamSpec("P")
T = TypeVar("T")

_CACHED_READERS: Final = 3
_WATCHED: Final = 3
# The module of panics of the engine's Python binding; their class cannot be imported.
_PANICS: Final = "pyo3_runtime"
_LOG: Final = logging.getLogger(__name__)

Readers = dict[str, RankedReader]


def read_live(root: Path) -> Stamp:
    """The live stamp. Raises NothingPublished, GenerationDamaged, or BackendUnavailable if a file is unreadable."""
    live, _ = _pointer(root)
    return read_stamp(root, live)


def read_generations(root: Path) -> Generations:
    """Both stamps, and the operations document of the live generation. Errors as in `read_live`."""
    live, previous = _pointer(root)
    return Generations(
        live=read_stamp(root, live),
        # The pointer file may still name a previous generation that was removed.
        previous=read_stamp(root, previous) if previous and stamp_path(root, previous).exists() else None,
        operations=_operations(root, live),
    )


def _pointer(root: Path) -> tuple[str, str | None]:
    pointer = pointer_path(root)
    try:
        return pointed_to(pointer.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise NothingPublished(
            f"nothing is published in {root.resolve()}, the directory of --data-dir or SHOP_DIRECTORY_DATA_DIR"
        ) from error
    except OSError as error:
        raise BackendUnavailable(f"cannot read {pointer}") from error
    except ValueError as error:
        raise GenerationDamaged(f"the file {pointer.name}, which names the live generation, is damaged") from error


def read_stamp(root: Path, generation: str) -> Stamp:
    """The stamp of a generation. Raises GenerationDamaged, or BackendUnavailable if it cannot be read."""
    path = stamp_path(root, generation)
    file = f"the file {path.name} of generation {generation}"
    try:
        stamp = from_stamp_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise GenerationDamaged(f"{file} is missing") from error
    except OSError as error:
        raise BackendUnavailable(f"cannot read {file}") from error
    except ValueError as error:
        raise GenerationDamaged(f"{file} is damaged") from error
    if stamp.generation != generation:
        raise GenerationDamaged(f"{file} names another generation: shop-directory index verify --repair replaces it")
    return stamp


def _operations(root: Path, generation: str) -> Operations | None:
    path = generation_directory(root, generation) / OPERATIONS_FILE
    try:
        return Operations.from_wire(from_checked_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def translate_errors(work: Callable[P, T]) -> Callable[P, T]:
    """Raise all errors of a call as BackendUnavailable (E3), also panics, which `except Exception` does not catch."""

    @wraps(work)
    def translating(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except BackendUnavailable:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__module__ != _PANICS:
                raise
            _LOG.exception("the embedded engine failed")
            raise BackendUnavailable("the embedded engine failed") from error

    return translating


class OpenIndices:
    """The open readers of the newest stamps: a generation stays readable while it is being replaced."""

    def __init__(self, root: Path, checks: FileChecks) -> None:
        self._root = root
        self._checks = checks
        self._readers: dict[tuple[str, int], Readers] = {}
        self._attempts: dict[tuple[str, int], asyncio.Task[Readers]] = {}
        self._bands: dict[tuple[str, str], Bands] = {}

    def opened(self, stamp: Stamp) -> Readers | None:
        """The readers of a stamp by kind; None if they are not open. Raises as `refuse_damaged`."""
        self.refuse_damaged(stamp.generation)
        return self._readers.get(stamp.key)

    def refuse_damaged(self, generation: str) -> None:
        """Raise GenerationDamaged for a damaged file, and close the readers, as a copy may replace it."""
        try:
            self._checks.refuse_damaged(generation)
        except GenerationDamaged:
            for key in [key for key in self._readers if key[0] == generation]:
                self._close(key)
            raise

    async def open(self, stamp: Stamp) -> Readers:
        """The readers of a stamp by kind; they are opened in a thread, which reads all files that are not open yet.

        Raises GenerationDamaged if a file is missing or differs from what was written, GenerationGone if the
        generation, or the files that the stamp names, were removed meanwhile, else BackendUnavailable.
        """
        readers = self.opened(stamp)
        if readers is not None:
            return readers
        attempt = self._attempts.get(stamp.key)
        if attempt is None:
            with detached_from_request():
                attempt = self._attempts[stamp.key] = asyncio.create_task(asyncio.to_thread(self._open, stamp))
            attempt.add_done_callback(lambda done: self._ended(stamp, done))
        # The cancellation of one caller must not cancel the attempt of the others.
        readers = await asyncio.shield(attempt)
        if stamp.key not in self._readers:
            self._readers[stamp.key] = readers
            for old in list(self._readers)[:-_CACHED_READERS]:
                self._close(old)
        return readers

    async def close(self) -> None:
        """Release all readers."""
        if self._attempts:
            await asyncio.wait(self._attempts.values())
        self._readers.clear()

    def _close(self, key: tuple[str, int]) -> None:
        del self._readers[key]
        self._checks.release(key)

    def _ended(self, stamp: Stamp, attempt: asyncio.Task[Readers]) -> None:
        del self._attempts[stamp.key]
        if not attempt.cancelled():
            attempt.exception()  # retrieved, as all waiting callers may have been cancelled

    def _open(self, stamp: Stamp) -> Readers:
        directory = generation_directory(self._root, stamp.generation)
        if not directory.is_dir():
            raise GenerationGone(f"generation {stamp.generation} is no longer there")
        try:
            data = files_manifest_path(directory, stamp.files).read_bytes()
            manifest = FilesManifest.from_bytes(data, stamp.files)
            files = _files(directory, stamp.generation, manifest)
            self._checks.check(stamp.generation, [file for some in files.values() for file in some])
            indices = {kind: _index(directory, kind, index.folder) for kind, index in manifest.indices.items()}
            # Opened after the engine has mapped them: what is mapped of a file that was replaced meanwhile is intact.
            opened = self._checks.watch(stamp.generation, stamp.key, [file for some in files.values() for file in some])
        except FileNotFoundError as error:
            if read_stamp(self._root, stamp.generation) != stamp:
                raise GenerationGone("the files that the stamp names were removed meanwhile") from error
            raise GenerationDamaged(
                f"a file of generation {stamp.generation} is missing: {Path(str(error.filename)).name}"
            ) from error
        except ValueError as error:
            raise GenerationDamaged(f"the list of the files of generation {stamp.generation} is damaged") from error
        except OSError as error:
            raise BackendUnavailable(f"cannot read the files of generation {stamp.generation}") from error
        return {
            kind: RankedReader(
                index,
                [opened[file].sized for file in files[kind] if file.path.name != META_FILE],
                self._bands_of(stamp.generation, kind),
            )
            for kind, index in indices.items()
        }

    def _bands_of(self, generation: str, kind: str) -> Bands:
        """The bands of an index, shared by all stamps of its generation; those of one other generation are kept."""
        bands = self._bands.get((generation, kind))
        if bands is None:
            if len(self._bands) >= 2 * len(DOCUMENTS):
                self._bands.clear()
            path = index_directory(self._root, generation, kind) / ANCHORS_FILE
            bands = self._bands[generation, kind] = Bands(path, generation)
        return bands


@translate_errors
def _index(directory: Path, kind: str, folder: str) -> OpenIndex:
    with _writable(directory / COMMITTED / folder) as path:
        index = tantivy.Index.open(str(path))
        # The files of this folder never change: the next stamp names another folder.
        index.config_reader("manual")
        return OpenIndex(kind, sort_field(kind), index.schema, index.searcher())


@contextmanager
def _writable(folder: Path) -> Iterator[Path]:
    """A folder with these files in which Tantivy can create its lock, if necessary a temporary one with links."""
    if os.access(folder, os.W_OK):
        yield folder
        return
    with TemporaryDirectory(prefix="shop-directory-") as links:
        for file in folder.iterdir():
            (Path(links) / file.name).symlink_to(file.absolute())
        yield Path(links)


def _files(directory: Path, generation: str, manifest: FilesManifest) -> dict[str, list[CheckedFile]]:
    folder = directory / COMMITTED
    return {
        kind: [
            CheckedFile(folder / index.folder / name, f"{kind}/{name} of generation {generation}", expected)
            for name, expected in index.files.items()
        ]
        for kind, index in manifest.indices.items()
    }


class LocalTypeaheads:
    """Opens the typeaheads of an index directory."""

    def __init__(self, root: Path, checks: FileChecks) -> None:
        self._root = root
        self._checks = checks
        self._pool: SegmentPool | None = None
        self._watched: list[tuple[str, int]] = []

    async def open(self, stamp: Stamp) -> "Typeahead":
        """Open the typeahead of a stamp in a thread, and check all of its files. Raises as `Engine.typeahead`."""
        return await asyncio.to_thread(self._open, stamp)

    def _open(self, stamp: Stamp) -> "Typeahead":
        # Importing numpy and numba takes a second, so it must not happen in the event loop.
        from shop_directory.typeahead.reading.segments import DamagedSegmentError  # noqa: PLC0415 - see above
        from shop_directory.typeahead.reading.typeahead import open_pool, open_typeahead  # noqa: PLC0415 - see above

        directory = generation_directory(self._root, stamp.generation)
        if not directory.is_dir():
            raise GenerationGone(f"generation {stamp.generation} is no longer there")
        if not is_name(stamp.typeahead):
            raise BackendUnavailable(f"the stamp of generation {stamp.generation} names no typeahead")
        self._pool = self._pool or open_pool()
        files = directory / FOLDER
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
