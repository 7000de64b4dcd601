"""The catalogue's other records: coupons, offers, what shops state, trust, programmes, redirects, accounts, categories.

Most of them belong to a shop, a redirect to its two domains. Amounts are decimal strings from the source to the wire
(A2), so that none is ever rounded.
"""

import re
from datetime import UTC, datetime, time
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Final, Literal

import pycountry
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    field_validator,
)

from index_mappings.category_forms import ENGLISH, Named
from index_mappings.countries import COUNTRY_CODES, DESTINATIONS, GROUPS, WORLDWIDE
from index_mappings.tiers import newest_first_key
from index_mappings.values import ALLOWED_CODE, CODE_PATTERN, microseconds, normal_code
from indexer.records.faults import FieldFault
from indexer.records.shop import (
    BY_LANGUAGE,
    ONE,
    SEVERAL,
    CountryCodes,
    Host,
    Name,
    Record,
    RecordId,
    ShopRecord,
    Slug,
    SourceText,
    StrictModel,
    Timestamp,
    assigned_countries,
    clean,
    codes_field,
    not_blank,
    one_of,
    rfc3339,
)
from indexer.records.urls import template_fault

CURRENCIES: Final = frozenset(currency.alpha_3 for currency in pycountry.currencies)

_DATE: Final = re.compile(r"^\d{4}-\d\d-\d\d$")
_END_OF_DAY: Final = time(23, 59, 59, tzinfo=UTC)
_START_OF_DAY: Final = time(0, 0, 0, tzinfo=UTC)
_HUNDRED: Final = Decimal(100)
# The syntax of a tag (RFC 5646): language, script, region, variants, extensions, private use.
_LANGUAGE_TAG: Final = re.compile(
    "^(?=.{1,35}$)(?:[A-Za-z]{2,3}(?:-[A-Za-z]{3}){0,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?"
    "(?:-(?:[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(?:-[A-WYZa-wyz0-9](?:-[A-Za-z0-9]{2,8})+)*"
    "(?:-[Xx](?:-[A-Za-z0-9]{1,8})+)?|[Xx](?:-[A-Za-z0-9]{1,8})+)$"
)
_PRIVATE_USE: Final = "x"


def _bound(time_of_day: time) -> BeforeValidator:
    def read(value: object) -> object:
        try:
            if isinstance(value, str) and _DATE.fullmatch(value):
                return datetime.combine(datetime.fromisoformat(value), time_of_day)
            return rfc3339(value)
        except ValueError:
            raise ValueError("must be a date, or a date and time as in RFC 3339") from None

    return BeforeValidator(read)


def _bound_schema(bare: str) -> WithJsonSchema:
    forms: list[dict[str, object]] = [
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "null"},
    ]
    return WithJsonSchema({"anyOf": forms, "description": f"A date and time as in RFC 3339; a bare date {bare}."})


def _destinations(names: tuple[str, ...]) -> tuple[str, ...]:
    if not DESTINATIONS.issuperset(names):
        raise ValueError("must hold assigned country codes and known groups, such as EU or WORLDWIDE")
    return tuple(dict.fromkeys(names))


def _form_of(value: object) -> str | None:
    """The branch of a union that a value belongs to."""
    if isinstance(value, dict):
        return BY_LANGUAGE
    if isinstance(value, str):
        return ONE
    return SEVERAL if isinstance(value, (list, tuple)) else None


def _code(text: str) -> str:
    code = normal_code(text)
    if code is None:
        raise ValueError(f"must be {ALLOWED_CODE}")
    return code


def _by_language(value: object) -> object:
    # This runs before the names are validated: a problem of a name is reported by its tag, which must be valid (V1).
    if isinstance(value, dict) and not all(map(_is_language_tag, value)):
        raise ValueError("must have language tags (BCP 47) such as de, pt-BR or zh-Hant as its keys")
    return value


def _is_language_tag(tag: str) -> bool:
    """Whether the tag is well-formed and begins with a language of ISO 639 or with the private-use subtag."""
    if _LANGUAGE_TAG.fullmatch(tag) is None:
        return False
    language = tag.lower().partition("-")[0]
    return language == _PRIVATE_USE or language in _languages()


