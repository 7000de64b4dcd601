"""Maps the columns of a sheet to the fields of a kind of records, by the columns' names and the operator's options."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from indexer.catalogue.sheets import cells, dates, terms
from indexer.catalogue.sheets.cells import WORDS, plain, plain_name
from indexer.catalogue.sheets.values import VISIBILITIES
from indexer.records.problems import MAX_SHOWN, CatalogueError


class Field(NamedTuple):
    """A field of a kind.

    `names` are those of columns, as `plain`; the first one that a column has wins, before those in other languages
    (`words.toml`). `read` is given the text of a cell, and more if it is of DATES or AMOUNTS. `absent` is a record's
    value without such a column, blank where it must have one. Without a field that `limits` where or when a record
    counts, or which one replaces another, the record would say more than the sheet does. `nothing` are the tables of
    words for "none" and "unlimited" in a cell.
    """

    names: str
    read: Callable[..., object] = str
    absent: str = "not stated"
    limits: bool = False
    nothing: str = ""


# What readers of cells need to know of the rest of the sheet: the order of the column's dates, the row's currency.
DATES: Final = frozenset({dates.date_or_time, dates.timestamp})
AMOUNTS: Final = frozenset({cells.money, cells.minimum})


# What a row of a kind is.
NAMES: Final[Mapping[str, str]] = {
    "shops": "shop", "coupons": "coupon", "offers": "offer", "shipping": "shipping statement",
    "policies": "policy record",
}  # fmt: skip
# The columns that a message names.
_LISTED: Final = 100
_COUNTRIES: Final = "countries country country_code country_codes markets market"
_REGIONS: Final = (
    "regions region valid_in valid_countries valid_regions eligible_countries eligible_regions available_in territories"
    " territory geo geos locations location allowed_countries included_countries"
)
_EXCLUDED: Final = (
    "excluded_countries excluded_regions excluded_territories excluded_destinations exclude_countries exclude_regions"
    " excluded_locations not_valid_in not_available_in invalid_in restricted_countries"
)
_SOURCE: Final = Field("source")
_SHOP: Final = Field(
    "shop_id shop shop_domain domain merchant_id merchant store_id store website shop_url shop_name store_name"
    " merchant_name advertiser advertiser_name",
    absent="",
)
_CURRENCY: Final = Field("currency currency_code", cells.currency, absent="as in the cell, or --currency")
_VISIBILITY: Final = Field("visibility", absent="public")
_SHOWN: Final = Field("visibility", absent="as in the file that is replaced, else public")
_CHECKED: Final = Field("checked_at checked last_checked checked_on date_checked", dates.timestamp)
# No record has a currency, a discount_kind, free_shipping of coupons or, but for shops, a visibility: they say how
# other fields are read, and which rows are left out. Policies may have a column for each kind.
FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "shops": {
        "id": Field("id shop_id shopid merchant_id store_id key identifier", absent="made from the domain"),
        "name": Field(
            "name shop_name store_name merchant_name display_name shop store merchant brand title company", absent=""
        ),
        "domain": Field(
            "domain domain_name shop_domain url shop_url website website_url web homepage site host hostname link",
            absent="",
        ),
        "categories": Field(
            "categories category category_name sector industry vertical tags", cells.categories, absent="--category"
        ),
        "countries": Field(_COUNTRIES, cells.countries),
        "popularity": Field("popularity score weight traffic visits visitors", cells.number, absent="not known"),
        "aliases": Field(
            "aliases alias aka also_known_as other_names alternative_names synonyms",
            cells.names,
            absent="none",
            nothing="none",
        ),
        "checkout_hosts": Field(
            "checkout_hosts checkout_host checkout_domains checkout_domain",
            cells.several,
            absent="none",
            nothing="none",
        ),
        # Only by --map, as the logos of other catalogues are often no https URLs.
        "logo": Field("", absent="none"),
        "visibility": _SHOWN,
        "source": _SOURCE,
    },
    "coupons": {
        "id": Field("id coupon_id voucher_id key identifier", absent="made from shop and code"),
        "shop_id": _SHOP,
        "code": Field("code coupon_code coupon voucher_code voucher promo_code promo", cells.code, absent=""),
        "title": Field("title name description headline"),
        "discount": Field("discount discount_value value amount reduction"),
        "discount_kind": Field("discount_kind discount_type", absent="as in the cell"),
        "free_shipping": Field("free_shipping free_delivery", cells.yes_or_no, absent="as in the cell", nothing="none"),
        "currency": _CURRENCY,
        "min_order": Field(
            "min_order minimum_order min_order_value minimum_order_value minimum minimum_spend min_spend minimum_amount"
            " min_amount minimum_order_amount min_order_amount minimum_purchase min_purchase minimum_purchase_amount"
            " minimum_basket min_basket minimum_basket_value minimum_cart minimum_cart_value minimum_cart_amount"
            " min_cart_value minimum_value order_minimum spend_threshold minimum_subtotal",
            cells.minimum,
            limits=True,
            nothing="none",
        ),
        "countries": Field(f"{_COUNTRIES} {_REGIONS}", cells.countries, limits=True),
        "valid_from": Field(
            "valid_from starts_at start_date start starts", dates.date_or_time, limits=True, nothing="none unlimited"
        ),
        "valid_until": Field(
            "valid_until valid_to expires_at expires expiry expiry_date expiration_date end_date ends_at end ends",
            dates.date_or_time,
            absent="no end",
            limits=True,
            nothing="none unlimited",
        ),
        "verification_status": Field("verification_status verification", cells.plain, absent="unverified"),
        "last_verified_at": Field("last_verified_at verified_at last_verified", dates.timestamp),
        "blocked_channels": Field("blocked_channels", cells.choices, absent="none", limits=True, nothing="none"),
        "blocked_countries": Field(
            f"blocked_countries {_EXCLUDED}", cells.countries, absent="none", limits=True, nothing="none"
        ),
        "visibility": _VISIBILITY,
        "source": _SOURCE,
    },
    "offers": {
        "id": Field("id offer_id sku product_id item_id key identifier", absent="made from shop and URL or title"),
        "shop_id": _SHOP,
        "title": Field("title name product product_name", absent=""),
        "url": Field("url link product_url offer_url"),
        "price": Field("price amount", cells.money),
        "currency": _CURRENCY,
        "availability": Field("availability stock_status stock", terms.availability),
        "updated_at": Field("updated_at last_updated updated modified_at", dates.timestamp, limits=True),
        "visibility": _VISIBILITY,
    },
    "shipping": {
        "shop_id": _SHOP,
        "destinations": Field(
            f"destinations destination ships_to shipping_countries delivery_countries delivers_to {_COUNTRIES}",
            cells.destinations,
        ),
        "excluded": Field(f"excluded {_EXCLUDED} no_shipping_to", cells.destinations, limits=True, nothing="none"),
        "destinations_exhaustive": Field("destinations_exhaustive exhaustive", cells.yes_or_no),
        "delivery_time": Field("delivery_time delivery delivery_days shipping_time", cells.delivery_time),
        "free_shipping_threshold": Field(
            "free_shipping_threshold free_shipping_from free_shipping free_from", cells.minimum, nothing="none"
        ),
        "currency": _CURRENCY,
        "checked_at": _CHECKED,
        "visibility": _VISIBILITY,
        "source": Field("source", cells.plain),
    },
    "policies": {
        "shop_id": _SHOP,
        "kind": Field("kind policy policy_kind", terms.policy_kind, absent="as its columns say"),
        "country": Field("country country_code", cells.country, limits=True),
        "category": Field("category", terms.return_category, limits=True),
        "days": Field("days return_days return_window return_period", terms.days),
        "counted_from": Field("counted_from", terms.counted_from),
        "fees": Field("fees fee return_fees return_costs", terms.fees),
        "methods": Field("methods method", cells.names),
        "countries": Field("countries", cells.countries, limits=True),
        "as_stated": Field("as_stated text statement"),
        "returns": Field(terms.COLUMNS_OF_KINDS["returns"], terms.returns),
        "payment_methods": Field(terms.COLUMNS_OF_KINDS["payment_methods"], nothing="none"),
        "buyer_protection": Field(terms.COLUMNS_OF_KINDS["buyer_protection"], nothing="none"),
        "source": Field("source url", absent=""),
        "checked_at": _CHECKED._replace(absent=""),
        "visibility": _VISIBILITY,
    },
}
# The fields of a kind of which a sheet must have one.
_ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "shipping": ("destinations", "excluded", "delivery_time", "free_shipping_threshold"),
    "policies": ("kind", *terms.COLUMNS_OF_KINDS, "days", "category"),
}
# The last parts of flattened names, such as regions.list and min_order.amount, that belong to no name of a field.
_FLATTENED: Final = frozenset({
    "list", "items", "item", "values", "value", "names", "name", "codes", "code", "iso", "iso2", "amount",
    "countrycode",
})  # fmt: skip
_PARENTHESIS: Final = re.compile(r"\([^)]*\)")


def stated_values(pairs: Sequence[str], header: Sequence[str]) -> tuple[str | None, Mapping[str, str]]:
    """The column that `--map-value` options are about, and the visibility of each value in lower case.

    Raises CatalogueError if an option is wrong, or they are of several columns.
    """
    named: set[str] = set()
    visibilities: dict[str, str] = {}
    for pair in pairs:
        left, _, visibility = pair.rpartition("=")
        # The name of a column may hold a colon, and so may a value.
        splits = [(left[:at], left[at + 1 :]) for at, character in enumerate(left) if character == ":"]
        found = next((split for split in splits if position_of(split[0], header) is not None), None)
        if found is None or visibility not in VISIBILITIES:
            raise CatalogueError(
                f"--map-value {pair!r} is wrong: it must be COLUMN:VALUE=VISIBILITY, with a column of the file"
                f" ({_names(header)}) and a visibility ({', '.join(VISIBILITIES)})"
            )
        named.add(header[position_of(found[0], header) or 0])
        visibilities[found[1].strip().casefold()] = visibility
    if len(named) > 1:
        raise CatalogueError(f"--map-value names several columns ({', '.join(sorted(named))}): one has the visibility")
    return next(iter(named), None), visibilities


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of the columns of a sheet: the position, from 0, of each field of the kind that has one.

    `settled` are the positions that `--map` and `--ignore` name; `constants` are the cells of rows without one.
    """

    kind: str
    positions: Mapping[str, int]
    header: Sequence[str]
    settled: frozenset[int] = frozenset()
    constants: Mapping[str, str] = field(default_factory=dict)

    @property
    def unused(self) -> tuple[str, ...]:
        """The names of the columns without a field; a column may have no name, or that of another one."""
        return tuple(self.header[position] for position in self.unused_positions())

    def as_text(self) -> str:
        """The mapping as text, one field a line."""
        width = max(map(len, FIELDS[self.kind])) + 1
        lines = [f"  {name:<{width}} {self._meaning(name)}" for name in FIELDS[self.kind]]
        unused = [self._shown(position) for position in self.unused_positions() if self.header[position]]
        # Spreadsheets end each row with empty cells.
        if nameless := len(self.unused) - len(unused):
            unused.append(f"{nameless} without a name")
        if (more := len(unused) - _LISTED) > 0:
            unused[_LISTED:] = [f"{more:,} more"]
        return "\n".join(["Columns:", *lines, f"  {'not used':<{width}} {', '.join(unused) or 'none'}"])

    def unused_positions(self) -> list[int]:
        """The positions of the columns without a field."""
        return [position for position in range(len(self.header)) if position not in self.positions.values()]

    def _meaning(self, name: str) -> str:
        constant = f"{self.constants[name][:MAX_SHOWN]!r}" if name in self.constants else ""
        if name in self.positions:
            return f"column {self._shown(self.positions[name])}" + (f", else {constant}" if constant else "")
        return constant or FIELDS[self.kind][name].absent

    def _shown(self, position: int) -> str:
        """A column's name, with its number where several have that name."""
        name = self.header[position]
        shown = repr(name[:MAX_SHOWN])
        several = [plain(other) for other in self.header].count(plain(name)) > 1
        return f"{shown} (column {position + 1})" if several else shown


