"""The catalogue's records beside shops: coupons, offers, shipping, trust, programmes, redirects, accounts, categories.

Each has a key, by which a newer one replaces an older one. Most have an owner: the shop, or for a redirect its two
domains.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from indexer.records.checkout_urls import template_fault
from indexer.records.shop import CountryCodes, Host, Name, Record, RecordId, ShopRecord, Slug, Source, Timestamp, clean
from indexer.records.values import (
    BlockedCountries,
    Channels,
    Code,
    DeliveryTimePart,
    Destinations,
    DiscountPart,
    End,
    Label,
    LanguageNames,
    MoneyPart,
    Start,
    TrustValue,
)


class CouponRecord(Record):
    """A line of `coupons`."""

    id: RecordId
    shop_id: RecordId
    code: Code
    title: Name | None = None
    discount: DiscountPart | None = None
    min_order: MoneyPart | None = None
    countries: CountryCodes = ()
    valid_from: Start = None
    valid_until: End = None
    verification_status: Literal["verified_applied", "verified_rejected", "unverified"]
    last_verified_at: Timestamp = None
    blocked_channels: Channels = ()
    blocked_countries: BlockedCountries = ()
    source: Source | None = None

    @model_validator(mode="after")
    def _verified_at_some_time(self) -> Self:
        if self.verification_status != "unverified" and self.last_verified_at is None:
            raise ValueError(
                "needs last_verified_at where verification_status is verified_applied or verified_rejected"
            )
        return self

    @property
    def key(self) -> str:
        """The coupon's id."""
        return self.id


class OfferRecord(Record):
    """A line of `offers`. A URL that breaks A10's rules is no bad record: the offer has no checkout URL then."""

    id: RecordId
    shop_id: RecordId
    title: Name
    url: Annotated[str, Field(max_length=2_048), AfterValidator(clean)] | None = None
    price: MoneyPart | None = None
    availability: Literal["in_stock", "out_of_stock", "preorder", "discontinued"] | None = None

    @property
    def key(self) -> str:
        """The offer's id."""
        return self.id


class ShippingRecord(Record):
    """A line of `shipping`: one statement a shop."""

    shop_id: RecordId
    destinations: Destinations | None = None
    excluded: Destinations | None = None
    destinations_exhaustive: bool | None = None
    delivery_time: DeliveryTimePart | None = None
    free_shipping_threshold: MoneyPart | None = None
    checked_at: Timestamp = None
    source: Literal["policy_page", "structured_data"] | None = None

    @property
    def key(self) -> str:
        """The shop's id."""
        return self.shop_id


class TrustRecord(Record):
    """A line of `trust`: one kind of signal of a shop."""

    shop_id: RecordId
    kind: Literal[
        "tls_issuer", "tls_grade", "hosting_isp", "hosting_country", "domain_registered_at", "registrar",
        "payment_methods",
    ]  # fmt: skip
    value: TrustValue | None = None
    source: Source | None = None
    checked_at: Timestamp = None

    @property
    def key(self) -> str:
        """Shop and kind."""
        return f"{self.shop_id}/{self.kind}"

    @property
    def is_measured(self) -> bool:
        """Whether the check ran: it says where and when."""
        return bool(self.source) and self.checked_at is not None

    @property
    def is_present(self) -> bool:
        """Whether there is something to deliver."""
        return self.is_measured and bool(self.value)


class AffiliateProgramRecord(Record):
    """A line of `affiliate_programs`."""

    shop_id: RecordId
    network: Name
    program_id: Name
    url_template: Annotated[str, Field(max_length=2_048), AfterValidator(clean)]
    network_hosts: Annotated[tuple[Host, ...], Field(strict=False, min_length=1, max_length=50)]
    commission_stated: Label | None = None
    disclosure: Label | None = None

    @model_validator(mode="after")
    def _leads_to_the_network(self) -> Self:
        if fault := template_fault(self.url_template, self.network_hosts):
            raise ValueError(f"url_template {fault}")
        return self

    @property
    def key(self) -> str:
        """Shop and network."""
        return f"{self.shop_id}/{self.network}"


class RedirectRecord(Record):
    """A line of `redirects`: the source saw one domain lead to the other."""

    from_domain: Host
    to_domain: Host
    observed_at: Timestamp = None
    source: Source | None = None

    @property
    def key(self) -> str:
        """Both domains."""
        return f"{self.from_domain}/{self.to_domain}"


class ResourceAccountRecord(Record):
    """A line of `resource_accounts`: an account of the operator with an outside provider."""

    provider: Name
    account: Name
    unit: Label | None = None
    used: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    limit: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    resets_at: Timestamp = None
    status: Label | None = None
    observed_at: Timestamp = None

    @property
    def key(self) -> str:
        """Provider and account."""
        return f"{self.provider}/{self.account}"


class CategoryNamesRecord(Record):
    """A line of `categories`: what a category is called. It is shown only where a public shop carries the category."""

    slug: Slug
    name: Name | None = None
    names: LanguageNames | None = None
    synonyms: Annotated[tuple[Name, ...], Field(max_length=50, strict=False)] = ()

    @property
    def key(self) -> str:
        """The slug."""
        return self.slug

    @property
    def other_names(self) -> tuple[str, ...]:
        """Its names in other languages, and its synonyms."""
        return (*(self.names or {}).values(), *self.synonyms)


Belonging = CouponRecord | OfferRecord | ShippingRecord | TrustRecord | AffiliateProgramRecord
BELONGINGS: Final[dict[str, type[Belonging]]] = {
    "coupons": CouponRecord,
    "offers": OfferRecord,
    "shipping": ShippingRecord,
    "trust": TrustRecord,
    "affiliate_programs": AffiliateProgramRecord,
}

RECORDS: Final[dict[str, type[Record]]] = {
    "shops": ShopRecord,
    **BELONGINGS,
    "redirects": RedirectRecord,
    "resource_accounts": ResourceAccountRecord,
    "categories": CategoryNamesRecord,
}
