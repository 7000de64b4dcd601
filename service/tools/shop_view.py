"""The public view of a shop, the same in every tool (A1), and the small models that several tools share.

Pages of shops are made directly from the index: models of a hundred shops cost more time than the search.
"""

from itertools import accumulate
from typing import Annotated, Any, Final, Literal

from pydantic import Field, WithJsonSchema

from index_mappings.documents import Shop
from service.tools.tool import ToolResponse, is_none

# A page of shops with all their aliases would be too long for a model (A1).
MOST_ALIASES: Final = 10
# Of all aliases of a shop together; tokens grow with them.
MOST_ALIAS_CHARACTERS: Final = 400


class Money(ToolResponse):
    """An amount."""

    amount: str = Field(description="A decimal number as a string, such as 19.99.")
    currency: str = Field(description="ISO 4217 code.")


class ShopKey(ToolResponse):
    """The shop that something belongs to."""

    id: str = Field(description="The directory's id of the shop.")
    domain: str = Field(description="The shop's domain.")


class NamedShop(ShopKey):
    """The shop that something belongs to, with its name."""

    name: str = Field(description="Display name.")


class OfferView(ToolResponse):
    """An offer; only resolve_checkout_url and monetize_offer serve its URL (A2)."""

    offer_id: str = Field(description="The offer's id, for the checkout tools.")
    title: str = Field(description="What is offered.")
    price: Money | None = Field(description="null when not stated.")
    availability: Literal["in_stock", "out_of_stock", "preorder", "discontinued"] | None = Field(
        description="null when not stated."
    )
    updated_at: str | None = Field(description="RFC 3339; null when not stated.")


class ShopView(ToolResponse):
    """The public view of a shop."""

    id: str = Field(description="The directory's id of the shop; works wherever a domain does.")
    name: str = Field(description="Display name.")
    aliases: tuple[str, ...] = Field(
        description=f"Other names of the shop: all of them in get_shop, elsewhere up to {MOST_ALIASES}."
    )
    aliases_total: int = Field(description="How many aliases there are in all. Beyond the interface.")
    domain: str = Field(description="The shop's domain, internationalised names as A-labels (xn--...).")
    category: str = Field(description="Slug of the primary category.")
    categories: tuple[str, ...] = Field(description="All category slugs, the primary one first.")
    countries: tuple[str, ...] | None = Field(
        description="Markets the shop states: country codes, or WORLDWIDE. null: not stated, which is no refusal."
    )
    offers: tuple[OfferView, ...] = Field(
        description="The newest offers. Empty when none were ingested, which is no verdict; in resolve_conflict always."
    )
    offers_total: int = Field(description="How many offers there are in all.")
    # Absent without a logo, and never null.
    logo_url: Annotated[str | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="https URL of its logo. Beyond the interface.", exclude_if=is_none
    )


def _first_aliases(aliases: tuple[str, ...]) -> tuple[str, ...]:
    """The first aliases that have at most MOST_ALIAS_CHARACTERS characters together."""
    ends = accumulate(map(len, aliases))
    return tuple(alias for alias, end in zip(aliases, ends, strict=True) if end <= MOST_ALIAS_CHARACTERS)


def shop_wire(shop: Shop, most_aliases: int | None = MOST_ALIASES) -> dict[str, Any]:
    """The wire form of `ShopView`; `most_aliases` of None is for all."""
    wire = {
        "id": shop.id,
        "name": shop.name,
        "aliases": shop.aliases if most_aliases is None else _first_aliases(shop.aliases[:most_aliases]),
        "aliases_total": len(shop.aliases),
        "domain": shop.domain,
        "category": shop.categories[0],
        "categories": shop.categories,
        "countries": shop.countries or None,
        # As the indexer wrote them, which is as `OfferView` describes them.
        "offers": shop.offers,
        "offers_total": shop.offers_total,
    }
    if shop.logo is not None:
        wire["logo_url"] = shop.logo
    return wire
