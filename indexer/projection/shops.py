"""Projection of shops and categories. The functions are pure, and get public records only."""

from typing import Final

from index_mappings.category_forms import category_forms
from index_mappings.documents import CategoryDocument, ShopDocument, markets_of
from index_mappings.forms import shop_forms
from index_mappings.hosts import domain_parts
from index_mappings.rank import rank_key
from index_mappings.timestamps import optional_timestamp
from indexer.projection.offers import offer_view
from indexer.records.related import OfferRecord, RedirectRecord
from indexer.records.shop import ShopRecord
from indexer.state.shops import CarriedCategory

# The number of offers that find_shop shows of each shop (A1); get_shop reads the offers' own index.
HEAD_OFFERS: Final = 3


def project_shop(
    shop: ShopRecord,
    newest_offers: tuple[OfferRecord, ...] = (),
    offers_total: int = 0,
    redirects: tuple[RedirectRecord, ...] = (),
) -> ShopDocument:
    """The document of a public shop.

    `newest_offers` are at most HEAD_OFFERS of its offers, newest first; `redirects` are those between its domain and
    that of another public shop.
    """
    forms = shop_forms(shop.name, shop.aliases, shop.domain)
    parts = domain_parts(shop.domain)
    return ShopDocument(
        id=shop.id,
        refs=(shop.id, shop.domain),
        rank=rank_key(shop.popularity, shop.id),
        name=shop.name,
        aliases=tuple(dict.fromkeys(alias for alias in shop.aliases if alias != shop.name)),
        domain=shop.domain,
        categories=tuple(category.slug for category in shop.categories),
        primary=shop.categories[0].slug,
        countries=shop.countries,
        markets=markets_of(shop.countries, shop.domain),
        popularity=shop.popularity,
        offers=tuple(offer_view(offer) for offer in newest_offers),
        offers_total=offers_total,
        redirects=tuple(_redirect_view(redirect) for redirect in redirects),
        registrable=parts.registrable,
        main_label=parts.joined_label,
        names=forms.names,
        leading=forms.leading,
        full=forms.full,
        keys=forms.keys,
        words=forms.words,
        infixes=forms.infixes,
        labels=forms.labels,
        dotted=forms.dotted,
        rests=forms.rests,
    )


def _redirect_view(redirect: RedirectRecord) -> dict[str, str | None]:
    return {
        "from_domain": redirect.from_domain,
        "to_domain": redirect.to_domain,
        "observed_at": optional_timestamp(redirect.observed_at),
        "source": redirect.source,
    }


def project_category(category: CarriedCategory) -> CategoryDocument:
    """The document of a category."""
    # Most shops first, then slug (M11): the same key as M1's, with the count instead of the popularity.
    rank = rank_key(float(category.count), category.slug)
    forms = category_forms(category.slug, category.name, category.other_names)
    return CategoryDocument(
        id=category.slug,
        rank=rank,
        name=category.name,
        count=category.count,
        words=forms.words,
        alone=forms.alone,
        whole=forms.whole,
    )
