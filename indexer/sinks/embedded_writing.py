"""Writing embedded generations: a whole one, and changes of one that is sealed.

A whole one is written kind by kind and never changed until it is sealed. Changes of a sealed one are shown kind by
kind when they are committed; the stamp, which tells readers to look again, comes last.
"""

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

import orjson
import tantivy

from index_mappings.documents import DOCUMENTS, stored_part
from index_mappings.embedded import STORED_COLUMN, columns, generation_directory, index_directory, stamp_path
from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.roles import engine_values
from indexer.sinks.embedded_files import has_strays, read_stamp, remove_torn, write_operations, write_whole
from indexer.sinks.embedded_reading import EmbeddedReader
from indexer.sinks.protocol import SinkError

_BUILD_HEAP_BYTES: Final = 64_000_000
# The engine takes documents much faster than it indexes them where it gets little of the processors: so many terms wait
# at most, which is some thousands of shops.
_COMMIT_TERMS: Final = 1_400_000
_EDIT_HEAP_BYTES: Final = 32_000_000


class EmbeddedWriter(EmbeddedReader):
    """A generation that is being written."""

    def __init__(self, root: Path, generation: str, publish: Callable[[], None], discard: Callable[[], None]) -> None:
        super().__init__(root, generation)
        self.publish = publish
        self.discard = discard

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Write one kind's index."""
        directory = index_directory(self._root, self._generation, kind)
        names = [column.name for column in columns(kind)]
        count = waiting = 0
        try:
            directory.mkdir()
            index = tantivy.Index(_schema(kind), path=str(directory))
            # One thread keeps the documents in the order in which they come, which is that of their rank.
            writer = index.writer(heap_size=_BUILD_HEAP_BYTES, num_threads=1)
            for document in documents:
                finished, terms = _document(document, names)
                writer.add_document(finished)
                count += 1
                waiting += terms
                if waiting > _COMMIT_TERMS:
                    writer.commit()
                    waiting = 0
            writer.commit()
            writer.wait_merging_threads()
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} could not be written: {error}") from error
        return count

    def write_operations(self, operations: Operations, *, patient: bool = True) -> None:  # noqa: ARG002 - a disk
        """Replace the file."""
        write_operations(self._root, self._generation, operations)

    def seal(self, stamp: Stamp) -> None:
        """Write the stamp's file."""
        write_whole(stamp_path(self._root, self._generation), json.dumps(stamp.as_wire()))


class EmbeddedEditor(EmbeddedReader):
    """A sealed generation that is changed in place; open it only under the lease."""

    def __init__(self, root: Path, generation: str) -> None:
        super().__init__(root, generation)
        self._stamp = read_stamp(root, generation)
        self._writers: dict[str, tuple[tantivy.Schema, tantivy.IndexWriter]] = {}
        directory = generation_directory(root, generation)
        remove_torn((directory, *(directory / kind for kind in DOCUMENTS)))
        for kind in DOCUMENTS:
            if has_strays(directory / kind):
                # The engine's own collection waits for readers that are just opening the index.
                self._writer(kind)[1].garbage_collect_files()

    @property
    def stamp(self) -> Stamp:
        """The stamp as it is now."""
        return self._stamp

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        """Replace and remove documents; the engine refuses none."""
        names = [column.name for column in columns(kind)]
        try:
            _, writer = self._writer(kind)
            for document_id in removed:
                writer.delete_documents_by_term("id", document_id)
            for document in documents:
                writer.delete_documents_by_term("id", document.id)  # type: ignore[attr-defined]  # all have one
                writer.add_document(_document(document, names)[0])
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} could not be changed: {error}") from error
        return 0

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        """Remove by the shop's id."""
        if not shop_ids:
            return
        try:
            schema, writer = self._writer(kind)
            writer.delete_documents_by_query(tantivy.Query.term_set_query(schema, "shop_refs", list(shop_ids)))
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
        write_whole(stamp_path(self._root, self._generation), json.dumps(stamp.as_wire()))
        self._stamp = stamp

    def close(self) -> None:
        """Let merges end, and give the indices free for the next writer."""
        writers, self._writers = self._writers, {}
        for _, writer in writers.values():
            writer.wait_merging_threads()
        self.reopen()

    def _writer(self, kind: str) -> tuple[tantivy.Schema, tantivy.IndexWriter]:
        if kind not in self._writers:
            if kind not in DOCUMENTS:
                raise SinkError(f"there is no kind {kind}")
            index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
            self._writers[kind] = (index.schema, index.writer(heap_size=_EDIT_HEAP_BYTES, num_threads=1))
        return self._writers[kind]


def _schema(kind: str) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for column in columns(kind):
        if column.whole:
            builder.add_integer_field(column.name, indexed=True)
            continue
        builder.add_text_field(
            column.name, stored=False, fast=column.sortable, tokenizer_name="raw", index_option="basic"
        )
    builder.add_bytes_field(STORED_COLUMN, stored=True)
    return builder.build()


def _document(document: object, names: Collection[str]) -> tuple[tantivy.Document, int]:
    """The document as the engine takes it, and how many terms are in its lists."""
    values = engine_values(document)
    terms = {name: values[name] for name in names}
    finished = tantivy.Document(**terms, **{STORED_COLUMN: orjson.dumps(stored_part(document))})
    return finished, sum(len(value) for value in terms.values() if isinstance(value, list))