@cache
def _languages() -> frozenset[str]:
    """The thousands of two- and three-letter codes, loaded when the first record has names."""
    return frozenset(
        code
        for language in pycountry.languages
        for code in (getattr(language, "alpha_2", None), language.alpha_3)
        if code is not None
    )


Start = Annotated[datetime | None, _bound(_START_OF_DAY), _bound_schema("begins at 00:00:00Z")]
End = Annotated[datetime | None, _bound(_END_OF_DAY), _bound_schema("ends at 23:59:59Z")]
Code = Annotated[
    str,
    Field(description=f"{ALLOWED_CODE[0].upper()}{ALLOWED_CODE[1:]}.", json_schema_extra={"pattern": CODE_PATTERN}),
    AfterValidator(_code),
]
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?$")]
Currency = Annotated[
    str,
    Field(description="An ISO 4217 currency code in capitals.", json_schema_extra={"pattern": "^[A-Z]{3}$"}),
    one_of(CURRENCIES, "must be an ISO 4217 currency code in capitals"),
]
Country = Annotated[
    str,
    Field(description="An assigned ISO 3166-1 alpha-2 code, or XK.", json_schema_extra={"pattern": "^[A-Z]{2}$"}),
    one_of(COUNTRY_CODES, "must be an assigned ISO 3166-1 alpha-2 code (or XK) in capitals"),
]
# Without WORLDWIDE: only a known country blocks (A5), so a code blocked everywhere would be blocked nowhere.
BlockedCountries = Annotated[
    tuple[str, ...],
    codes_field("Assigned ISO 3166-1 alpha-2 codes and XK.", type="string", pattern="^[A-Z]{2}$"),
    AfterValidator(assigned_countries),
]
Destinations = Annotated[
    tuple[str, ...],
    codes_field(
        f"Assigned ISO 3166-1 alpha-2 codes, XK, and the groups {', '.join(GROUPS)} and {WORLDWIDE}.",
        anyOf=[{"pattern": "^[A-Z]{2}$", "type": "string"}, {"enum": [*GROUPS, WORLDWIDE]}],
    ),
    AfterValidator(_destinations),
]
Label = Annotated[str, Field(max_length=300), AfterValidator(clean)]
# A discriminated union, so that an invalid value is reported for its own form only.
TrustValue = Annotated[
    Annotated[Label, Tag(ONE)] | Annotated[tuple[Label, ...], Field(strict=False, max_length=50), Tag(SEVERAL)],
    Discriminator(_form_of, custom_error_type="one_or_several", custom_error_message="wrong"),
]
_BY_TAG: Final[dict[str, Any]] = {
    "max_length": 100,
    "description": "By language tag (BCP 47), such as de, pt-BR or zh-Hant.",
    "json_schema_extra": {"propertyNames": {"pattern": _LANGUAGE_TAG.pattern}},
}
LanguageNames = Annotated[dict[str, Name], Field(**_BY_TAG), BeforeValidator(_by_language)]
_Texts = Annotated[tuple[Name, ...], Field(max_length=50, strict=False)]
# A discriminated union, as above.
Synonyms = Annotated[
    Annotated[_Texts, Tag(SEVERAL)]
    | Annotated[dict[str, _Texts], Field(**_BY_TAG), BeforeValidator(_by_language), Tag(BY_LANGUAGE)],
    Discriminator(_form_of, custom_error_type="listed_or_by_language", custom_error_message="wrong"),
]
Channels = Annotated[tuple[Literal["rest", "mcp", "stdio"], ...], Field(strict=False, max_length=3)]


class MoneyPart(StrictModel):
    """An amount of money."""

    amount: Amount
    currency: Currency


# The fields that a discount of a kind must have.
_DISCOUNT_FIELDS: Final[dict[str | None, tuple[str, ...]]] = {"percent": ("value",), "amount": ("value", "currency")}


