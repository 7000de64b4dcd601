"""Maps the columns of a sheet to the fields of a kind of records, by the columns' names and the operator's options."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from indexer.catalogue.sheets import cells
from indexer.catalogue.sheets.cells import WORDS, plain
from indexer.catalogue.sheets.values import VISIBILITIES
from indexer.records.problems import MAX_SHOWN, CatalogueError


class Field(NamedTuple):
    """A field of a kind.

    `absent` is what a record has without such a column, blank where it must have one. `names` are names of columns, in
    lower case with _ for other characters than letters and digits; the first name that a column has wins, before those
    in other languages (`words.toml`). `read` is given the text of a cell. Without a field that `limits` where or when a
    record counts, or which record replaces another one, the record would say more than the sheet does.
    """

    absent: str
    names: str
    read: Callable[[str], object] = str
    limits: bool = False


# What a row of a kind is.
NAMES: Final[Mapping[str, str]] = {
    "shops": "shop", "coupons": "coupon", "offers": "offer", "shipping": "shipping statement",
    "policies": "policy record",
}  # fmt: skip
# The columns that a message names.
_LISTED: Final = 100
_COUNTRIES: Final = "countries country country_code country_codes markets market"
_SOURCE: Final = Field("not stated", "source")
_SHOP: Final = Field("", "shop_id shop shop_domain domain merchant_id merchant store_id store website shop_url")
_CURRENCY: Final = Field("as in the cell, or --currency", "currency currency_code", cells.currency)
_VISIBILITY: Final = Field("public", "visibility")
_SHOWN: Final = Field("as in the file that is replaced, else public", "visibility")
_CHECKED: Final = Field("not stated", "checked_at checked", cells.timestamp)
# No record has a currency, a discount_kind or, but for shops, a visibility: they say how other fields are read, and
# which rows are left out.
FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "shops": {
        "id": Field("made from the domain", "id shop_id shopid merchant_id store_id key identifier"),
        "name": Field(
            "", "name shop_name store_name merchant_name display_name shop store merchant brand title company"
        ),
        "domain": Field(
            "", "domain domain_name shop_domain url shop_url website website_url web homepage site host hostname link"
        ),
        "categories": Field(
            "--category", "categories category category_name sector industry vertical tags", cells.categories
        ),
        "countries": Field("not stated", _COUNTRIES, cells.countries),
        "popularity": Field("not known", "popularity score weight traffic visits visitors", cells.number),
        "aliases": Field("none", "aliases alias aka also_known_as other_names alternative_names synonyms", cells.names),
        "checkout_hosts": Field("none", "checkout_hosts checkout_host checkout_domains checkout_domain", cells.several),
        # Only by --map, as the logos of other catalogues are often no https URLs.
        "logo": Field("none", ""),
        "visibility": _SHOWN,
        "source": _SOURCE,
    },
    "coupons": {
        "id": Field("made from shop and code", "id coupon_id voucher_id key identifier"),
        "shop_id": _SHOP,
        "code": Field("", "code coupon_code coupon voucher_code voucher promo_code promo", cells.code),
        "title": Field("not stated", "title name description headline"),
        "discount": Field("not stated", "discount discount_value value amount reduction"),
        "discount_kind": Field("as in the cell", "discount_kind discount_type"),
        "currency": _CURRENCY,
        "min_order": Field(
            "not stated",
            "min_order minimum_order min_order_value minimum_order_value minimum",
            cells.money,
            limits=True,
        ),
        "countries": Field("not stated", _COUNTRIES, cells.countries, limits=True),
        "valid_from": Field(
            "not stated", "valid_from starts_at start_date start starts", cells.date_or_time, limits=True
        ),
        "valid_until": Field(
            "no end",
            "valid_until valid_to expires_at expires expiry expiry_date expiration_date end_date ends_at end ends",
            cells.date_or_time,
            limits=True,
        ),
        "verification_status": Field("unverified", "verification_status verification", cells.plain),
        "last_verified_at": Field("not stated", "last_verified_at verified_at last_verified", cells.timestamp),
        "blocked_channels": Field("none", "blocked_channels", cells.choices, limits=True),
        "blocked_countries": Field("none", "blocked_countries", cells.countries, limits=True),
        "visibility": _VISIBILITY,
        "source": _SOURCE,
    },
    "offers": {
        "id": Field("made from shop and URL or title", "id offer_id sku product_id item_id key identifier"),
        "shop_id": _SHOP,
        "title": Field("", "title name product product_name"),
        "url": Field("not stated", "url link product_url offer_url"),
        "price": Field("not stated", "price amount", cells.money),
        "currency": _CURRENCY,
        "availability": Field("not stated", "availability stock_status stock", cells.plain),
        "updated_at": Field("not stated", "updated_at last_updated updated modified_at", cells.timestamp, limits=True),
        "visibility": _VISIBILITY,
    },
    "shipping": {
        "shop_id": _SHOP,
        "destinations": Field(
            "not stated", f"destinations destination ships_to shipping_countries {_COUNTRIES}", cells.destinations
        ),
        "excluded": Field(
            "not stated", "excluded excluded_countries excluded_destinations", cells.destinations, limits=True
        ),
        "destinations_exhaustive": Field("not stated", "destinations_exhaustive exhaustive", cells.yes_or_no),
        "delivery_time": Field("not stated", "delivery_time delivery delivery_days", cells.delivery_time),
        "free_shipping_threshold": Field(
            "not stated", "free_shipping_threshold free_shipping_from free_shipping", cells.money
        ),
        "currency": _CURRENCY,
        "checked_at": _CHECKED,
        "visibility": _VISIBILITY,
        "source": Field("not stated", "source", cells.plain),
    },
    "policies": {
        "shop_id": _SHOP,
        "kind": Field("", "kind policy policy_kind", cells.plain),
        "country": Field("not stated", "country country_code", cells.country, limits=True),
        "category": Field("not stated", "category", cells.plain, limits=True),
        "days": Field("not stated", "days return_days", cells.whole_number),
        "counted_from": Field("not stated", "counted_from", cells.plain),
        "fees": Field("not stated", "fees fee", cells.plain),
        "methods": Field("not stated", "methods method", cells.names),
        "countries": Field("not stated", "countries", cells.countries, limits=True),
        "as_stated": Field("not stated", "as_stated text statement"),
        "source": Field("", "source url"),
        "checked_at": _CHECKED._replace(absent=""),
        "visibility": _VISIBILITY,
    },
}


def stated_values(pairs: Sequence[str], header: Sequence[str]) -> tuple[str | None, Mapping[str, str]]:
    """The column that `--map-value` options are about, and the visibility of each value in lower case.

    Raises CatalogueError if an option has another form, names no column or no visibility, or they are of several
    columns.
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

    `settled` are the positions of the columns that `--map` names, also of those that it leaves out.
    """

    kind: str
    positions: Mapping[str, int]
    header: Sequence[str]
    settled: frozenset[int] = frozenset()

    @property
    def unused(self) -> tuple[str, ...]:
        """The names of the columns without a field; a column may have no name, or that of another one."""
        return tuple(self.header[position] for position in self.unused_positions())

    def as_text(self) -> str:
        """The mapping as text, one field a line."""
        width = max(map(len, FIELDS[self.kind])) + 1
        lines = [f"  {field:<{width}} {self._meaning(field)}" for field in FIELDS[self.kind]]
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

    def _meaning(self, field: str) -> str:
        return (
            f"column {self._shown(self.positions[field])}"
            if field in self.positions
            else FIELDS[self.kind][field].absent
        )

    def _shown(self, position: int) -> str:
        """A column's name, with its number where several have that name."""
        name = self.header[position]
        shown = repr(name[:MAX_SHOWN])
        several = [plain(other) for other in self.header].count(plain(name)) > 1
        return f"{shown} (column {position + 1})" if several else shown


