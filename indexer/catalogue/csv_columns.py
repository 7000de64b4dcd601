"""Which column of a CSV is which field of a shop: by the columns' names, and by what the operator says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexer.records.problems import CatalogueError

FIELDS: Final = (
    "id", "name", "domain", "categories", "countries", "popularity", "aliases", "checkout_hosts", "visibility",
    "source",
)  # fmt: skip
# By field: the names of columns, in lower case with _ for what is no letter or digit; the first that is there wins.
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
    """What the columns of a CSV mean.

    Attributes:
        places: the number of its column, from 0, for each field that has one.
        header: the names of all columns.
    """

    places: Mapping[str, int]
    header: Sequence[str]

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns that are no field."""
        return tuple(name for place, name in enumerate(self.header) if place not in self.places.values())

    def as_text(self) -> str:
        """The mapping for people, one field a line."""
        lines = [f"  {field:<15} {self._meaning(field)}" for field in FIELDS]
        unused = ", ".join(map(repr, self.unused)) or "none"
        return "\n".join(["Columns:", *lines, f"  {'not used':<15} {unused}"])

    def _meaning(self, field: str) -> str:
        return f"column {self.header[self.places[field]]!r}" if field in self.places else _DEFAULTS[field]


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
        stated: `COLUMN=FIELD` each, before what the names suggest; an empty FIELD leaves a column out.

    Raises:
        CatalogueError: a stated column or field does not exist, or name or domain have no column.
    """
    named = [_plain(name) for name in header]
    places: dict[str, int] = {}
    settled: set[int] = set()
    for pair in stated:
        column, equals, field = pair.rpartition("=")
        place = named.index(_plain(column)) if equals and _plain(column) in named else None
        if place is None or (field and field not in FIELDS):
            raise CatalogueError(
                f"--map {pair!r} does not fit: it is COLUMN=FIELD, with a column of the file ({', '.join(header)})"
                f" and a field ({', '.join(FIELDS)})"
            )
        settled.add(place)
        if field:
            places[field] = place
    for field, synonyms in _SYNONYMS.items():
        found = (named.index(name) for name in synonyms if name in named)
        if field not in places and (place := next((one for one in found if one not in settled), None)) is not None:
            places[field] = place
    missing = [field for field in _REQUIRED if field not in places]
    if missing:
        raise CatalogueError(
            f"no column is known to be the {' or the '.join(missing)} (there are: {', '.join(header)}): say which by"
            f" --map COLUMN={missing[0]}"
        )
    return Columns(places, tuple(header))


def _plain(name: str) -> str:
    return _NO_LETTER_OR_DIGIT.sub("_", name.casefold()).strip("_")