class DiscountPart(StrictModel):
    """What a coupon takes off."""

    kind: Literal["percent", "amount", "free_shipping", "other"]
    value: Annotated[Amount | None, Field(validate_default=True)] = None
    currency: Annotated[Currency | None, Field(validate_default=True)] = None

    @field_validator("value", "currency")
    @classmethod
    def _fits_the_kind(cls, value: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("kind")
        if value is None and info.field_name in _DISCOUNT_FIELDS.get(kind, ()):
            raise ValueError(f"must be given where kind is {kind}")
        if value is not None and (kind, info.field_name) == ("percent", "value") and Decimal(value) > _HUNDRED:
            raise ValueError("must be at most 100 where kind is percent")
        return value


class DeliveryTimePart(StrictModel):
    """The delivery time as a shop states it."""

    min_days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    max_days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    as_stated: Label | None = None


class CouponRecord(Record):
    """A coupon code of a shop."""

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
    last_verified_at: Annotated[Timestamp, Field(validate_default=True)] = None
    blocked_channels: Channels = ()
    blocked_countries: BlockedCountries = ()
    source: SourceText | None = None

    @field_validator("last_verified_at")
    @classmethod
    def _fits_the_verification(cls, at: datetime | None, info: ValidationInfo) -> datetime | None:
        if at is None and info.data.get("verification_status", "unverified") != "unverified":
            raise ValueError("must be given where verification_status is verified_applied or verified_rejected")
        return at


# An offer whose URL breaks the rules of A10 is valid, but has no checkout URL.
class OfferRecord(Record):
    """A product that a shop sells, with its price and URL."""

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


# The fields of which a shipping statement has one or more, with what JSON Schema says of each.
SHIPPING_FIELDS: Final[dict[str, tuple[str, dict[str, JsonValue]]]] = {
    "destinations": ("array", {"minItems": 1}),
    "excluded": ("array", {"minItems": 1}),
    "delivery_time": ("object", {"minProperties": 1}),
    "free_shipping_threshold": ("object", {}),
}


class ShippingRecord(Record):
    """Where a shop ships to and on which terms: at most one statement a shop."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": kind, **least}}}
                for name, (kind, least) in SHIPPING_FIELDS.items()
            ]
        }
    )
    key_fields = ("shop_id",)

    shop_id: RecordId
    destinations: Destinations | None = None
    excluded: Destinations | None = None
    destinations_exhaustive: bool | None = None
    delivery_time: DeliveryTimePart | None = None
    free_shipping_threshold: MoneyPart | None = None
    checked_at: Timestamp = None
    source: Literal["policy_page", "structured_data"] | None = None

    @property
    def fault(self) -> FieldFault | None:
        """A statement without any of the fields that callers ask for is not a statement (A7)."""
        time = self.delivery_time
        says_when = time is not None and (time.min_days, time.max_days, time.as_stated) != (None, None, None)
        return (
            None
            if says_when or self.destinations or self.excluded or self.free_shipping_threshold
            else (None, f"states nothing: it needs one of {', '.join(SHIPPING_FIELDS)}")
        )


# The fields that callers see of each kind; the first one is required.
POLICY_FIELDS: Final = {
    "returns": ("category", "days", "counted_from", "fees", "methods", "countries", "as_stated"),
    "payment_methods": ("methods", "as_stated"),
    "buyer_protection": ("as_stated",),
}
# The fields that returns of a category may not have.
_NOT_WITH_CATEGORY: Final[dict[str | None, tuple[str, ...]]] = {
    "unlimited": ("days", "counted_from"),
    "not_permitted": ("days", "counted_from", "fees", "methods"),
}
# After schema.org's ReturnMethodEnumeration.
RETURN_METHODS: Final = frozenset({"by_mail", "in_store", "at_kiosk", "keep_product"})


class PolicyRecord(Record):
    """What a shop states about returns, payment methods or buyer protection: for one country, or without one."""

    key_fields = ("shop_id", "kind", "country")

    shop_id: RecordId
    kind: Literal["returns", "payment_methods", "buyer_protection"]
    country: Country | None = None
    category: Annotated[Literal["finite", "unlimited", "not_permitted"] | None, Field(validate_default=True)] = None
    days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    counted_from: Literal["delivered", "ordered"] | None = None
    fees: Literal["free", "paid", "unknown"] | None = None
    methods: Annotated[tuple[Name, ...], Field(strict=False, max_length=50, validate_default=True)] = ()
    countries: CountryCodes = ()
    as_stated: Annotated[Name | None, Field(validate_default=True)] = None
    source: Annotated[str, Field(min_length=1, max_length=2_048), AfterValidator(not_blank)]
    checked_at: Annotated[
        datetime, Field(description="A date and time as in RFC 3339, with its offset."), BeforeValidator(rfc3339)
    ]

    @field_validator(*POLICY_FIELDS["returns"])
    @classmethod
    def _fits_kind_and_category(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - of any field
        kind, category, field = info.data.get("kind"), info.data.get("category"), info.field_name
        if kind is None:
            return value  # it is wrong itself
        if value in (None, ()):
            if field == POLICY_FIELDS[kind][0]:
                raise ValueError(f"must be given where kind is {kind}")
        elif field not in POLICY_FIELDS[kind]:
            raise ValueError(f"must not be given where kind is {kind}")
        elif field in _NOT_WITH_CATEGORY.get(category, ()):
            raise ValueError(f"must not be given where category is {category}")
        elif (kind, field) == ("returns", "methods") and not RETURN_METHODS.issuperset(value):
            raise ValueError(f"must be of {', '.join(sorted(RETURN_METHODS))} where kind is returns")
        return value


class TrustRecord(Record):
    """One measured fact about a shop's site."""

    key_fields = ("shop_id", "kind")

    shop_id: RecordId
    kind: Literal[
        "tls_issuer", "tls_grade", "hosting_isp", "hosting_country", "domain_registered_at", "registrar",
        "payment_methods",
    ]  # fmt: skip
    value: TrustValue | None = None
    source: SourceText | None = None
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
    """How links to a shop's offers are monetised in one network."""

    key_fields = ("shop_id", "network")

    shop_id: RecordId
    network: Name
    program_id: Name
    network_hosts: Annotated[tuple[Host, ...], Field(strict=False, min_length=1, max_length=50)]
    url_template: Annotated[str, Field(max_length=2_048), AfterValidator(clean)]
    commission_stated: Label | None = None
    disclosure: Label | None = None

    @field_validator("url_template")
    @classmethod
    def _is_safe(cls, template: str, info: ValidationInfo) -> str:
        if fault := template_fault(template, info.data.get("network_hosts")):
            raise ValueError(fault)
        return template


class RedirectRecord(Record):
    """One domain that was seen to lead to another one."""

    key_fields = ("from_domain", "to_domain")

    from_domain: Host
    to_domain: Host
    observed_at: Timestamp = None
    source: SourceText | None = None


class ResourceAccountRecord(Record):
    """An account of the operator with an outside provider, for the operations endpoints."""

    key_fields = ("provider", "account")

    provider: Name
    account: Name
    unit: Label | None = None
    used: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    limit: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    resets_at: Timestamp = None
    status: Label | None = None
    observed_at: Timestamp = None


# The names are shown only if a public shop carries the category.
class CategoryNamesRecord(Record):
    """What a category is called: its display name, its names in other languages, synonyms."""

    key_fields = ("slug",)

    slug: Slug
    name: Name | None = None
    names: LanguageNames | None = None
    synonyms: Synonyms = ()

    @property
    def other_names(self) -> tuple[Named, ...]:
        """Its names in other languages, each with its language."""
        return tuple((self.names or {}).items())

    @property
    def stated_synonyms(self) -> tuple[Named, ...]:
        """Its synonyms, each with its language."""
        by_language = self.synonyms if isinstance(self.synonyms, dict) else {ENGLISH: self.synonyms}
        return tuple((language, text) for language, texts in by_language.items() for text in texts)


RelatedRecord = CouponRecord | OfferRecord | ShippingRecord | PolicyRecord | TrustRecord | AffiliateProgramRecord
RELATED_RECORDS: Final[dict[str, type[RelatedRecord]]] = {
    "coupons": CouponRecord,
    "offers": OfferRecord,
    "shipping": ShippingRecord,
    "policies": PolicyRecord,
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
