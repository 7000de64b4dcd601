"""The embedded sink: a directory a generation, published by replacing one small file.

Readers keep their open generation while it is replaced; nothing is ever changed in place. A publisher that was
overtaken fails instead of winning (G1).
"""

import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import tantivy

from index_mappings.documents import stored_part
from index_mappings.embedded import (
    STORED_COLUMN,
    columns,
    generation_directory,
    index_directory,
    pointer_path,
    stamp_path,
)
from index_mappings.generations import Stamp, is_generation
from index_mappings.roles import engine_values
from indexer.sinks.protocol import SinkError

_HEAP_BYTES: Final = 128_000_000


class EmbeddedSink:
    """Generations below one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def live(self) -> Stamp | None:
        """The stamp of the generation that the pointer names."""
        pointer = pointer_path(self._root)
        if not pointer.exists():
            return None
        try:
            generation = pointer.read_text(encoding="ascii").strip()
            return Stamp.from_wire(json.loads(stamp_path(self._root, generation).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise SinkError(f"what is live in {self._root} cannot be read: {error}") from error

    def begin(self, generation: str) -> "EmbeddedWriter":
        """Make the generation's directory."""
        try:
            generation_directory(self._root, generation).mkdir(parents=True)
        except OSError as error:
            raise SinkError(f"{self._root} cannot be written: {error.strerror}") from error
        return EmbeddedWriter(self._root, generation, _pointed_to(self._root))

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove the directories of other generations."""
        others = sorted(
            path.name
            for path in (self._root / "generations").iterdir()
            if is_generation(path.name) and path.name not in keep
        )
        for generation in others:
            shutil.rmtree(generation_directory(self._root, generation), ignore_errors=True)
        return tuple(others)

    def close(self) -> None:
        """Nothing is held open."""


class EmbeddedWriter:
    """One generation's directory."""

    def __init__(self, root: Path, generation: str, replaced: str | None) -> None:
        self._root = root
        self._generation = generation
        self._replaced = replaced

    def add(self, kind: str, documents: Iterable[object]) -> int:
        """Write one kind's index."""
        directory = index_directory(self._root, self._generation, kind)
        names = [column.name for column in columns(kind)]
        count = 0
        try:
            directory.mkdir()
            index = tantivy.Index(_schema(kind), path=str(directory))
            # One thread keeps the documents in the order in which they come, which is that of their rank.
            writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
            for document in documents:
                writer.add_document(_document(document, names))
                count += 1
            writer.commit()
            writer.wait_merging_threads()
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} could not be written: {error}") from error
        return count

    def seal(self, stamp: Stamp) -> None:
        """Write the stamp's file."""
        _write_whole(stamp_path(self._root, self._generation), json.dumps(stamp.as_wire()))

    def count(self, kind: str) -> int:
        """How many documents the index says it has."""
        return int(self._searcher(kind)[1].num_docs)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        schema, searcher = self._searcher(kind)
        query = tantivy.Query.term_set_query(schema, "id", list(ids))
        found = searcher.search(query, limit=max(1, len(ids)), count=False)
        stored = [orjson.loads(searcher.doc(address)[STORED_COLUMN][0]) for _, address in found.hits]
        return {values["id"]: values for values in stored}

    def held(self, kind: str, ids: Collection[str]) -> int:
        """How many of these ids the index holds."""
        schema, searcher = self._searcher(kind)
        query = tantivy.Query.term_set_query(schema, "id", list(ids))
        return len(searcher.search(query, limit=max(1, len(ids)), count=False).hits)

    def publish(self) -> None:
        """Point to this generation: one rename, unless another publisher was faster."""
        with _alone(self._root):
            if _pointed_to(self._root) != self._replaced:
                raise SinkError("the generation could not be published: another one has been meanwhile")
            _write_whole(pointer_path(self._root), f"{self._generation}\n")

    def discard(self) -> None:
        """Remove the directory."""
        shutil.rmtree(generation_directory(self._root, self._generation), ignore_errors=True)

    def _searcher(self, kind: str) -> tuple[tantivy.Schema, tantivy.Searcher]:
        try:
            index = tantivy.Index.open(str(index_directory(self._root, self._generation, kind)))
            return index.schema, index.searcher()
        except (OSError, ValueError) as error:
            raise SinkError(f"the {kind} just written cannot be read: {error}") from error


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


def _document(document: object, names: Collection[str]) -> tantivy.Document:
    values = engine_values(document)
    terms = {name: values[name] for name in names}
    return tantivy.Document(**terms, **{STORED_COLUMN: orjson.dumps(stored_part(document))})


def _pointed_to(root: Path) -> str | None:
    try:
        return pointer_path(root).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SinkError(f"{pointer_path(root)} cannot be read: {error.strerror}") from error


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep other publishers out; the lock ends with its holder, however that ends."""
    try:
        directory = os.open(root, os.O_RDONLY)
    except OSError as error:
        raise SinkError(f"{root} cannot be locked: {error.strerror}") from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all, also after a loss of power."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise SinkError(f"{path} cannot be written: {error.strerror}") from error
