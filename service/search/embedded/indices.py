"""The indices of an index directory, opened as a stamp names them, with all of their files checked (C1, E3)."""

import asyncio
from pathlib import Path
from typing import Final

import tantivy

from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp
from index_mappings.integrity import FilesManifest, committed_directory, files_manifest_path
from index_mappings.opensearch import sort_field
from service.runtime.request_context import detached_from_request
from service.search.embedded.checks import CheckedFile, FileChecks
from service.search.embedded.failures import translated
from service.search.embedded.order import Ordered
from service.search.embedded.queries import OpenIndex
from service.search.embedded.stamps import read_stamp
from service.search.failures import BackendUnavailable, GenerationDamaged, GenerationGone

_CACHED_READERS: Final = 3

Readers = dict[str, Ordered]


class OpenIndices:
    """Readers of the newest stamps; they stay open, so that a generation answers whole while it is being replaced."""

    def __init__(self, root: Path, checks: FileChecks) -> None:
        """Open nothing yet.

        Args:
            root: the index directory.
            checks: know what is damaged; they belong to the caller.
        """
        self._root = root
        self._checks = checks
        self._readers: dict[tuple[str, int], Readers] = {}
        self._attempts: dict[tuple[str, int], asyncio.Task[Readers]] = {}

    def opened(self, stamp: Stamp) -> Readers | None:
        """The readers of a stamp by kind; None where they have to be opened first.

        Raises:
            GenerationDamaged: a file of its generation is known to be damaged.
        """
        self._checks.refuse_damaged(stamp.generation)
        return self._readers.get(stamp.key)

    async def open(self, stamp: Stamp) -> Readers:
        """The readers of a stamp by kind, opened in a thread: all files are read, but those that are open already.

        Raises:
            GenerationDamaged: a file is missing or not what was written.
            GenerationGone: the generation, or what the stamp named of it, was removed meanwhile.
            BackendUnavailable: the engine cannot open it.
        """
        readers = self.opened(stamp)
        if readers is not None:
            return readers
        attempt = self._attempts.get(stamp.key)
        if attempt is None:
            with detached_from_request():
                attempt = self._attempts[stamp.key] = asyncio.create_task(asyncio.to_thread(self._open, stamp))
            attempt.add_done_callback(lambda done: self._ended(stamp, done))
        # One caller's end must not end the attempt of the others.
        readers = await asyncio.shield(attempt)
        if stamp.key not in self._readers:
            self._readers[stamp.key] = readers
            for old in list(self._readers)[:-_CACHED_READERS]:
                del self._readers[old]
                self._checks.release(old)
        return readers

    async def close(self) -> None:
        """Release all readers."""
        if self._attempts:
            await asyncio.wait(self._attempts.values())
        self._readers.clear()

    def _ended(self, stamp: Stamp, attempt: asyncio.Task[Readers]) -> None:
        del self._attempts[stamp.key]
        if not attempt.cancelled():
            attempt.exception()  # all who waited may have left

    def _open(self, stamp: Stamp) -> Readers:
        directory = generation_directory(self._root, stamp.generation)
        if not directory.is_dir():
            raise GenerationGone(f"generation {stamp.generation} is no longer there")
        try:
            data = files_manifest_path(directory, stamp.files).read_bytes()
            manifest = FilesManifest.from_bytes(data, stamp.files)
            files = _files(directory, stamp.generation, manifest)
            self._checks.check(stamp.generation, files)
            readers = {kind: _reader(directory, kind, index.folder) for kind, index in manifest.indices.items()}
        except FileNotFoundError as error:
            if read_stamp(self._root, stamp.generation) != stamp:
                raise GenerationGone("what the stamp named was removed meanwhile") from error
            raise GenerationDamaged(f"a file of generation {stamp.generation} is missing: {_name(error)}") from error
        except ValueError as error:
            raise GenerationDamaged(f"the list of the files of generation {stamp.generation} is damaged") from error
        except OSError as error:
            raise BackendUnavailable(f"cannot read the files of generation {stamp.generation}") from error
        self._checks.watch(stamp.generation, stamp.key, files)
        return readers


@translated
def _reader(directory: Path, kind: str, folder: str) -> Ordered:
    index = tantivy.Index.open(str(committed_directory(directory) / folder))
    # Nothing changes in this folder: the next stamp names another one.
    index.config_reader("manual")
    return Ordered(OpenIndex(kind, sort_field(kind), index.schema, index.searcher()))


def _files(directory: Path, generation: str, manifest: FilesManifest) -> list[CheckedFile]:
    folder = committed_directory(directory)
    return [
        CheckedFile(folder / index.folder / name, f"{kind}/{name} of generation {generation}", expected)
        for kind, index in manifest.indices.items()
        for name, expected in index.files.items()
    ]


def _name(error: FileNotFoundError) -> str:
    return Path(str(error.filename)).name
