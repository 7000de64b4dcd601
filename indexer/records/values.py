"""Field types of related records: amounts, validity bounds, lists of countries and of destinations.

Amounts are decimal strings from the source to the wire (A2), so that none is ever rounded.
"""

import re
from datetime import UTC, datetime, time
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Final, Literal, Self

import pycountry
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from index_mappings.countries import COUNTRY_CODES, GROUPS, WORLDWIDE, is_destination_group
from index_mappings.coupon_codes import ALLOWED, PATTERN, normal_code
from indexer.records.shop import BY_LANGUAGE, ONE, SEVERAL, Name, StrictModel, assigned_countries, clean, rfc3339

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


def _currency(code: str) -> str:
    if code not in CURRENCIES:
        raise ValueError("must be an ISO 4217 currency code in capitals")
    return code


def _destinations(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(name in COUNTRY_CODES or is_destination_group(name) for name in names):
        raise ValueError("must hold assigned country codes and known groups, such as EU or WORLDWIDE")
    return tuple(dict.fromkeys(names))


def _one_or_several(value: object) -> str | None:
    if isinstance(value, str):
        return ONE
    return SEVERAL if isinstance(value, (list, tuple)) else None


def _code(text: str) -> str:
    code = normal_code(text)
    if code is None:
        raise ValueError(f"must be {ALLOWED}")
    return code


def _by_language(value: object) -> object:
    # This runs before the names are validated: a problem of a name is reported by its tag, which must be valid (V1).
    if isinstance(value, dict) and not all(map(_is_language_tag, value)):
        raise ValueError("must have language tags (BCP 47) such as de, pt-BR or zh-Hant as its keys")
    return value


def _listed_or_by_language(value: object) -> str | None:
    if isinstance(value, dict):
        return BY_LANGUAGE
    return SEVERAL if isinstance(value, (list, tuple)) else None


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
    Field(description=f"{ALLOWED[0].upper()}{ALLOWED[1:]}.", json_schema_extra={"pattern": PATTERN}),
    AfterValidator(_code),
]
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?$")]
Currency = Annotated[
    str,
    Field(description="An ISO 4217 currency code in capitals.", json_schema_extra={"pattern": "^[A-Z]{3}$"}),
    AfterValidator(_currency),
]
# Without WORLDWIDE: only a known country blocks (A5), so a code blocked everywhere would be blocked nowhere.
BlockedCountries = Annotated[
    tuple[str, ...],
    Field(
        strict=False,
        max_length=300,
        description="Assigned ISO 3166-1 alpha-2 codes and XK.",
        json_schema_extra={"items": {"type": "string", "pattern": "^[A-Z]{2}$"}},
    ),
    AfterValidator(assigned_countries),
]
Destinations = Annotated[
    tuple[str, ...],
    Field(
        strict=False,
        max_length=300,
        description=f"Assigned ISO 3166-1 alpha-2 codes, XK, and the groups {', '.join(GROUPS)} and {WORLDWIDE}.",
        json_schema_extra={
            "items": {"anyOf": [{"pattern": "^[A-Z]{2}$", "type": "string"}, {"enum": [*GROUPS, WORLDWIDE]}]}
        },
    ),
    AfterValidator(_destinations),
]
Label = Annotated[str, Field(max_length=300), AfterValidator(clean)]
# A discriminated union, so that an invalid value is reported for its own form only.
TrustValue = Annotated[
    Annotated[Label, Tag(ONE)] | Annotated[tuple[Label, ...], Field(strict=False, max_length=50), Tag(SEVERAL)],
    Discriminator(_one_or_several, custom_error_type="one_or_several", custom_error_message="wrong"),
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
    Discriminator(_listed_or_by_language, custom_error_type="listed_or_by_language", custom_error_message="wrong"),
]
Channels = Annotated[tuple[Literal["rest", "mcp", "stdio"], ...], Field(strict=False, max_length=3)]


class MoneyPart(StrictModel):
    """An amount of money."""

    amount: Amount
    currency: Currency


class DiscountPart(StrictModel):
    """What a coupon takes off."""

    kind: Literal["percent", "amount", "free_shipping", "other"]
    value: Amount | None = None
    currency: Currency | None = None

    @model_validator(mode="after")
    def _has_fields_of_its_kind(self) -> Self:
        if self.kind == "percent" and (self.value is None or Decimal(self.value) > _HUNDRED):
            raise ValueError("needs a value of at most 100 for a percentage")
        if self.kind == "amount" and (self.value is None or self.currency is None):
            raise ValueError("needs a value and a currency for an amount")
        return self


class DeliveryTimePart(StrictModel):
    """The delivery time as a shop states it."""

    min_days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    max_days: Annotated[int, Field(ge=0, le=1_000)] | None = None
    as_stated: Label | None = None
