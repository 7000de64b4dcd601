"""The documents of the indices, one class an index, each field's roles declared once.

The OpenSearch mapping, the embedded schema, what the writer sends and what the reader may ask are derived from these.
A document holds only what the public may see.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from index_mappings.roles import Role, stored_fields

# Raised with every change of a document class, of a role or of the text pipeline: a service refuses a generation of
# another version (G4).
SCHEMA_VERSION: Final = 1

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
        markets: what a country filter asks: the codes, or ANY_MARKET.
        popularity: any number >= 0; None when the source has none.
        full, keys, words, infixes: what it is found by (X2).
    """

    id: Annotated[str, Role.STORED | Role.EXACT]
    refs: Annotated[tuple[str, ...], Role.EXACT]
    rank: Annotated[str, Role.SORT]
    name: Annotated[str, Role.STORED]
    aliases: Annotated[tuple[str, ...], Role.STORED]
    domain: Annotated[str, Role.STORED]
    categories: Annotated[tuple[str, ...], Role.STORED | Role.EXACT]
    countries: Annotated[tuple[str, ...], Role.STORED]
    markets: Annotated[tuple[str, ...], Role.EXACT]
    popularity: Annotated[float | None, Role.STORED]
    full: Annotated[tuple[str, ...], Role.EXACT | Role.PREFIX]
    keys: Annotated[tuple[str, ...], Role.PREFIX]
    words: Annotated[tuple[str, ...], Role.EXACT | Role.PREFIX]
    infixes: Annotated[tuple[str, ...], Role.INFIX]


@dataclass(frozen=True, slots=True)
class CategoryDocument:
    """A category that at least one public shop carries.

    Attributes:
        id: the slug.
        rank: the sortable key of M11: most shops first, then slug.
        name: display name.
        count: how many public shops carry it.
    """

    id: Annotated[str, Role.STORED | Role.EXACT]
    rank: Annotated[str, Role.SORT]
    name: Annotated[str, Role.STORED]
    count: Annotated[int, Role.STORED]


DOCUMENTS: Final[dict[str, type]] = {"shops": ShopDocument, "categories": CategoryDocument}


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop as an engine returns it: the stored part of its document."""

    id: str
    name: str
    aliases: tuple[str, ...]
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...]
    popularity: float | None


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
    )


def category_from_stored(stored: dict[str, Any]) -> Category:
    """Read a category back from the stored fields of a hit."""
    return Category(slug=stored["id"], name=stored["name"], count=stored["count"])


def stored_part(document: object) -> dict[str, Any]:
    """The fields of a document that come back with a hit, as an engine returns them."""
    values = {name: getattr(document, name) for name in stored_fields(type(document))}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
