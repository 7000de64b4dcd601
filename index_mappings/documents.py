"""The documents of the indices, one class an index, each field's roles declared once.

The OpenSearch mapping, the embedded schema, what the writer sends and what the reader may ask are derived from these.
A document holds only what the public may see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from index_mappings.hosts import country_of
from index_mappings.roles import Role, stored_fields

# Raised with every change of a document class, of a role or of the text pipeline: a service refuses a generation of
# another version (G4).
SCHEMA_VERSION: Final = 9

# In `markets`: the shop keeps under every country filter, as it sells world-wide or states no market (M7).
ANY_MARKET: Final = "*"
WORLDWIDE: Final = "WORLDWIDE"


@dataclass(frozen=True, slots=True)
class ShopDocument:
    """A public shop.

    Attributes:
        id: shop id.
        refs: what a reference is looked up by: the id and the reduced domain (R1).
        rank: M1's sortable key.
        name: display name.
        aliases: other names, as the source states them.
        domain: reduced domain, A-labels.
        categories: category slugs, the first is primary.
        countries: ISO codes, or WORLDWIDE; empty when not stated.
        markets: what a country filter asks, and which countries it is known to sell in (`markets_of`).
        popularity: any number >= 0; None when the source has none.
        offers: the newest few offers, as the offers' own documents show them; `offers_total` counts all (A1).
        redirects: redirects that the source states between this shop's domain and another public shop's (A12).
        registrable, main_label: parts of the domain that merge audits look for.
        names, leading, full, keys, words, infixes, dotted: what it is found by (`index_mappings.forms`, X2).
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    refs: Annotated[tuple[str, ...], Role.EXACT]
    rank: Annotated[str, Role.SORT]
    name: Annotated[str, Role.STORED]
    aliases: Annotated[tuple[str, ...], Role.STORED]
    domain: Annotated[str, Role.STORED]
    categories: Annotated[tuple[str, ...], Role.STORED | Role.EXACT]
    countries: Annotated[tuple[str, ...], Role.STORED]
    markets: Annotated[tuple[str, ...], Role.EXACT]
    popularity: Annotated[float | None, Role.STORED]
    offers: Annotated[tuple[Mapping[str, Any], ...], Role.STORED]
    offers_total: Annotated[int, Role.STORED]
    redirects: Annotated[tuple[Mapping[str, Any], ...], Role.STORED]
    registrable: Annotated[str, Role.EXACT]
    main_label: Annotated[str, Role.EXACT]
    names: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    leading: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    full: Annotated[tuple[str, ...], Role.EXACT | Role.PREFIX | Role.TYPEAHEAD]
    keys: Annotated[tuple[str, ...], Role.PREFIX | Role.TYPEAHEAD]
    words: Annotated[tuple[str, ...], Role.PREFIX | Role.TYPEAHEAD]
    infixes: Annotated[tuple[str, ...], Role.INFIX]
    dotted: Annotated[tuple[str, ...], Role.TYPEAHEAD]


@dataclass(frozen=True, slots=True)
class CategoryDocument:
    """A category that at least one public shop carries.

    Attributes:
        id: the slug.
        rank: the sortable key of M11: most shops first, then slug.
        name: display name.
        count: how many public shops carry it.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]
    name: Annotated[str, Role.STORED]
    count: Annotated[int, Role.STORED]


@dataclass(frozen=True, slots=True)
class CouponDocument:
    """A coupon of a public shop. Whether it may be shown is decided when it is asked for (A4, A5).

    Attributes:
        id: coupon id.
        rank: M11's sortable key.
        shop_refs: the shop's id and domain.
        valid_from_us, valid_until_us: the bounds in microseconds since 1970, for comparing; open ends are far away.
        status: verification status.
        reserved: "yes" when the shop's domain is a reserved test name, else "no".
        blocked_channels, blocked_countries: where the display policy hides it.
        view: what callers see of it, with wire names.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]
    shop_refs: Annotated[tuple[str, ...], Role.EXACT]
    valid_from_us: Annotated[int, Role.RANGE]
    valid_until_us: Annotated[int, Role.RANGE]
    status: Annotated[str, Role.EXACT]
    reserved: Annotated[str, Role.EXACT]
    blocked_channels: Annotated[tuple[str, ...], Role.STORED | Role.EXACT]
    blocked_countries: Annotated[tuple[str, ...], Role.STORED | Role.EXACT]
    folded_code: Annotated[str, Role.STORED | Role.EXACT]
    view: Annotated[Mapping[str, Any], Role.STORED]