def columns_of(
    header: Sequence[str],
    stated: Sequence[str],
    kind: str = "shops",
    *,
    ignored: Sequence[str] = (),
    constants: Mapping[str, str] | None = None,
) -> Columns:
    """The fields of the columns; `COLUMN=FIELD` overrides their names, an empty FIELD or `ignored` leaves a column out.

    Raises CatalogueError if a stated column or field does not exist, or a required field has no column and no constant.
    """
    positions, settled = _stated_positions(header, stated, kind)
    for name in ignored:
        if position_of(name, header) is None:
            raise CatalogueError(f"--ignore {name!r} names no column of the file ({_names(header)})")
        settled.update(at for at, other in enumerate(header) if plain(other) == plain(name))
    for name, known in FIELDS[kind].items():
        taken = settled | set(positions.values())
        usable = [position for position in _named(name, known, header) if position not in taken]
        if usable:
            positions.setdefault(name, usable[0])
    constants = constants or {}
    _refuse_missing(header, kind, {*positions, *constants})
    return Columns(kind, positions, tuple(header), frozenset(settled), constants)


def _stated_positions(header: Sequence[str], stated: Sequence[str], kind: str) -> tuple[dict[str, int], set[int]]:
    positions: dict[str, int] = {}
    settled: set[int] = set()
    for pair in stated:
        column, equals, name = pair.rpartition("=")
        position = position_of(column, header) if equals else None
        if position is None or (name and name not in FIELDS[kind]):
            raise CatalogueError(
                f"--map {pair!r} is wrong: it must be COLUMN=FIELD, with a column of the file ({_names(header)})"
                f" and a field ({', '.join(FIELDS[kind])})"
            )
        settled.add(position)
        if name:
            positions[name] = position
        else:  # all columns of that name
            settled.update(at for at, other in enumerate(header) if plain(other) == plain(column))
    return positions, settled


