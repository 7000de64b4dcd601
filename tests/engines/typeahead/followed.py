"""A typeahead without a generation: built, changed by commit after commit, and compared with what it must hold."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from index_mappings.documents import CategoryDocument, CategoryEntry, ShopDocument
from index_mappings.tiers import rank_key
from index_mappings.typeahead.manifest import SegmentUse, TypeaheadManifest, manifest_path
from index_mappings.typeahead.segment import Shown, segment_path, shown_part
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.generation import EmbeddedReader
from indexer.sinks.typeahead.background_merging import BackgroundMerging
from indexer.sinks.typeahead.build import Run, TypeaheadBuild, segment_shop
from indexer.sinks.typeahead.editor import TypeaheadEditor
from indexer.sinks.typeahead.merging import Input, merge
from indexer.sinks.typeahead.segment_file import open_segment, write_segment
from indexer.sinks.typeahead.store import TypeaheadStore
from tests.support.catalogues import shop as line_of


def projected(shop_id: str, line: Mapping[str, Any]) -> ShopDocument:
    return project_shop(ShopRecord.model_validate({"source": "test", **line, "id": shop_id}))


def named(shop_id: str, name: str, popularity: float | None = None) -> ShopDocument:
    """The document of a shop of which only the name matters."""
    return projected(shop_id, line_of(name, f"{shop_id}.internal", popularity=popularity))


def category(slug: str, count: int) -> CategoryDocument:
    return CategoryDocument(slug, rank_key(float(count), slug), slug.title(), count, (slug,), (slug,), (slug,))


def written(directory: Path, shops: Iterable[ShopDocument]) -> SegmentUse:
    """The segment of some shops, made directly."""
    run = Run()
    for shop in shops:
        run.add(segment_shop(shop))
    return write_segment(directory, *run.contents())


class Followed:
    """A typeahead, and the shops that must be in it."""

    def __init__(
        self, root: Path, shops: Sequence[ShopDocument], small_shops: int = 2, merging: BackgroundMerging | None = None
    ) -> None:
        """Build it of these shops."""
        self.directory, self._plain = root / "typeahead", root / "plain"
        self._plain.mkdir(parents=True)
        self.store = TypeaheadStore(self.directory)
        self.small_shops, self.merging = small_shops, merging
        self.shops = {shop.id: shop for shop in shops}
        self.categories: dict[str, CategoryEntry] = {}
        with closing(TypeaheadBuild(self.store)) as build:
            for shop in shops:
                build.add(shop)
            self.name = build.finish()

    @property
    def manifest(self) -> TypeaheadManifest:
        return TypeaheadManifest.from_bytes(manifest_path(self.directory, self.name).read_bytes(), self.name)

    @property
    def shape(self) -> list[list[int]]:
        """How many shops are current in each segment of each covering."""
        return [[use.shops - _ones(use.removed) for use in covering] for covering in self.manifest.coverings]

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.directory.iterdir()}

    def editor(self) -> TypeaheadEditor:
        return TypeaheadEditor(
            EmbeddedReader(self.directory, self.name), self.store, self.name, self.merging, self.small_shops
        )

    def change(self, shops: Iterable[ShopDocument] = (), removed: Iterable[str] = ()) -> None:
        """Commit a micro-batch, and see that all of it can be found and nothing else."""
        editor = self.editor()
        for shop_id in removed:
            editor.remove("shops", shop_id)
            self.shops.pop(shop_id, None)
        for shop in shops:
            editor.put(shop)
            self.shops[shop.id] = shop
        self.name = editor.commit()
        assert editor.shown("", None) == self.shown
        self.check()

    @property
    def shown(self) -> dict[str, Shown]:
        return {shop_id: shown_part(shop) for shop_id, shop in self.shops.items()}

    def check(self) -> None:
        """See that each covering, its segments merged, is the segment that the shops give directly."""
        expected = written(self._plain, self.shops.values())
        for covering in self.manifest.coverings:
            inputs = [Input(open_segment(segment_path(self.directory, use.name)), use.removed) for use in covering]
            assert merge(self._plain, inputs) == expected


def _ones(bitmap: bytes) -> int:
    return sum(byte.bit_count() for byte in bitmap)
