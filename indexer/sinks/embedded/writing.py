"""Writing embedded generations: a whole one, and changes of one that is sealed.

A whole one is written kind by kind and never changed until it is sealed. Changes of a sealed one are shown kind by
kind when they are committed; the stamp, which tells readers to look again, comes last.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import tantivy

from index_mappings.documents import DOCUMENTS, CategoryDocument, ShopDocument
from index_mappings.embedded import anchors_path, generation_directory, index_directory
from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.typeahead.manifest import typeahead_directory
from index_mappings.typeahead.segment import Shown
from indexer.sinks.embedded.bands import BAND_WIDTH, Bands
from indexer.sinks.embedded.committing import CommittedFiles
from indexer.sinks.embedded.documents import finished, schema
from indexer.sinks.embedded.files import has_strays, read_stamp, remove_torn, write_operations, write_stamp
from indexer.sinks.embedded.reading import EmbeddedReader
from indexer.sinks.failures import SinkError, TypeaheadDamagedError
from indexer.sinks.typeahead.build import TypeaheadBuild, rebuild_typeahead
from indexer.sinks.typeahead.editor import SMALL_SHOPS, TypeaheadEditor
from indexer.sinks.typeahead.folding import Folding
from indexer.sinks.typeahead.reading import damaged_files
from indexer.sinks.typeahead.store import LocalStore

# What a build gathers in memory before it writes a segment.
_HEAP_BYTES: Final = 64_000_000
_EDIT_HEAP_BYTES: Final = 32_000_000
_LOG: Final = logging.getLogger(__name__)

Document = TypeVar("Document")


class EmbeddedWriter(EmbeddedReader):
    """A generation that is being written."""

    def __init__(
        self,
        root: Path,
        generation: str,
        publish: Callable[[], None],
        discard: Callable[[], None],
        band_width: int = BAND_WIDTH,
    ) -> None:
        super().__init__(root, generation)
        self.publish = publish
        self.discard = discard
        self._band_width = band_width
        self._typeahead: TypeaheadBuild | None = None

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Write one kind's index."""
        bands = Bands(self._band_width)
        documents = self._typeahead_of(kind, documents)
        count = 0
        try:
            directory = index_directory(self._root, self._generation, kind)
            directory.mkdir()
            # One thread keeps the documents in the order in which they come.
            writer = tantivy.Index(schema(kind), path=str(directory)).writer(heap_size=_HEAP_BYTES, num_threads=1)
            for document in documents:
                writer.add_document(finished(kind, document, bands.place))
                count += 1
            writer.commit()
            writer.wait_merging_threads()
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} could not be written: {error}") from error
        bands.write(anchors_path(self._root, self._generation, kind))
        return count

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:  # noqa: ARG002 - a disk
        """Replace the file."""
        write_operations(self._root, self._generation, operations)

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Done when it was written."""

    def seal(self, stamp: Stamp) -> Stamp:
        """Write the typeahead's files and, naming these, the stamp's file."""
        try:
            name = self._begun_typeahead().finish()
        except OSError as error:
            raise SinkError(f"the typeahead could not be written: {error}") from error
        sealed = replace(stamp, typeahead=name, files=CommittedFiles(self._root, self._generation).commit(""))
        write_stamp(self._root, sealed)
        return sealed

    def _begun_typeahead(self) -> TypeaheadBuild:
        if self._typeahead is None:
            self._typeahead = TypeaheadBuild(generation_store(self._root, self._generation))
        return self._typeahead

    def _typeahead_of(self, kind: str, documents: Iterable[object]) -> Iterable[object]:
        """The same documents, which the typeahead takes in on their way if it has to do with them."""
        match kind:
            case "shops":
                return _watched(cast("Iterable[ShopDocument]", documents), self._begun_typeahead().add_shop)
            case "categories":
                return _watched(cast("Iterable[CategoryDocument]", documents), self._begun_typeahead().add_category)
            case _:
                return documents


class EmbeddedEditor(EmbeddedReader):
    """A sealed generation that is changed in place; open it only under the lease."""

    def __init__(
        self, root: Path, generation: str, folding: Folding | None = None, small_shops: int = SMALL_SHOPS
    ) -> None:
        super().__init__(root, generation)
        self._stamp = read_stamp(root, generation)
        self._writers: dict[str, tuple[tantivy.Schema, tantivy.IndexWriter]] = {}
        self._bands: dict[str, Bands] = {}
        self._store = generation_store(root, generation)
        self._committed = CommittedFiles(root, generation)
        self._typeahead = TypeaheadEditor(self._store, self._stamp.typeahead, folding, small_shops)
        self._putting: dict[str, Callable[[Any], None]] = {
            "shops": self._typeahead.put_shop,
            "categories": self._typeahead.put_category,
        }
        self._removing = {"shops": self._typeahead.remove_shop, "categories": self._typeahead.remove_category}
        directory = generation_directory(root, generation)
        remove_torn((directory, *(path for path in directory.iterdir() if path.is_dir())))
        for kind in DOCUMENTS:
            if has_strays(directory / kind):
                # The engine's own collection waits for readers that are just opening the index.
                self._writer(kind)[1].garbage_collect_files()

    @property
    def stamp(self) -> Stamp:
        """The stamp as it is now."""
        return self._stamp

    def typeahead_shown(self, after: str, end: str | None) -> Mapping[str, Shown]:
        """What the generation's files say."""
        try:
            return self._typeahead.shown(after, end)
        except (OSError, ValueError) as error:
            raise TypeaheadDamagedError(f"the typeahead cannot be read: {error}") from error

    def typeahead_damaged(self) -> tuple[str, ...]:
        """Read all files that the stamp leads to."""
        return damaged_files(self._store, self._stamp.typeahead)

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """Read all files that the stamp leads to, and what the order of the indices follows from."""
        anchors = {kind: anchors_path(self._root, self._generation, kind) for kind in DOCUMENTS}
        lost = ((kind, f"{kind}/{path.name}") for kind, path in anchors.items() if not Bands.are_whole(path))
        return (*self._committed.damaged(self._stamp.files), *lost)

    def rebuild_typeahead(self) -> None:
        """Write other files; those that are damaged are left until nobody reads them."""
        try:
            self._typeahead.restart(rebuild_typeahead(self, self._store))
        except OSError as error:
            raise SinkError(f"the typeahead could not be written: {error}") from error

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Replace and remove documents; the engine refuses none."""
        try:
            _, writer = self._writer(kind)
            bands = self._bands_of(kind)
            for document_id in removed:
                writer.delete_documents_by_term("id", document_id)
                if kind in self._removing:
                    self._removing[kind](document_id)
            for document in documents:
                writer.delete_documents_by_term("id", document.id)  # type: ignore[attr-defined]  # all have one
                writer.add_document(finished(kind, document, bands.of))
                if kind in self._putting:
                    self._putting[kind](document)
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} could not be changed: {error}") from error
        return 0

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove by the shop's id."""
        if not shop_ids:
            return
        try:
            known, writer = self._writer(kind)
            writer.delete_documents_by_query(tantivy.Query.term_set_query(known, "shop_refs", list(shop_ids)))
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} of hidden shops could not be removed: {error}") from error

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:  # noqa: ARG002 - a disk
        """Replace the file."""
        write_operations(self._root, self._generation, operations)

    def show(self) -> None:
        """Commit the kinds that were changed."""
        try:
            for _, writer in self._writers.values():
                writer.commit()
        except (OSError, ValueError) as error:
            raise SinkError(f"the changes could not be committed: {error}") from error
        self.reopen()

    def commit(self, stamp: Stamp) -> None:
        """Replace the stamp's file."""
        if read_stamp(self._root, self._generation) != self._stamp:
            raise SinkError("another job has changed the generation meanwhile")
        try:
            name = self._commit_typeahead()
        except (OSError, ValueError) as error:
            raise SinkError(f"the typeahead could not be written: {error}") from error
        files = self._committed.commit(self._stamp.files)
        self._stamp = replace(stamp, typeahead=name, files=files)
        write_stamp(self._root, self._stamp)

    def close(self) -> None:
        """Let merges end, and give the indices free for the next writer."""
        writers, self._writers = self._writers, {}
        for _, writer in writers.values():
            writer.wait_merging_threads()
        self.reopen()

    def _commit_typeahead(self) -> str:
        """Write the changes of the typeahead, or all of it where its files can't be read. Returns its new name."""
        try:
            return self._typeahead.commit()
        except (FileNotFoundError, ValueError) as error:
            # A shop that is under review now must not stay visible until somebody repairs it.
            _LOG.warning("the typeahead is built again from the index: %s", error)
            self.rebuild_typeahead()
            return self._typeahead.commit()

    def _bands_of(self, kind: str) -> Bands:
        if kind not in self._bands:
            self._bands[kind] = Bands.read(anchors_path(self._root, self._generation, kind))
        return self._bands[kind]

    def _writer(self, kind: str) -> tuple[tantivy.Schema, tantivy.IndexWriter]:
        if kind not in self._writers:
            if kind not in DOCUMENTS:
                raise SinkError(f"there is no kind {kind}")
            index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
            self._writers[kind] = (index.schema, index.writer(heap_size=_EDIT_HEAP_BYTES, num_threads=1))
        return self._writers[kind]


def generation_store(root: Path, generation: str) -> LocalStore:
    """Where the typeahead of a generation is."""
    return LocalStore(typeahead_directory(generation_directory(root, generation)))


def _watched(documents: Iterable[Document], take: Callable[[Document], None]) -> Iterator[Document]:
    for document in documents:
        take(document)
        yield document
