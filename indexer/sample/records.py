"""The records of a catalogue as frozen values; each field has the name and position that it has in the NDJSON file.

They are independent of the indexer's models, so the sample and the indexer's reader check each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Category:
    """A category as a shop states it: slug of ``[a-z0-9-]`` and display name."""

    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop. ``countries`` is ISO codes, ``("WORLDWIDE",)`` or empty for not stated; the first category is primary."""

    id: str
    name: str
    domain: str
    categories: tuple[Category, ...]
    countries: tuple[str, ...]
    popularity: float | None
    aliases: tuple[str, ...]
    checkout_hosts: tuple[str, ...]
    visibility: str
    source: str
    version: int

    @property
    def is_public(self) -> bool:
        """Whether the shop may be shown."""
        return self.visibility == "public"

    @property
    def home(self) -> str:
        """The first country that the shop states; DE for a worldwide shop and for one without a stated market."""
        return next((country for country in self.countries if country != "WORLDWIDE"), "DE")


@dataclass(frozen=True, slots=True)
class Money:
    """A decimal string and an ISO 4217 code."""

    amount: str
    currency: str


@dataclass(frozen=True, slots=True)
class Discount:
    """The discount of a code: percent, amount, free_shipping or other; the value is a decimal string or null."""

    kind: str
    value: str | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Coupon:
    """A discount code. Times are RFC 3339 or bare dates; ``blocked_channels`` is of rest, mcp and stdio."""

    id: str
    shop_id: str
    code: str
    title: str
    discount: Discount | None
    min_order: Money | None
    countries: tuple[str, ...]
    valid_from: str | None
    valid_until: str | None
    verification_status: str
    last_verified_at: str | None
    blocked_channels: tuple[str, ...]
    blocked_countries: tuple[str, ...]
    source: str
    version: int


@dataclass(frozen=True, slots=True)
class Offer:
    """A product of a shop; of two records of it, the one with the later ``updated_at`` is newer."""

    id: str
    shop_id: str
    title: str
    url: str
    price: Money | None
    availability: str | None
    updated_at: str


@dataclass(frozen=True, slots=True)
class DeliveryTime:
    """A stated delivery time in days, with the text of the shop."""

    min_days: int
    max_days: int
    as_stated: str


@dataclass(frozen=True, slots=True)
class Shipping:
    """A shop's statement about shipping; destinations are countries or groups (EU, EEA, DACH, WORLDWIDE)."""

    shop_id: str
    destinations: tuple[str, ...] | None
    excluded: tuple[str, ...]
    destinations_exhaustive: bool
    delivery_time: DeliveryTime | None
    free_shipping_threshold: Money | None
    checked_at: str | None
    source: str | None


@dataclass(frozen=True, slots=True)
class TrustRow:
    """One measured signal. Source and time without a value: the check ran and found nothing (A8)."""

    shop_id: str
    kind: str
    value: str | tuple[str, ...] | None
    source: str | None
    checked_at: str | None


@dataclass(frozen=True, slots=True)
class AffiliateProgram:
    """A shop's programme with a network; ``{url}`` in the template takes the percent-encoded target."""

    shop_id: str
    network: str
    program_id: str
    url_template: str
    network_hosts: tuple[str, ...]
    commission_stated: str | None
    disclosure: str | None


@dataclass(frozen=True, slots=True)
class Redirect:
    """An observed redirect between two domains: evidence for merge audits."""

    from_domain: str
    to_domain: str
    observed_at: str
    source: str


@dataclass(frozen=True, slots=True)
class ResourceAccount:
    """The operator's account with an outside provider, for the operations endpoints."""

    provider: str
    account: str
    unit: str
    used: int
    limit: int | None
    resets_at: str | None
    status: str
    observed_at: str


@dataclass(frozen=True, slots=True)
class CategoryNames:
    """The names of a category: the display name, names by language tag, and synonyms."""

    slug: str
    name: str
    names: Mapping[str, str]
    synonyms: tuple[str, ...]


Record = Shop | Coupon | Offer | Shipping | TrustRow | AffiliateProgram | Redirect | ResourceAccount | CategoryNames
