"""Projection: a public record becomes a document. Pure; no clock, no network, nothing that is not public."""

from index_mappings.documents import ANY_MARKET, WORLDWIDE, CategoryDocument, ShopDocument
from index_mappings.forms import shop_forms
from index_mappings.rank import rank_key
from indexer.records import ShopRecord
from indexer.staging import CarriedCategory


def project_shop(shop: ShopRecord) -> ShopDocument:
    """The document of a public shop."""
    forms = shop_forms(shop.name, shop.aliases, shop.domain)
    anywhere = not shop.countries or WORLDWIDE in shop.countries
    return ShopDocument(
        id=shop.id,
        refs=(shop.id, shop.domain),
        rank=rank_key(shop.popularity, shop.id),
        name=shop.name,
        aliases=tuple(dict.fromkeys(alias for alias in shop.aliases if alias != shop.name)),
        domain=shop.domain,
        categories=tuple(category.slug for category in shop.categories),
        countries=shop.countries,
        markets=(ANY_MARKET,) if anywhere else shop.countries,
        popularity=shop.popularity,
        full=forms.full,
        keys=forms.keys,
        words=forms.words,
        infixes=forms.infixes,
    )


def project_category(category: CarriedCategory) -> CategoryDocument:
    """The document of a category."""
    # Most shops first, then slug (M11): the same key as M1's, with the count in the place of the popularity.
    rank = rank_key(float(category.count), category.slug)
    return CategoryDocument(id=category.slug, rank=rank, name=category.name, count=category.count)
