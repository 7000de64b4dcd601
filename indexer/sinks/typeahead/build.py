"""Builds the typeahead of a generation from all its shops and categories, which may come in any order."""

from contextlib import closing
from hashlib import sha256
from typing import IO, Final

from index_mappings.documents import (
    CategoryDocument,
    CategoryEntry,
    ShopDocument,
    category_from_stored,
    in_category_order,
)
from index_mappings.typeahead import manifest, segment
from index_mappings.typeahead.manifest import SegmentUse, TypeaheadManifest
from indexer.freed_memory import return_freed_memory
from indexer.sinks.protocol import GenerationReader
from indexer.sinks.typeahead.merging import MAX_NUMBERED, Input, merge
from indexer.sinks.typeahead.reading import open_segment
from indexer.sinks.typeahead.run import Run
from indexer.sinks.typeahead.segment_file import write_segment
from indexer.sinks.typeahead.shops import SegmentShop, segment_shop, stored_segment_shop
from indexer.sinks.typeahead.store import TypeaheadStore, write_file

# The maximum number of shops in memory, and of characters of their texts and suggestions: some 100 MB.
_RUN_SHOPS: Final = 10_000
_RUN_LETTERS: Final = 4_000_000


class TypeaheadBuild:
    """A typeahead that is being built; `close` removes the files of an unfinished one."""

    def __init__(self, store: TypeaheadStore, run_shops: int = _RUN_SHOPS, most: int = MAX_NUMBERED) -> None:
        """Start without shops, of which at most `run_shops` are sorted in memory.

        `most` is the maximum number of shops, and of texts, of the segment; runs have far fewer.
        """
        self._store, self._run_shops, self._most = store, run_shops, most
        self._run = Run()
        self._runs: dict[str, SegmentUse] = {}
        self._categories: list[CategoryEntry] = []

    def add(self, document: object) -> None:
        """Add a document, if it is a shop or a category.

        Raises:
            OSError: the shops so far can't be written.
        """
        if isinstance(document, ShopDocument):
            self.add_shop(segment_shop(document))
        elif isinstance(document, CategoryDocument):
            self.add_category(CategoryEntry.of(document))

    def add_shop(self, shop: SegmentShop) -> None:
        """Add a shop with its texts. Errors as of `add`."""
        self._run.add(shop)
        if len(self._run) >= self._run_shops or self._run.letters >= _RUN_LETTERS:
            self._end_run()

    def add_category(self, category: CategoryEntry) -> None:
        """Add a category as an engine returns it."""
        self._categories.append(category)

    def end_shops(self) -> None:
        """Write the shops that are in memory, as no more shops come soon. Errors as of `add`."""
        if len(self._run):
            self._end_run()

    def finish(self) -> str:
        """Write and store segment and manifest; returns the manifest's name.

        Raises:
            OSError, SinkError: they can't be written, or have too many shops or texts.
        """
        if len(self._run) or not self._runs:
            self._end_run()
        if len(self._runs) == 1:
            (base,) = self._runs.values()
            self._runs = {}
        else:
            paths = [segment.segment_path(self._store.directory, name) for name in self._runs]
            base = merge(self._store.directory, [Input(open_segment(path)) for path in paths], self._most)
            self.close()
        self._store.put(segment.segment_path(self._store.directory, base.name))
        return put_manifest(self._store, TypeaheadManifest(((base,),), in_category_order(self._categories)))

    def _end_run(self) -> None:
        use = write_segment(self._store.directory, *self._run.contents())
        self._run = Run()
        self._runs[use.name] = use
        return_freed_memory()

    def close(self) -> None:
        """Remove the files of the runs."""
        for name in self._runs:
            segment.segment_path(self._store.directory, name).unlink(missing_ok=True)
        self._runs = {}


def put_manifest(store: TypeaheadStore, contents: TypeaheadManifest) -> str:
    """Write and store a manifest. Returns its name. Errors as of `TypeaheadBuild.finish`."""
    data = contents.to_bytes()

    def write(file: IO[bytes]) -> str:
        file.write(data)
        return sha256(data).hexdigest()

    path = write_file(store.directory, manifest.SUFFIX, write)
    store.put(path)
    return path.stem


def rebuild_typeahead(reader: GenerationReader, store: TypeaheadStore) -> str:
    """Rebuild the typeahead of a generation from its stored shops and categories; damaged files are replaced.

    Returns the name of the manifest that the stamp must name.

    Raises:
        OSError, SinkError: the engine failed, or the files can't be written.
    """
    with closing(TypeaheadBuild(store)) as build:
        for _, stored in reader.scan("shops"):
            build.add_shop(stored_segment_shop(stored))
        for _, stored in reader.scan("categories"):
            build.add_category(category_from_stored(stored))
        return build.finish()
