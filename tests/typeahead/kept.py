"""Sorted texts of shops as the embedded engine keeps them, without the index; and what the plain rules say (M9)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from index_mappings.documents import ShopDocument, sells_in
from index_mappings.embedded import generation_directory
from index_mappings.forms import QueryForms, halves
from index_mappings.generations import Stamp, first_stamp, new_generation
from index_mappings.tiers import SuggestTier
from indexer.project import project_shop
from indexer.records import ShopRecord
from indexer.sinks.embedded_typeahead import TypeaheadEditor, built
from indexer.sinks.typeahead_shop import Findable
from service.search.embedded_typeahead import Typeaheads
from service.search.protocol import SuggestedShop
from service.search.reference_tiers import suggest_tier
from service.search.typeahead import Typeahead
from tests.catalogues import shop as line_of

Answer = list[tuple[int, str]]


def document(
    shop_id: str,
    name: str = "Shop",
    domain: str | None = None,
    *,
    aliases: Sequence[str] = (),
    popularity: float | None = None,
    countries: Sequence[str] = (),
) -> ShopDocument:
    """A shop as the indexer projects it."""
    line = line_of(
        name,
        domain or f"{shop_id}.internal",
        id=shop_id,
        aliases=list(aliases),
        popularity=popularity,
        countries=list(countries),
    )
    return project_shop(ShopRecord.model_validate(line))


def with_texts(shop: ShopDocument, full: Iterable[str], keys: Iterable[str], words: Iterable[str] = ()) -> ShopDocument:
    """The shop, to be found by these texts and no others."""
    full = _unique(full)
    some = full[::3]
    begun = _unique(beginning for form in some for beginning in halves(form))
    return replace(
        shop,
        names=full[::2],
        leading=some,
        begun=begun,
        full=full,
        keys=_unique((*keys, *full)),
        words=_unique(words),
    )


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))


class Kept:
    """The files of one generation, and the shops that must be in them."""

    def __init__(self, root: Path, shops: Iterable[ShopDocument]) -> None:
        """Write the first file."""
        self.root = root
        self.shops = {shop.id: shop for shop in shops}
        now = datetime.now(UTC)
        self.stamp: Stamp = first_stamp(new_generation(now), now)
        generation_directory(root, self.stamp.generation).mkdir(parents=True)
        for _ in built(root, self.stamp.generation, self.shops.values()):
            pass

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return generation_directory(self.root, self.stamp.generation) / "typeahead"

    def change(self, shops: Iterable[ShopDocument] = (), removed: Iterable[str] = ()) -> None:
        """Commit a change."""
        editor = TypeaheadEditor(
            self.root,
            self.stamp.generation,
            lambda: len(self.shops),
            lambda: [Findable.of(shop) for shop in self.shops.values()],
        )
        for shop_id in removed:
            editor.remove(shop_id)
            self.shops.pop(shop_id, None)
        for shop in shops:
            editor.put(shop)
            self.shops[shop.id] = shop
        later = replace(self.stamp, sequence=self.stamp.sequence + 1)
        editor.commit(self.stamp.sequence, later.sequence)
        self.stamp = later

    def opened(self) -> Typeahead:
        """What a reader has of it."""
        typeahead = Typeaheads(self.root).opened(self.stamp)
        assert typeahead is not None
        return typeahead

    def expected(self, forms: QueryForms, country: str | None = None) -> Answer:
        """All shops of the tiers that are looked for here, as the plain rules have them."""
        return expected(self.shops, forms, country)


def forms_of(*texts: str) -> QueryForms:
    """A query of one word that is compared in these forms."""
    return QueryForms(texts, texts[:1])


def expected(shops: Mapping[str, ShopDocument], forms: QueryForms, country: str | None) -> Answer:
    """Tier and id of the shops of all tiers but 4, and but two typing errors, in order (M1, M7, M9)."""
    no_category = dict.fromkeys(forms.words, frozenset[str]())
    several = len(forms.words) > 1
    found: list[tuple[int, ShopDocument]] = []
    for shop in shops.values():
        if not sells_in(shop, country):
            continue
        tier = suggest_tier(shop, forms, no_category, country)
        # As shops are projected, a word in common begins a key.
        if tier is not None and (several or tier >= SuggestTier.ONE_TYPO):
            found.append((tier, shop))
    found.sort(key=lambda one: (-one[0], -(one[1].popularity or 0.0), one[1].id))
    return [(int(tier), shop.id) for tier, shop in found]


def assert_answers(
    kept: Kept, typeahead: Typeahead, forms: QueryForms, country: str | None, limits: Iterable[int]
) -> int:
    """See that the answers are those of the plain rules. Returns how many shops there are."""
    right = kept.expected(forms, country)
    for limit in limits:
        context = (forms, country, limit)
        found = typeahead.best(forms, country, limit)
        assert [(int(one.tier), one.shop.id) for one in found] == right[:limit], context
        for one in found:
            shop = kept.shops[one.shop.id]
            shown = SuggestedShop(shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity)
            assert one.shop == shown, context
    return len(right)
