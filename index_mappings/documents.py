"""The documents of the indices: one class for each index, which declares the roles of each field.

The OpenSearch mapping, the embedded schema, the values that the indexer writes and the fields that the service may
query are derived from these classes. A document holds only public data.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, Flag, auto
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from index_mappings.hosts import country_of

# Raised with every change of a document, a role or the text pipeline: a service reads no other version (G4).
SCHEMA_VERSION: Final = 23

# In `markets`: the shop passes every country filter, because it sells world-wide or states no market (M7).
ANY_MARKET: Final = "*"
WORLDWIDE: Final = "WORLDWIDE"


class Role(Flag):
    """What a field is for. A field may have several roles."""

    STORED = auto()  # returned with a hit
    EXACT = auto()  # found by its whole value
    PREFIX = auto()  # found by a prefix
    INFIX = auto()  # found by any part of it
    SORT = auto()  # orders the hits; one value per document
    RANGE = auto()  # an integer that is found by bounds
    TYPEAHEAD = auto()  # used by the typeahead's segments only, not by engines
    WALK = auto()  # all documents can be scanned in its order; one value per document
    COUNTED = auto()  # its values are counted over the hits of a search
    TAILS = auto()  # many of its values are ends of other ones


class Form(Enum):
    """The type of an engine field's values."""

    TERMS = auto()  # finished terms
    WHOLE = auto()  # integers of 64 bits
    NUMBER = auto()  # numbers that are only stored
    CARRIED = auto()  # structures that are only stored


class DeclaredField(NamedTuple):
    """A document class's field with its roles, as declared."""

    name: str
    roles: Role
    form: Form


@cache
def declared_fields(document: type) -> tuple[DeclaredField, ...]:
    """The fields of a document class with their roles, in order."""
    hints = get_type_hints(document, include_extras=True)
    return tuple(_declared(field.name, hints[field.name]) for field in fields(document))


@cache
def fields_with(document: type, role: Role) -> tuple[str, ...]:
    """The names of the fields that have a role."""
    return tuple(field.name for field in declared_fields(document) if role in field.roles)


def _declared(name: str, hint: object) -> DeclaredField:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"field {name} of a document declares no role")
    kind, roles = get_args(hint)
    return DeclaredField(name, roles, _form({kind, *get_args(kind)}, roles))


def _form(kinds: set[object], roles: Role) -> Form:
    if Role.RANGE in roles:
        return Form.WHOLE
    if {int, float} & kinds:
        return Form.NUMBER
    structures = {dict, Mapping} & {get_origin(kind) or kind for kind in kinds}
    return Form.CARRIED if structures else Form.TERMS


