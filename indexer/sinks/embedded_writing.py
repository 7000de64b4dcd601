"""Writing embedded generations: a whole one, and changes of one that is sealed.

A whole one is written kind by kind and never changed until it is sealed. Changes of a sealed one are shown kind by
kind when they are committed; the stamp, which tells readers to look again, comes last.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from operator import length_hint
from pathlib import Path
from typing import Final, cast

import tantivy

from index_mappings.documents import DOCUMENTS, ShopDocument
from index_mappings.embedded import anchors_path, generation_directory, index_directory, stamp_path
from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.typeahead import Shown
from indexer.sinks.embedded_bands import BAND_WIDTH, Bands
from indexer.sinks.embedded_documents import Finisher, schema
from indexer.sinks.embedded_files import has_strays, read_stamp, remove_torn, write_operations, write_whole
from indexer.sinks.embedded_reading import EmbeddedReader
from indexer.sinks.embedded_segments import SegmentedBuild
from indexer.sinks.embedded_typeahead import TypeaheadEditor, built
from indexer.sinks.protocol import SinkError
from indexer.sinks.typeahead_shop import Findable

# The kind that key presses find.
_SHOPS: Final = "shops"
_EDIT_HEAP_BYTES: Final = 32_000_000
# So many documents tell how large they are.
_SAMPLE: Final = 200


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

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Write one kind's index, as one segment where the documents say beforehand how many they are."""
        expected = length_hint(documents)
        bands = Bands.expecting(expected, self._band_width)
        if kind == _SHOPS:
            documents = built(self._root, self._generation, cast("Iterable[ShopDocument]", documents))
        finished = map(Finisher(kind, bands.head, bands.place).finish, documents)
        count = 0
        try:
            directory = index_directory(self._root, self._generation, kind)
            directory.mkdir()
            sample = list(islice(finished, _SAMPLE))
            terms_each = sum(terms for _, terms in sample) / max(1, len(sample))
            build = SegmentedBuild(tantivy.Index(schema(kind), path=str(directory)), expected, terms_each)
            for document, terms in chain(sample, finished):
                build.add(document, terms)
                count += 1
            build.finish()
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} could not be written: {error}") from error
        bands.write(anchors_path(self._root, self._generation, kind))
        return count

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:  # noqa: ARG002 - a disk
        """Replace the file."""
        write_operations(self._root, self._generation, operations)

    def merge(self, meanwhile: Callable[[], None]) -> None:
        """Done when it was written."""

    def seal(self, stamp: Stamp) -> None:
        """Write the stamp's file."""
        write_whole(stamp_path(self._root, self._generation), json.dumps(stamp.as_wire()))


class EmbeddedEditor(EmbeddedReader):
    """A sealed generation that is changed in place; open it only under the lease."""

    def __init__(self, root: Path, generation: str) -> None:
        super().__init__(root, generation)
        self._stamp = read_stamp(root, generation)
        self._writers: dict[str, tuple[tantivy.Schema, tantivy.IndexWriter]] = {}
        self._finishers: dict[str, Finisher] = {}
        self._typeahead = TypeaheadEditor(root, generation, partial(self.count, _SHOPS), self._findable)
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

    def suggestions(self, after: str, end: str | None) -> Mapping[str, Shown] | None:
        """What the files beside the index say."""
        return self._typeahead.shown(self._stamp.sequence, after, end)

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Replace and remove documents; the engine refuses none."""
        try:
            _, writer = self._writer(kind)
            finisher = self._finisher(kind)
            for document_id in removed:
                writer.delete_documents_by_term("id", document_id)
                if kind == _SHOPS:
                    self._typeahead.remove(document_id)
            for document in documents:
                writer.delete_documents_by_term("id", document.id)  # type: ignore[attr-defined]  # all have one
                writer.add_document(finisher.finish(document)[0])
                if kind == _SHOPS:
                    self._typeahead.put(cast("ShopDocument", document))
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
            self._typeahead.commit(self._stamp.sequence, stamp.sequence)
        except OSError as error:
            raise SinkError(f"what key presses are answered from could not be written: {error}") from error
        write_whole(stamp_path(self._root, self._generation), json.dumps(stamp.as_wire()))
        self._stamp = stamp

    def close(self) -> None:
        """Let merges end, and give the indices free for the next writer."""
        writers, self._writers = self._writers, {}
        for _, writer in writers.values():
            writer.wait_merging_threads()
        self.reopen()

    def _findable(self) -> Iterator[Findable]:
        for _, stored in self.scan(_SHOPS):
            yield Findable.of_stored(stored)

    def _finisher(self, kind: str) -> Finisher:
        if kind not in self._finishers:
            bands = Bands.read(anchors_path(self._root, self._generation, kind))
            self._finishers[kind] = Finisher(kind, bands.head, bands.of)
        return self._finishers[kind]

    def _writer(self, kind: str) -> tuple[tantivy.Schema, tantivy.IndexWriter]:
        if kind not in self._writers:
            if kind not in DOCUMENTS:
                raise SinkError(f"there is no kind {kind}")
            index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
            self._writers[kind] = (index.schema, index.writer(heap_size=_EDIT_HEAP_BYTES, num_threads=1))
        return self._writers[kind]
