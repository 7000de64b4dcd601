"""Typeaheads without an engine, built or followed, of given shops, and what the plain rules say of them (M9)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

from index_mappings.documents import CategoryDocument, CategoryEntry, ShopDocument
from index_mappings.forms import QueryForms
from index_mappings.tiers import rank_key
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.generation import EmbeddedReader
from indexer.sinks.generation_typeahead import stored_documents
from shop_directory.typeahead.manifest import MAX_SEGMENTS, SegmentUse, TypeaheadManifest, bitmap_of, manifest_path
from shop_directory.typeahead.reading.segments import SegmentPool
from shop_directory.typeahead.reading.typeahead import Typeahead, open_typeahead
from shop_directory.typeahead.segment import Shown, segment_path, shown_part
from shop_directory.typeahead.suggestions import SuggestedShop, SuggestQuery
from shop_directory.typeahead.writing.build import ShopRun, TypeaheadBuild, segment_shop
from shop_directory.typeahead.writing.editor import TypeaheadEditor
from shop_directory.typeahead.writing.merging import BackgroundMerging, Input, merge, weight
from shop_directory.typeahead.writing.segment_file import open_segment, write_segment
from shop_directory.typeahead.writing.store import TypeaheadStore
from shop_directory.words.categories import CategoryTable
from tests.support.catalogues import shop as line_of
from tests.support.reference.tiers import suggested_shops

Answer = list[tuple[int, str]]
# How many shops have a stale copy in each other segment, and how popular that is: more than any other.
_STALE: Final = 0.2
_POPULAR: Final = 1e6


def document(
    shop_id: str,
    name: str = "Shop",
    domain: str | None = None,
    *,
    aliases: Sequence[str] = (),
    popularity: float | None = None,
    countries: Sequence[str] = (),
    categories: Sequence[str] = ("things",),
) -> ShopDocument:
    line = line_of(
        name,
        domain or f"{shop_id}.internal",
        aliases=list(aliases),
        popularity=popularity,
        countries=list(countries),
        categories=list(categories),
    )
    return projected(shop_id, line)


def with_texts(shop: ShopDocument, full: Iterable[str], keys: Iterable[str], words: Iterable[str] = ()) -> ShopDocument:
    full, words = _unique(full), _unique(words)
    return replace(
        shop,
        names=full[::2],
        leading=full[::3],
        full=full,
        # As shops are projected, every full form and every word is a key.
        keys=_unique((*keys, *full, *words)),
        words=words,
        dotted=(),
        # What is only the rest of a name is a name that leads.
        rests=full[::12],
        clipped=(),
    )


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))


class Segmented:
    """Shops in segments: those that are given first in one, and one more for each change."""

    def __init__(
        self, directory: Path, shops: Iterable[ShopDocument], categories: Iterable[CategoryEntry] = ()
    ) -> None:
        self.directory = directory
        self.categories = tuple(categories)
        self.shops = {shop.id: shop for shop in shops}
        self._parts: list[tuple[list[ShopDocument], set[str]]] = [(list(self.shops.values()), set())]

    def change(self, shops: Sequence[ShopDocument] = (), removed: Iterable[str] = ()) -> None:
        """Put and remove shops: the new ones are another segment, the former are marked as removed."""
        gone = {*removed, *(shop.id for shop in shops)}
        for _, marked in self._parts:
            marked.update(gone)
        self._parts.append((list(shops), set()))
        self.shops = {shop_id: shop for shop_id, shop in self.shops.items() if shop_id not in gone}
        self.shops.update({shop.id: shop for shop in shops})

    def manifest(self) -> TypeaheadManifest:
        covering = []
        for shops, marked in self._parts:
            ranked = sorted(shops, key=lambda shop: shop.rank)
            numbers = [number for number, shop in enumerate(ranked) if shop.id in marked]
            covering.append(replace(written(self.directory, shops), removed=bitmap_of(numbers)))
        return TypeaheadManifest((tuple(covering),), self.categories)

    def opened(self) -> Typeahead:
        return open_typeahead(self.directory, self.manifest(), SegmentPool())

    def expected(self, forms: QueryForms, country: str | None = None) -> Answer:
        return expected(self.shops, forms, country, self.categories)


def cut_at_random(directory: Path, shops: Iterable[ShopDocument], chance: Random) -> Segmented:
    """The shops in one to four segments; of some there is another, removed copy in a segment, with other popularity."""
    segmented = Segmented(directory, ())
    parts: list[tuple[list[ShopDocument], set[str]]] = [([], set()) for _ in range(chance.randint(1, MAX_SEGMENTS))]
    for shop in shops:
        segmented.shops[shop.id] = shop
        own = chance.randrange(len(parts))
        parts[own][0].append(shop)
        for place, (others, removed) in enumerate(parts):
            if place != own and chance.random() < _STALE:
                others.append(replace(shop, popularity=_POPULAR, rank=rank_key(_POPULAR, shop.id)))
                removed.add(shop.id)
    segmented._parts = parts
    return segmented


def forms_of(*texts: str) -> QueryForms:
    return QueryForms(texts, texts[:1])


def expected(
    shops: Mapping[str, ShopDocument], forms: QueryForms, country: str | None, categories: Iterable[CategoryEntry] = ()
) -> Answer:
    table = CategoryTable(categories)
    slugs = {word: frozenset(table.slugs_of(word)) for word in forms.words}
    ranked = sorted(shops.values(), key=lambda shop: shop.rank)
    return [(int(tier), shop.id) for tier, shop in suggested_shops(ranked, forms, slugs, country)]


def assert_answers(
    segmented: Segmented, typeahead: Typeahead, forms: QueryForms, country: str | None, limits: Iterable[int]
) -> int:
    """See that the answers are those of the plain rules. Returns how many shops there are."""
    right = segmented.expected(forms, country)
    for limit in limits:
        context = (forms, country, limit)
        found = typeahead._best(SuggestQuery(forms, country, limit))
        assert [(int(one.tier), one.shop.id) for one in found] == right[:limit], context
        for one in found:
            shop = segmented.shops[one.shop.id]
            shown = SuggestedShop(shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity)
            assert one.shop == shown, context
    return len(right)


def projected(shop_id: str, line: Mapping[str, Any]) -> ShopDocument:
    return project_shop(ShopRecord.model_validate({"source": "test", **line, "id": shop_id}))


def named(shop_id: str, name: str, popularity: float | None = None) -> ShopDocument:
    return projected(shop_id, line_of(name, f"{shop_id}.internal", popularity=popularity))


def category(slug: str, count: int) -> CategoryDocument:
    return CategoryDocument(slug, rank_key(float(count), slug), slug.title(), count, (slug,), (f"1{slug}",), {})


def written(directory: Path, shops: Iterable[ShopDocument]) -> SegmentUse:
    run = ShopRun()
    for shop in shops:
        run.add(segment_shop(shop))
    return write_segment(directory, *run.contents())


class Followed:
    def __init__(
        self,
        root: Path,
        shops: Sequence[ShopDocument],
        small_shops: int = 2,
        merging: BackgroundMerging | None = None,
        segment_texts: int = TypeaheadStore.segment_texts,
    ) -> None:
        self.directory, self._plain = root / "typeahead", root / "plain"
        self._plain.mkdir(parents=True)
        self.store = TypeaheadStore(self.directory)
        self.store.segment_texts = segment_texts
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
        return [
            [use.shops - int.from_bytes(use.removed).bit_count() for use in covering]
            for covering in self.manifest.coverings
        ]

    @property
    def weights(self) -> list[list[int]]:
        paths = [[segment_path(self.directory, use.name) for use in covering] for covering in self.manifest.coverings]
        return [[weight(open_segment(path).contents) for path in covering] for covering in paths]

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.directory.iterdir()}

    def editor(self) -> TypeaheadEditor:
        return TypeaheadEditor(
            stored_documents(EmbeddedReader(self.directory, self.name)),
            self.store,
            self.name,
            self.merging,
            self.small_shops,
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
