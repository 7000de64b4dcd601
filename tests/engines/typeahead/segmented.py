"""Segments of given shops without an engine, and what the plain rules say of them (M9)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from index_mappings.documents import CategoryEntry, ShopDocument
from index_mappings.forms import QueryForms
from index_mappings.tiers import rank_key
from index_mappings.typeahead.manifest import MAX_SEGMENTS, TypeaheadManifest, bitmap_of
from service.search.categories import CategoryTable
from service.search.protocol import SuggestedShop, SuggestQuery
from service.search.typeahead.segments import SegmentPool
from service.search.typeahead.typeahead import Typeahead, open_typeahead
from tests.engines.typeahead.followed import projected, written
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
    """The shop, to be found by these texts and no others."""
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
    )


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))


class Segmented:
    """Shops in segments: those that are given first in one, and one more for each change."""

    def __init__(
        self, directory: Path, shops: Iterable[ShopDocument], categories: Iterable[CategoryEntry] = ()
    ) -> None:
        """Take the first shops, which are one segment."""
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
    """A query of one word that is compared in these forms."""
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