def _named(name: str, known: Field, header: Sequence[str]) -> list[int]:
    """The positions of the columns that a field may have by their names, the best first."""
    found = [position_of(one, header) for one in known.names.split()]
    in_other_languages = WORDS.get(f"{name}_column", frozenset())
    found += [position for position, one in enumerate(header) if plain(one) in in_other_languages]
    names = {*known.names.split(), *in_other_languages}
    found += [position for position, one in enumerate(header) if names & _other_forms(one)]
    return [position for position in found if position is not None]


def _other_forms(column: str) -> set[str]:
    """A column's name without what exports add: `minimumSpend`, `Price (EUR)`, `regions.list.0.countryCode`."""
    forms = {plain_name(column), plain(_PARENTHESIS.sub("", column))}
    parts = [part for part in re.split(r"[./:\[\]]+", column) if part]
    while len(parts) > 1 and (parts[-1].isdigit() or plain(parts[-1]) in _FLATTENED):
        parts.pop()
        forms.add(plain_name("_".join(parts)))
    return forms


def _refuse_missing(header: Sequence[str], kind: str, given: Collection[str]) -> None:
    missing = [name for name, known in FIELDS[kind].items() if not known.absent and name not in given]
    one_of = _ONE_OF.get(kind, ())
    if one_of and not any(name in given for name in one_of):
        missing.append(one_of[0])
        what = f"{' or the '.join(missing)}, nor as another one that says something ({', '.join(one_of)})"
    else:
        what = " or the ".join(missing)
    if missing:
        options = " ".join(f"--map COLUMN={name}" for name in missing)
        more = "; where all rows have one value, --set FIELD=VALUE states it"
        if missing == ["name"] and kind == "shops":
            more = "; a list of domains alone takes them as names by --map COLUMN=name --map COLUMN=domain"
        raise CatalogueError(
            f"no column is recognised as the {what} (there are: {_names(header)}): name it by {options}{more}"
        )


def position_of(column: str, header: Sequence[str]) -> int | None:
    """The position of a column by its name; None if there is none."""
    named = [plain(name) for name in header]
    return named.index(plain(column)) if plain(column) in named else None


def _names(header: Sequence[str]) -> str:
    """The names of columns, cut as values are (V1), as the first line may hold anything."""
    named = [name[:MAX_SHOWN] for name in header if name]
    more = len(named) - _LISTED
    return ", ".join(named[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