@dataclass(frozen=True, slots=True)
class OfferDocument:
    """An offer of a public shop.

    Attributes:
        id: offer id.
        rank: M11's sortable key.
        shop_refs: the shop's id and domain.
        view: what callers see of it, with wire names (A2); its URL is not among it.
        shop: id and domain.
        checkout_url: the URL, if it passes A10's rules.
        affiliate: network, program_id, commission_stated, disclosure and the URL built by the programme; None without.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]
    shop_refs: Annotated[tuple[str, ...], Role.EXACT]
    view: Annotated[Mapping[str, Any], Role.STORED]
    shop: Annotated[Mapping[str, Any], Role.STORED]
    checkout_url: Annotated[str | None, Role.STORED]
    affiliate: Annotated[Mapping[str, Any] | None, Role.STORED]


@dataclass(frozen=True, slots=True)
class FactsDocument:
    """What is known about a public shop beside its name: shipping and trust. One for every public shop.

    Attributes:
        id: shop id.
        rank: the id, as order does not matter here.
        refs: the shop's id and domain.
        trusted_refs: the same, if at least one trust signal is present: the only way to trust signals (A8).
        shop: id and domain.
        shipping: the statement with wire names (A7) and `excluded`; None when none was collected.
        signals: present trust signals with wire names, in A8's order.
        pipeline_gaps: kinds whose check ran without a usable value.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]
    refs: Annotated[tuple[str, ...], Role.EXACT]
    trusted_refs: Annotated[tuple[str, ...], Role.EXACT]
    shop: Annotated[Mapping[str, Any], Role.STORED]
    shipping: Annotated[Mapping[str, Any] | None, Role.STORED]
    signals: Annotated[tuple[Mapping[str, Any], ...], Role.STORED]
    pipeline_gaps: Annotated[tuple[str, ...], Role.STORED]


DOCUMENTS: Final[dict[str, type]] = {
    "shops": ShopDocument,
    "categories": CategoryDocument,
    "coupons": CouponDocument,
    "offers": OfferDocument,
    "facts": FactsDocument,
}


@dataclass(slots=True)  # not frozen: that makes it five times as dear, and each key press of a user takes eight
class Shop:
    """A shop as an engine returns it: the stored part of its document."""

    id: str
    name: str
    aliases: tuple[str, ...]
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...]
    popularity: float | None
    offers: tuple[Mapping[str, Any], ...] = ()
    offers_total: int = 0
    redirects: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Category:
    """A category as an engine returns it."""

    slug: str
    name: str
    count: int


def shop_from_stored(stored: dict[str, Any]) -> Shop:
    """Read a shop back from the stored fields of a hit."""
    return Shop(
        id=stored["id"],
        name=stored["name"],
        aliases=tuple(stored["aliases"]),
        domain=stored["domain"],
        categories=tuple(stored["categories"]),
        countries=tuple(stored["countries"]),
        popularity=stored["popularity"],
        offers=tuple(stored["offers"]),
        offers_total=stored["offers_total"],
        redirects=tuple(stored["redirects"]),
    )


def category_from_stored(stored: dict[str, Any]) -> Category:
    """Read a category back from the stored fields of a hit."""
    return Category(slug=stored["id"], name=stored["name"], count=stored["count"])


def markets_of(countries: Sequence[str], domain: str) -> tuple[str, ...]:
    """What a country filter asks of a shop (M7), and where /suggest takes it to be known to sell (M9.country).

    Args:
        countries: those that it states, or WORLDWIDE; none where it states nothing.
        domain: reduced. Of a shop that states nothing it says one country at most.

    Returns:
        What passes: the codes, or ANY_MARKET; and with ANY_MARKET what is known: WORLDWIDE, or the domain's country.
    """
    if WORLDWIDE in countries:
        return (ANY_MARKET, WORLDWIDE)
    if countries:
        return tuple(countries)
    home = country_of(domain)
    return (ANY_MARKET,) if home is None else (ANY_MARKET, home)


def sells_in(shop: ShopDocument, country: str | None) -> bool:
    """Whether a country's filter lets it through: unknown is not a no (M7)."""
    return country is None or country in shop.markets or ANY_MARKET in shop.markets


def is_known_to_sell_in(shop: ShopDocument, country: str | None) -> bool:
    """Whether /suggest prefers it there to shops that state nothing (M9.country)."""
    return country is None or country in shop.markets or WORLDWIDE in shop.markets


def stored_part(document: object) -> dict[str, Any]:
    """The fields of a document that come back with a hit, as an engine returns them."""
    values = {name: getattr(document, name) for name in stored_fields(type(document))}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