@dataclass(frozen=True, slots=True)
class ShopDocument:
    """A public shop.

    Attributes:
        refs: the keys by which a reference is looked up: the id and the reduced domain (R1).
        rank: M1's sortable key.
        domain: reduced domain, A-labels.
        categories: category slugs, the first is primary.
        primary: the first one again, which counts before the others (M4).
        countries: ISO codes, or WORLDWIDE; empty when not stated.
        markets: the values that a country filter matches, and the countries in which it is known to sell
            (`markets_of`).
        popularity: any number >= 0; None when the source has none.
        logo: an https URL of at most 300 ASCII characters; None without one that may be shown (F21).
        offers: the newest few offers, with the fields of the offers' own documents; `offers_total` counts all (A1).
        redirects: redirects in the source between this shop's domain and another public shop's (A12).
        registrable, main_label, stated: what merge audits look up: parts of the domain, the label without its hyphens,
            and name and aliases folded (`index_mappings.forms.stated_names`).
        names, leading, full, keys, words, infixes, labels, dotted, rests, clipped: the forms by which it is found
            (`index_mappings.forms`, X2, M3).
        other_keys: the keys that are not full forms.
        ships_to: the verdicts on all countries (`index_mappings.countries`, F2).
        codes: when and for whom it has a usable code (`index_mappings.usable_codes`, F4).
        related_digest: a digest of both, by which a comparison with the state sees that they are stale.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    refs: Annotated[tuple[str, ...], Role.EXACT]
    rank: Annotated[str, Role.SORT]
    name: Annotated[str, Role.STORED]
    aliases: Annotated[tuple[str, ...], Role.STORED]
    domain: Annotated[str, Role.STORED]
    categories: Annotated[tuple[str, ...], Role.STORED | Role.EXACT | Role.COUNTED]
    primary: Annotated[str, Role.EXACT]
    countries: Annotated[tuple[str, ...], Role.STORED | Role.COUNTED]
    markets: Annotated[tuple[str, ...], Role.EXACT]
    popularity: Annotated[float | None, Role.STORED]
    logo: Annotated[str | None, Role.STORED]
    offers: Annotated[tuple[Mapping[str, Any], ...], Role.STORED]
    offers_total: Annotated[int, Role.STORED]
    redirects: Annotated[tuple[Mapping[str, Any], ...], Role.STORED]
    registrable: Annotated[str, Role.EXACT]
    main_label: Annotated[str, Role.EXACT]
    stated: Annotated[tuple[str, ...], Role.EXACT]
    names: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    leading: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    full: Annotated[tuple[str, ...], Role.EXACT | Role.PREFIX | Role.TYPEAHEAD]
    keys: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    other_keys: Annotated[tuple[str, ...], Role.PREFIX | Role.TAILS]
    words: Annotated[tuple[str, ...], Role.EXACT | Role.PREFIX | Role.TYPEAHEAD]
    infixes: Annotated[tuple[str, ...], Role.INFIX]
    labels: Annotated[tuple[str, ...], Role.EXACT]
    dotted: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    rests: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    clipped: Annotated[tuple[str, ...], Role.EXACT]
    ships_to: Annotated[tuple[str, ...], Role.EXACT]
    codes: Annotated[tuple[str, ...], Role.EXACT]
    related_digest: Annotated[str, Role.STORED]


@dataclass(frozen=True, slots=True)
class CategoryDocument:
    """A category that at least one public shop carries.

    Attributes:
        id: the slug.
        rank: the sortable key of M11: most shops first, then slug.
        count: the number of public shops that carry it.
        words, names: the forms by which it is found (`index_mappings.category_forms`, M5).
        translations: by language tag, the display names that the catalogue states.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]
    name: Annotated[str, Role.STORED]
    count: Annotated[int, Role.STORED]
    words: Annotated[tuple[str, ...], Role.STORED]
    names: Annotated[tuple[str, ...], Role.STORED]
    translations: Annotated[Mapping[str, str], Role.STORED]


@dataclass(frozen=True, slots=True)
class CouponDocument:
    """A coupon of a public shop. Each request decides whether it may be shown (A4, A5).

    Attributes:
        rank: M11's sortable key.
        shop_refs: the shop's id and domain.
        valid_from_us, valid_until_us: the bounds in microseconds since 1970; an open end is LONG_AGO or FAR_AHEAD.
        reserved: "yes" when the shop's domain is a reserved test name, else "no".
        blocked_channels, blocked_countries: the channels and countries in which the display policy hides it.
        folded_code: the form by which codes are compared (`index_mappings.values`).
        view: the fields that callers see, with wire names.
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
        rank: M11's sortable key.
        shop_refs: the shop's id and domain.
        view: the fields that callers see, with wire names, without the URL (A2).
        shop: id and domain.
        checkout_url: the URL, if it passes A10's rules.
        affiliate: network, program_id, commission_stated, disclosure and the URL built by the programme; None without
            a programme.
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
    """The facts about a public shop: shipping, policies and trust. Every public shop has one.

    Attributes:
        id: shop id, and the order, which does not matter here.
        refs: the shop's id and domain.
        trusted_refs: the same if at least one trust signal is present; trust is looked up by this field only (A8).
        shop: id and domain.
        shipping: the statement with wire names (A7) and `excluded`; None when none was collected.
        policies: the shop's statements, by kind; each has the statements of countries, with wire names (F9).
        signals: present trust signals with wire names, in A8's order.
        pipeline_gaps: kinds of signal whose check gave no usable value.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK | Role.SORT]
    refs: Annotated[tuple[str, ...], Role.EXACT]
    trusted_refs: Annotated[tuple[str, ...], Role.EXACT]
    shop: Annotated[Mapping[str, Any], Role.STORED]
    shipping: Annotated[Mapping[str, Any] | None, Role.STORED]
    policies: Annotated[Mapping[str, Any], Role.STORED]
    signals: Annotated[tuple[Mapping[str, Any], ...], Role.STORED]
    pipeline_gaps: Annotated[tuple[str, ...], Role.STORED]


