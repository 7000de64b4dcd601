"""Maps the columns of a CSV to the fields of a shop, by the columns' names and the operator's `--map` options."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexer.records.problems import CatalogueError

FIELDS: Final = (
    "id", "name", "domain", "categories", "countries", "popularity", "aliases", "checkout_hosts", "visibility",
    "source",
)  # fmt: skip
# By field: names of columns, in lower case with _ for other characters than letters and digits; the first match wins.
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id", "shop_id", "shopid", "merchant_id", "store_id", "key", "identifier"),
    "name": (
        "name", "shop_name", "store_name", "merchant_name", "display_name", "shop", "store", "merchant", "brand",
        "title", "company",
    ),
    "domain": (
        "domain", "domain_name", "shop_domain", "url", "shop_url", "website", "website_url", "web", "homepage", "site",
        "host", "hostname", "link",
    ),
    "categories": ("categories", "category", "category_name", "sector", "industry", "vertical", "tags"),
    "countries": ("countries", "country", "country_code", "country_codes", "markets", "market"),
    "popularity": ("popularity", "score", "weight", "traffic", "visits", "visitors"),
    "aliases": ("aliases", "alias", "aka", "also_known_as", "other_names", "alternative_names", "synonyms"),
    "checkout_hosts": ("checkout_hosts", "checkout_host", "checkout_domains", "checkout_domain"),
    "visibility": ("visibility",),
    "source": ("source",),
}  # fmt: skip
_REQUIRED: Final = ("name", "domain")
_NO_LETTER_OR_DIGIT: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of the columns of a CSV.

    Attributes:
        positions: the position of its column, from 0, for each field that has one.
        header: the names of all columns.
        settled: the positions of the columns that `--map` names, also of those that it leaves out.
    """

    positions: Mapping[str, int]
    header: Sequence[str]
    settled: frozenset[int] = frozenset()

    @property
    def unused(self) -> tuple[str, ...]:
        """The names of the columns without a field; a column may have no name, or that of another one."""
        return tuple(self.header[position] for position in self.unused_positions())

    def as_text(self) -> str:
        """The mapping as text, one field a line."""
        lines = [f"  {field:<15} {self._meaning(field)}" for field in FIELDS]
        unused = [self._shown(position) for position in self.unused_positions() if self.header[position]]
        # Spreadsheets end each row with empty cells.
        if nameless := len(self.unused) - len(unused):
            unused.append(f"{nameless} without a name")
        return "\n".join(["Columns:", *lines, f"  {'not used':<15} {', '.join(unused) or 'none'}"])

    def unused_positions(self) -> list[int]:
        """The positions of the columns without a field."""
        return [position for position in range(len(self.header)) if position not in self.positions.values()]

    def _meaning(self, field: str) -> str:
        return f"column {self._shown(self.positions[field])}" if field in self.positions else _DEFAULTS[field]

    def _shown(self, position: int) -> str:
        """A column's name, with its number where several have that name."""
        name = self.header[position]
        several = [plain(other) for other in self.header].count(plain(name)) > 1
        return f"{name!r} (column {position + 1})" if several else repr(name)


_DEFAULTS: Final[Mapping[str, str]] = {
    "id": "made from the domain",
    "categories": "--category",
    "countries": "not stated",
    "popularity": "not known",
    "aliases": "none",
    "checkout_hosts": "none",
    "visibility": "public",
    "source": "not stated",
}


def columns_of(header: Sequence[str], stated: Sequence[str]) -> Columns:
    """The fields of the columns.

    Args:
        header: the names of the columns.
        stated: `COLUMN=FIELD` each, which overrides the names; an empty FIELD leaves a column out.

    Raises:
        CatalogueError: a stated column or field does not exist, or name or domain have no column.
    """
    named = [plain(name) for name in header]
    positions: dict[str, int] = {}
    settled: set[int] = set()
    for pair in stated:
        column, equals, field = pair.rpartition("=")
        position = position_of(column, header) if equals else None
        if position is None or (field and field not in FIELDS):
            raise CatalogueError(
                f"--map {pair!r} is wrong: it must be COLUMN=FIELD, with a column of the file ({_names(header)})"
                f" and a field ({', '.join(FIELDS)})"
            )
        settled.add(position)
        if field:
            positions[field] = position
    for field, synonyms in _SYNONYMS.items():
        found = (named.index(name) for name in synonyms if name in named)
        if (
            field not in positions
            and (position := next((one for one in found if one not in settled), None)) is not None
        ):
            positions[field] = position
    missing = [field for field in _REQUIRED if field not in positions]
    if missing:
        options = " ".join(f"--map COLUMN={field}" for field in missing)
        raise CatalogueError(
            f"no column is recognised as the {' or the '.join(missing)} (there are: {_names(header)}): name it by"
            f" {options}"
        )
    return Columns(positions, tuple(header), frozenset(settled))


def position_of(column: str, header: Sequence[str]) -> int | None:
    """The position of a column by its name; None if there is none."""
    named = [plain(name) for name in header]
    return named.index(plain(column)) if plain(column) in named else None


def _names(header: Sequence[str]) -> str:
    return ", ".join(filter(None, header))


def plain(name: str) -> str:
    """A column's name in lower case, with _ for other characters than letters and digits."""
    return _NO_LETTER_OR_DIGIT.sub("_", name.casefold()).strip("_")