def columns_of(header: Sequence[str], stated: Sequence[str], kind: str = "shops") -> Columns:
    """The fields of the columns; `COLUMN=FIELD` overrides their names, an empty FIELD leaves a column out.

    Raises CatalogueError if a stated column or field does not exist, or a field that every record needs has no column.
    """
    positions: dict[str, int] = {}
    settled: set[int] = set()
    for pair in stated:
        column, equals, field = pair.rpartition("=")
        position = position_of(column, header) if equals else None
        if position is None or (field and field not in FIELDS[kind]):
            raise CatalogueError(
                f"--map {pair!r} is wrong: it must be COLUMN=FIELD, with a column of the file ({_names(header)})"
                f" and a field ({', '.join(FIELDS[kind])})"
            )
        settled.add(position)
        if field:
            positions[field] = position
        else:  # all columns of that name
            settled.update(at for at, name in enumerate(header) if plain(name) == plain(column))
    for field, known in FIELDS[kind].items():
        found = [position_of(name, header) for name in known.names.split()]
        in_other_languages = WORDS.get(f"{field}_column", ())
        found += [position for position, name in enumerate(header) if plain(name) in in_other_languages]
        taken = settled | set(positions.values())
        usable = [position for position in found if position is not None and position not in taken]
        if usable:
            positions.setdefault(field, usable[0])
    missing = [field for field, known in FIELDS[kind].items() if not known.absent and field not in positions]
    if missing:
        options = " ".join(f"--map COLUMN={field}" for field in missing)
        raise CatalogueError(
            f"no column is recognised as the {' or the '.join(missing)} (there are: {_names(header)}): name it by"
            f" {options}"
        )
    return Columns(kind, positions, tuple(header), frozenset(settled))


def position_of(column: str, header: Sequence[str]) -> int | None:
    """The position of a column by its name; None if there is none."""
    named = [plain(name) for name in header]
    return named.index(plain(column)) if plain(column) in named else None


def _names(header: Sequence[str]) -> str:
    """The names of columns, cut as values are (V1), as the first line may hold anything."""
    named = [name[:MAX_SHOWN] for name in header if name]
    more = len(named) - _LISTED
    return ", ".join(named[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