# The kinds of trust signal, in the order in which answers list them (A8).
TRUST_KINDS: Final = (
    "tls_issuer",
    "tls_grade",
    "hosting_isp",
    "hosting_country",
    "domain_registered_at",
    "registrar",
    "payment_methods",
)

DOCUMENTS: Final[dict[str, type]] = {
    "shops": ShopDocument,
    "categories": CategoryDocument,
    "coupons": CouponDocument,
    "offers": OfferDocument,
    "facts": FactsDocument,
}


@dataclass(slots=True)  # not frozen: that takes five times as long to create, and a suggest request creates eight
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
    logo: str | None = None


# As many subtags of a language are compared: language, script, region and variant.
_MOST_SUBTAGS: Final = 4


@dataclass(frozen=True, slots=True)
class Category:
    """A category in an answer; its names in other languages are not compared."""

    slug: str
    name: str
    count: int
    translations: Mapping[str, str] = field(default_factory=dict, compare=False)

    def name_in(self, language: str) -> str:
        """The display name in a language, by its BCP 47 tag: the one stated for it or for a wider tag, else `name`.

        Of a longer text than a tag can be, only the beginning counts.
        """
        parts = language.lower().split("-", _MOST_SUBTAGS)[:_MOST_SUBTAGS]
        wider = ("-".join(parts[:length]) for length in range(len(parts), 0, -1))
        stated = {tag.lower(): name for tag, name in self.translations.items()}
        return next((stated[tag] for tag in wider if tag in stated), self.name)


@dataclass(frozen=True, slots=True)
class CategoryEntry:
    """A category as an engine or a typeahead stores it, with the forms by which it is found."""

    slug: str
    name: str
    count: int
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    translations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: CategoryDocument) -> "CategoryEntry":
        """The entry of a document."""
        return cls(document.id, document.name, document.count, document.words, document.names, document.translations)

    def shown(self) -> Category:
        """The category without its forms."""
        return Category(self.slug, self.name, self.count, self.translations)


def in_category_order(entries: Iterable[CategoryEntry]) -> tuple[CategoryEntry, ...]:
    """Most shops first, then slug (M11)."""
    return tuple(sorted(entries, key=lambda entry: (-entry.count, entry.slug)))


# Returns all of a shop's fields, and raises KeyError if one is not stored.
_shop_fields: Final = itemgetter(*(field.name for field in fields(Shop)))


def shop_from_stored(stored: dict[str, Any]) -> Shop:
    """Read a shop back from the stored fields of a hit."""
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in _shop_fields(stored)]
    return Shop(*values)


def category_from_stored(stored: dict[str, Any]) -> CategoryEntry:
    """Read a category back from the stored fields of a hit."""
    words, names = tuple(stored["words"]), tuple(stored["names"])
    return CategoryEntry(stored["id"], stored["name"], stored["count"], words, names, stored["translations"])


def markets_of(countries: Sequence[str], domain: str) -> tuple[str, ...]:
    """The values of `ShopDocument.markets`; the domain's country counts only if the shop states no countries.

    A country filter matches them (M7): country codes, or ANY_MARKET; with ANY_MARKET also where the shop is
    known to sell (M9.country): WORLDWIDE, or the domain's country.
    """
    if WORLDWIDE in countries:
        return (ANY_MARKET, WORLDWIDE)
    if countries:
        return tuple(countries)
    home = country_of(domain)
    return (ANY_MARKET,) if home is None else (ANY_MARKET, home)


def sort_field(kind: str) -> str:
    """The field that orders a kind's documents."""
    (name,) = fields_with(DOCUMENTS[kind], Role.SORT)
    return name


def stored_part(document: object) -> dict[str, Any]:
    """The stored fields of a document, as an engine returns them with a hit."""
    document_class: type = type(document)
    values = {name: getattr(document, name) for name in fields_with(document_class, Role.STORED)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
