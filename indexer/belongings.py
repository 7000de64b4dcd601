"""The catalogue's records that belong to a shop: coupons, offers, shipping, trust, programmes, and stated redirects.

Each has a key, by which a newer one replaces an older one, and an owner: the shop, or for a redirect its two domains.
"""

import re
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

import pycountry
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from index_mappings.countries import COUNTRY_CODES
from index_mappings.regions import is_destination_group
from indexer.checkout_urls import template_fault
from indexer.records import Host, Moment, Name, Record, RecordId, ShopRecord, Source, clean, country_list, rfc3339

CURRENCIES: Final = frozenset(currency.alpha_3 for currency in pycountry.currencies)

_DATE: Final = re.compile(r"^\d{4}-\d\d-\d\d$")
_END_OF_DAY: Final = time(23, 59, 59, tzinfo=UTC)
_START_OF_DAY: Final = time(0, 0, 0, tzinfo=UTC)
_HUNDRED: Final = Decimal(100)


def _bound(of_day: time) -> BeforeValidator:
    def read(value: object) -> object:
        if isinstance(value, str) and _DATE.fullmatch(value):
            try:
                return datetime.combine(datetime.fromisoformat(value), of_day)
            except ValueError:
                raise ValueError("must be a date, or a date and time as in RFC 3339") from None
        return rfc3339(value)

    return BeforeValidator(read)


def _currency(code: str) -> str:
    if code not in CURRENCIES:
        raise ValueError("must be an ISO 4217 currency code in capitals")
    return code


def _destinations(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(name in COUNTRY_CODES or is_destination_group(name) for name in names):
        raise ValueError("must hold assigned country codes and known groups, such as EU or WORLDWIDE")
    return tuple(dict.fromkeys(names))


Start = Annotated[datetime | None, _bound(_START_OF_DAY)]
End = Annotated[datetime | None, _bound(_END_OF_DAY)]
Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+*%!#&$/@-]{1,64}$")]
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?$")]
Currency = Annotated[str, AfterValidator(_currency)]
CountryCodes = Annotated[tuple[str, ...], Field(strict=False, max_length=300), AfterValidator(country_list)]
Destinations = Annotated[tuple[str, ...], Field(strict=False, max_length=300), AfterValidator(_destinations)]
Label = Annotated[str, Field(max_length=300), AfterValidator(clean)]
Channels = Annotated[tuple[Literal["rest", "mcp", "stdio"], ...], Field(strict=False, max_length=3)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)


class MoneyPart(_Part):
    """An amount of money."""

    amount: Amount
    currency: Currency


class DiscountPart(_Part):
    """What a coupon takes off."""

    kind: Literal["percent", "amount", "free_shipping", "other"]
    value: Amount | None = None
    currency: Currency | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "percent" and (self.value is None or Decimal(self.value) > _HUNDRED):
            raise ValueError("needs a value of at most 100 for a percentage")
        if self.kind == "amount" and (self.value is None or self.currency is None):
            raise ValueError("needs a value and a currency for an amount")
        return self


class DeliveryTimePart(_Part):
    """The delivery time as a shop states it."""

    min_days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    max_days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    as_stated: Label | None = None


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
    last_verified_at: Moment = None
    blocked_channels: Channels = ()
    blocked_countries: CountryCodes = ()
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
    checked_at: Moment = None
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
    value: Label | Annotated[tuple[Label, ...], Field(strict=False, max_length=50)] | None = None
    source: Source | None = None
    checked_at: Moment = None

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
    observed_at: Moment = None
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
    resets_at: Moment = None
    status: Label | None = None
    observed_at: Moment = None

    @property
    def key(self) -> str:
        """Provider and account."""
        return f"{self.provider}/{self.account}"


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
}
