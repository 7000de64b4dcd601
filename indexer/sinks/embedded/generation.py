"""Embedded generations: read, written as a whole, and changed when they are sealed.

A whole generation is written kind by kind, then sealed. Changes of a sealed one are committed kind by kind; the stamp,
which makes readers reopen it, is written last.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import orjson
import tantivy

from index_mappings.documents import DOCUMENTS, Form, sort_field, stored_part
from index_mappings.embedded import (
    ANCHORS_FILE,
    BAND_COLUMN,
    OPERATIONS_FILE,
    STORED_COLUMN,
    column_values,
    columns,
    from_checked_json,
    generation_directory,
    index_directory,
    read_anchors,
    read_frequent,
    to_checked_json,
)
from index_mappings.generations import Operations, Stamp
from index_mappings.ngrams import NONE_FREQUENT, FrequentTerms, frequent_terms
from indexer.progress import in_thread
from indexer.sinks.embedded.files import (
    CommittedFiles,
    has_orphaned_segments,
    read_stamp,
    remove_torn,
    write_stamp,
    write_whole,
)
from indexer.sinks.failures import SinkError, as_sink_error
from indexer.sinks.generation_typeahead import SinkTypeaheadBuild, SinkTypeaheadEditor, needed_space
from shop_directory.typeahead import manifest
from shop_directory.typeahead.writing.build import return_freed_memory
from shop_directory.typeahead.writing.merging import BackgroundMerging
from shop_directory.typeahead.writing.store import TypeaheadStore

# Documents of a band in a build: few enough to sort quickly.
BAND_WIDTH: Final = 16
# The memory of a writer before it writes a segment.
_HEAP_BYTES: Final = 128_000_000
# Bytes of all indices for each shop while the typeahead is sealed: 1,200 were measured for shops with related records.
_PEAK_SHOP_BYTES: Final = 1_500
_EDIT_HEAP_BYTES: Final = 32_000_000
# The syntax of all ids and slugs; other characters would have a meaning in a query.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class BandAnchors:
    """The bands of one index: integers that order documents coarsely by rank, also while documents change (M1).

    A band begins at an anchor, the rank of some document. Anchors never change, so a document's band depends on its
    rank alone. In the same file are the index's frequent terms, which never change either.
    """

    def __init__(self, anchors: list[str] | None = None, frequent: FrequentTerms = NONE_FREQUENT) -> None:
        """Begin with these ascending anchors; without any, there is one band."""
        self.frequent = frequent
        self._anchors = anchors if anchors is not None else []
        self._in_last = 0
        self._highest = ""

    def of(self, rank: str) -> int:
        """The band of a document."""
        return bisect_right(self._anchors, rank)

    def assign(self, rank: str) -> int:
        """The band of the next document of a build, which may begin a new band.

        Bands are of equal size if documents are added in the order of their ranks, and correct in any order.
        """
        if rank > self._highest:
            # All documents so far rank lower, so a new band may begin here.
            if self._in_last >= BAND_WIDTH:
                self._anchors.append(rank)
                self._in_last = 0
            self._highest = rank
        band = self.of(rank)
        self._in_last += band == len(self._anchors)
        return band

    def write(self, path: Path) -> None:
        """Write the anchors and the frequent terms to a file atomically."""
        frequent = {column: sorted(terms) for column, terms in self.frequent.items()}
        write_whole(path, to_checked_json({"anchors": self._anchors, "frequent": frequent}))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the bands of an index."""
        try:
            return cls(anchors=read_anchors(path), frequent=read_frequent(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SinkError(f"the order of the index, {path}, cannot be read: build a new generation") from error


class EmbeddedReader:
    """Reads one generation; each kind as of when it was opened: later commits are read once `_opened` is cleared."""

    def __init__(self, root: Path, generation: str) -> None:
        self._root = root
        self._generation = generation
        self._opened: dict[str, tuple[tantivy.Index, tantivy.Searcher]] = {}

    def count(self, kind: str) -> int:
        return int(self._open(kind)[1].num_docs)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        searcher = self._open(kind)[1]
        return {values["id"]: values for values in (_stored(searcher, address) for address in self._found(kind, ids))}

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        return len(self._found(kind, ids))

    def page(self, kind: str, after: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        index, searcher = self._open(kind)
        plain = _PLAIN.match(after)
        # A query can only have the valid beginning of an invalid id; earlier ids are skipped.
        query = index.parse_query(f"id:>{plain[0]}", []) if plain else tantivy.Query.all_query()
        size = limit
        while True:
            found = searcher.search(query, limit=size, order_by_field="id", order=tantivy.Order.Asc, count=False)
            stored = [_stored(searcher, address) for _, address in found.hits]
            later = [(values["id"], values) for values in stored if values["id"] > after]
            if len(later) >= limit or len(stored) < size:
                return later[:limit]
            size *= 2

    def operations(self) -> Operations | None:
        path = generation_directory(self._root, self._generation) / OPERATIONS_FILE
        try:
            return Operations.from_wire(from_checked_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:  # noqa: ARG002 - a disk
        write_whole(
            generation_directory(self._root, self._generation) / OPERATIONS_FILE, to_checked_json(operations.as_wire())
        )

    def _found(self, kind: str, ids: Collection[str]) -> list[tantivy.DocAddress]:
        index, searcher = self._open(kind)
        query = tantivy.Query.term_set_query(index.schema, "id", list(ids))
        return [address for _, address in searcher.search(query, limit=max(1, len(ids)), count=False).hits]

    def _open(self, kind: str) -> tuple[tantivy.Index, tantivy.Searcher]:
        if kind not in self._opened:
            with as_sink_error(f"the {kind} of generation {self._generation} cannot be read"):
                index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
                index.config_reader("manual")
                self._opened[kind] = (index, index.searcher())
        return self._opened[kind]


def _stored(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> dict[str, Any]:
    stored: dict[str, Any] = orjson.loads(searcher.doc(address)[STORED_COLUMN][0])
    return stored


class EmbeddedWriter(EmbeddedReader):
    """Writes a new generation."""

    def __init__(self, root: Path, generation: str) -> None:
        super().__init__(root, generation)
        self._frequent: dict[str, FrequentTerms] = {}
        self._typeahead = SinkTypeaheadBuild(generation_store(root, generation))

    def needed_space(self, counts: Mapping[str, int]) -> tuple[Path, int]:
        """The indices, of which merges write copies, and the typeahead."""
        shops = counts["shops"]
        return self._root, _PEAK_SHOP_BYTES * shops + needed_space(shops)

    def learn(self, kind: str, sample: Iterable[object]) -> None:
        """Take the prefixes and parts that are frequent in the sample as terms."""
        self._frequent[kind] = frequent_terms(DOCUMENTS[kind], sample)

    def add(self, kind: str, documents: Iterable[object], tick: Callable[[], None] = lambda: None) -> int:
        """Write one kind's index."""
        bands = BandAnchors(frequent=self._frequent.get(kind, NONE_FREQUENT))
        directory = index_directory(self._root, self._generation, kind)
        count = 0
        with as_sink_error(f"the {kind} could not be written"):
            directory.mkdir()
            # One thread preserves the order of the documents.
            writer = tantivy.Index(schema(kind), path=str(directory)).writer(heap_size=_HEAP_BYTES, num_threads=1)
            for document in self._typeahead.passing(documents):
                writer.add_document(finished(kind, document, bands.assign, bands.frequent))
                count += 1
            in_thread(partial(_complete, writer), tick)
            return_freed_memory()
        bands.write(directory / ANCHORS_FILE)
        return count

    def seal(self, stamp: Stamp) -> Stamp:
        """Write the typeahead's files and, naming these, the stamp's file."""
        name = self._typeahead.finish()
        sealed = replace(stamp, typeahead=name, files=CommittedFiles(self._root, self._generation).commit(""))
        write_stamp(self._root, sealed)
        return sealed


def _complete(writer: tantivy.IndexWriter) -> None:
    writer.commit()
    writer.wait_merging_threads()


class EmbeddedEditor(EmbeddedReader):
    """Changes a sealed generation in place; only under the lease."""

    def __init__(self, root: Path, stamp: Stamp, merging: BackgroundMerging | None = None) -> None:
        generation = stamp.generation
        super().__init__(root, generation)
        self._stamp = stamp
        self._writers: dict[str, tuple[tantivy.Schema, tantivy.IndexWriter]] = {}
        self._bands: dict[str, BandAnchors] = {}
        self._committed = CommittedFiles(root, generation)
        self.typeahead = SinkTypeaheadEditor(self, generation_store(root, generation), stamp.typeahead, merging)

    def remove_remains(self) -> None:
        """Remove the partial files and segments of killed jobs."""
        directory = generation_directory(self._root, self._generation)
        remove_torn((directory, *(path for path in directory.iterdir() if path.is_dir())))
        for kind in DOCUMENTS:
            if has_orphaned_segments(directory / kind):
                with as_sink_error(f"the remains of the {kind} could not be removed"):
                    # The engine's garbage collection waits for readers that are opening the index.
                    self._writer(kind)[1].garbage_collect_files()

    @property
    def stamp(self) -> Stamp:
        return self._stamp

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        """Read all files of the indices, and the anchors of their bands."""
        lost: list[tuple[str, str]] = []
        for kind in DOCUMENTS:
            try:
                BandAnchors.read(path := index_directory(self._root, self._generation, kind) / ANCHORS_FILE)
            except SinkError:
                lost.append((kind, f"{kind}/{path.name}"))
        return (*self._committed.damaged(self._stamp.files), *lost)

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Replace and remove documents; the engine refuses none."""
        with as_sink_error(f"the {kind} could not be changed"):
            _, writer = self._writer(kind)
            bands = self._bands_of(kind)
            for document_id in removed:
                writer.delete_documents_by_term("id", document_id)
                self.typeahead.remove(kind, document_id)
            for document in documents:
                writer.delete_documents_by_term("id", document.id)  # type: ignore[attr-defined]  # all have one
                writer.add_document(finished(kind, document, bands.of, bands.frequent))
                self.typeahead.put(document)
        return 0

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        if not shop_ids:
            return
        with as_sink_error(f"the {kind} of hidden shops could not be removed"):
            known, writer = self._writer(kind)
            writer.delete_documents_by_query(tantivy.Query.term_set_query(known, "shop_refs", list(shop_ids)))

    def show(self) -> None:
        """Commit the kinds that were changed."""
        with as_sink_error("the changes could not be committed"):
            for _, writer in self._writers.values():
                writer.commit()
        self._opened.clear()

    def commit(self, stamp: Stamp) -> None:
        """Replace the stamp's file."""
        if read_stamp(self._root, self._generation) != self._stamp:
            raise SinkError("another job has changed the generation meanwhile")
        name = self.typeahead.commit()
        files = self._committed.commit(self._stamp.files)
        self._stamp = replace(stamp, typeahead=name, files=files)
        write_stamp(self._root, self._stamp)

    def close(self) -> None:
        """Wait for merges, and unlock the indices for the next writer."""
        writers, self._writers = self._writers, {}
        with as_sink_error("the changes could not be written to the end"):
            for _, writer in writers.values():
                writer.wait_merging_threads()
        self._opened.clear()

    def _bands_of(self, kind: str) -> BandAnchors:
        if kind not in self._bands:
            self._bands[kind] = BandAnchors.read(index_directory(self._root, self._generation, kind) / ANCHORS_FILE)
        return self._bands[kind]

    def _writer(self, kind: str) -> tuple[tantivy.Schema, tantivy.IndexWriter]:
        if kind not in self._writers:
            if kind not in DOCUMENTS:
                raise SinkError(f"there is no kind {kind}")
            index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
            self._writers[kind] = (index.schema, index.writer(heap_size=_EDIT_HEAP_BYTES, num_threads=1))
        return self._writers[kind]


def generation_store(root: Path, generation: str) -> TypeaheadStore:
    """The store of a generation's typeahead."""
    return TypeaheadStore(generation_directory(root, generation) / manifest.FOLDER)


def schema(kind: str) -> tantivy.Schema:
    """The schema of one kind's index."""
    builder = tantivy.SchemaBuilder()
    rank = sort_field(kind)
    for column in columns(kind):
        if column.form is Form.WHOLE:
            # Not indexed: a range over terms reads those of all documents, a range over a column only the documents
            # that meet the rest of the query.
            builder.add_integer_field(column.name, indexed=False, fast=True)
            continue
        builder.add_text_field(
            column.name,
            stored=column.name == rank,
            fast=column.sortable or column.counted,
            tokenizer_name="raw",
            index_option="position" if column.ordered else "basic",
        )
    builder.add_integer_field(BAND_COLUMN, indexed=False, fast=True)
    builder.add_bytes_field(STORED_COLUMN, stored=True)
    return builder.build()


def finished(
    kind: str, document: object, band_of: Callable[[str], int], frequent: FrequentTerms = NONE_FREQUENT
) -> tantivy.Document:
    """The document in the engine's form; `band_of` returns the band of a rank."""
    values = column_values(kind, document, frequent)
    values[BAND_COLUMN] = band_of(values[sort_field(kind)])
    values[STORED_COLUMN] = orjson.dumps(stored_part(document))
    # The engine converts each column, the empty ones as well.
    return tantivy.Document(**{column: value for column, value in values.items() if value != []})
