"""The catalogue's other records: coupons, offers, shipping, trust, programmes, redirects, accounts, categories.

Most of them belong to a shop, a redirect to its two domains.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from index_mappings.category_forms import ENGLISH, Named
from index_mappings.rank import newest_first_key
from index_mappings.timestamps import microseconds
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
    Synonyms,
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
    def _has_time_of_verification(self) -> Self:
        if self.verification_status != "unverified" and self.last_verified_at is None:
            raise ValueError(
                "needs last_verified_at where verification_status is verified_applied or verified_rejected"
            )
        return self


class OfferRecord(Record):
    """A line of `offers`. An offer whose URL breaks the rules of A10 is valid, but has no checkout URL."""

    id: RecordId
    shop_id: RecordId
    title: Name
    url: Annotated[str, Field(max_length=2_048), AfterValidator(clean)] | None = None
    price: MoneyPart | None = None
    availability: Literal["in_stock", "out_of_stock", "preorder", "discontinued"] | None = None

    @property
    def rank(self) -> str:
        """The sortable key of M11: the newest first."""
        return newest_first_key(None if self.updated_at is None else microseconds(self.updated_at), self.id)


class ShippingRecord(Record):
    """A line of `shipping`: one statement a shop."""

    key_fields = ("shop_id",)

    shop_id: RecordId
    destinations: Destinations | None = None
    excluded: Destinations | None = None
    destinations_exhaustive: bool | None = None
    delivery_time: DeliveryTimePart | None = None
    free_shipping_threshold: MoneyPart | None = None
    checked_at: Timestamp = None
    source: Literal["policy_page", "structured_data"] | None = None


class TrustRecord(Record):
    """A line of `trust`: one kind of signal of a shop."""

    key_fields = ("shop_id", "kind")

    shop_id: RecordId
    kind: Literal[
        "tls_issuer", "tls_grade", "hosting_isp", "hosting_country", "domain_registered_at", "registrar",
        "payment_methods",
    ]  # fmt: skip
    value: TrustValue | None = None
    source: Source | None = None
    checked_at: Timestamp = None

    @property
    def is_measured(self) -> bool:
        """Whether the check ran, that is, source and time are stated."""
        return bool(self.source) and self.checked_at is not None

    @property
    def is_present(self) -> bool:
        """Whether the check ran and has a value."""
        return self.is_measured and bool(self.value)


class AffiliateProgramRecord(Record):
    """A line of `affiliate_programs`."""

    key_fields = ("shop_id", "network")

    shop_id: RecordId
    network: Name
    program_id: Name
    url_template: Annotated[str, Field(max_length=2_048), AfterValidator(clean)]
    network_hosts: Annotated[tuple[Host, ...], Field(strict=False, min_length=1, max_length=50)]
    commission_stated: Label | None = None
    disclosure: Label | None = None

    @model_validator(mode="after")
    def _has_safe_template(self) -> Self:
        if fault := template_fault(self.url_template, self.network_hosts):
            raise ValueError(f"url_template {fault}")
        return self


class RedirectRecord(Record):
    """A line of `redirects`: the source saw that one domain redirects to the other."""

    key_fields = ("from_domain", "to_domain")

    from_domain: Host
    to_domain: Host
    observed_at: Timestamp = None
    source: Source | None = None


class ResourceAccountRecord(Record):
    """A line of `resource_accounts`: an account of the operator with an outside provider."""

    key_fields = ("provider", "account")

    provider: Name
    account: Name
    unit: Label | None = None
    used: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    limit: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    resets_at: Timestamp = None
    status: Label | None = None
    observed_at: Timestamp = None


class CategoryNamesRecord(Record):
    """A line of `categories`: the names of a category. They are shown only if a public shop carries the category."""

    key_fields = ("slug",)

    slug: Slug
    name: Name | None = None
    names: LanguageNames | None = None
    synonyms: Synonyms = ()

    @property
    def other_names(self) -> tuple[Named, ...]:
        """Its names in other languages, and its synonyms, each with its language."""
        by_language = self.synonyms if isinstance(self.synonyms, dict) else {ENGLISH: self.synonyms}
        synonyms = ((language, text) for language, texts in by_language.items() for text in texts)
        return (*(self.names or {}).items(), *synonyms)


RelatedRecord = CouponRecord | OfferRecord | ShippingRecord | TrustRecord | AffiliateProgramRecord
RELATED_RECORDS: Final[dict[str, type[RelatedRecord]]] = {
    "coupons": CouponRecord,
    "offers": OfferRecord,
    "shipping": ShippingRecord,
    "trust": TrustRecord,
    "affiliate_programs": AffiliateProgramRecord,
}

RECORDS: Final[dict[str, type[Record]]] = {
    "shops": ShopRecord,
    **RELATED_RECORDS,
    "redirects": RedirectRecord,
    "resource_accounts": ResourceAccountRecord,
    "categories": CategoryNamesRecord,
}


def _key_model(kind: str) -> type[Record]:
    fields, key_fields = RECORDS[kind].model_fields, RECORDS[kind].key_fields
    parts: dict[str, Any] = {field: (fields[field].annotation, fields[field]) for field in key_fields}
    model = create_model(f"{kind}_key", __base__=Record, **parts)
    model.key_fields = key_fields
    return model


# The key and the version of a record of each type, without its other fields.
KEYS: Final[dict[str, type[Record]]] = {kind: _key_model(kind) for kind in RECORDS}
