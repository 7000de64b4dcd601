"""The shop record, the base of all records, and the reasons of failed validations.

A reason never repeats the invalid value, which may belong to a shop that is not public (V1).
"""

import re
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from index_mappings.countries import COUNTRY_CODES
from index_mappings.documents import WORLDWIDE
from index_mappings.hosts import reduce_host
from index_mappings.text import is_blank
from index_mappings.values import microseconds
from indexer.records.faults import FieldFault, RefusedRecordError
from indexer.records.urls import safe_url

# A host whose last label is a number is parsed as an IP address.
_HOST: Final = re.compile(
    r"^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.(?!(?:\d+|0x[0-9a-f]*)$)[a-z0-9_-]{1,63}$"
)
# Characters that are invisible or break a text: controls except the tab, line and paragraph separators, bidirectional
# overrides and isolates, halves of surrogate pairs, tags.
_FORBIDDEN: Final = re.compile(
    "[\0-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
# The kind of such a character, by the last character of its kind.
_FORBIDDEN_KINDS: Final = (
    ("\x9f", "a control character"),
    ("\u2029", "a line or paragraph separator"),
    ("\u2069", "a bidirectional override or isolate"),
    ("\udfff", "half of a surrogate pair"),
    ("\U000e007f", "an invisible tag character"),
)
# 50 shops of a page have one (A1).
_MAX_LOGO: Final = 300
_RFC3339: Final = re.compile(r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$")

# The names of a union's branches (one text, a list of texts, lists by language) in validation errors; not part of a
# field's path.
ONE: Final = "(one)"
SEVERAL: Final = "(several)"
BY_LANGUAGE: Final = "(by language)"

_REASONS: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field (--lenient passes over unknown fields)",
    "string_too_long": "is longer than {max_length} characters",
    "string_too_short": "must not be empty",
    "too_long": "has more than {max_length} entries",
    "too_short": "needs at least {min_length} entry",
    "string_type": "must be a string",
    "string_pattern_mismatch": "must match {pattern}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "float_type": "must be a number or null",
    "bool_type": "must be true, false or null",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "datetime_type": "must be a date and time as in RFC 3339",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le}",
    "one_or_several": "must be a string, a list of strings, or null",
    "listed_or_by_language": "must be a list of strings, or an object of such lists by language tag",
    "literal_error": "must be one of {expected}",
    "string_unicode": "holds characters that are not valid Unicode",
}


def clean(text: str) -> str:
    """The text, if it holds none of the characters that are refused in all texts."""
    found = _FORBIDDEN.search(text)
    if found is None:
        return text
    raise ValueError(f"holds {next(kind for last, kind in _FORBIDDEN_KINDS if found[0] <= last)}")


def not_blank(text: str) -> str:
    """The text, if it holds more than white space and is clean."""
    if is_blank(clean(text)):
        raise ValueError("must not be blank")
    return text


def _host(text: str) -> str:
    if _HOST.fullmatch(text) and "xn--" not in text and not text.startswith("www."):
        return text  # already reduced
    host = reduce_host(clean(text))
    if host is None or _HOST.fullmatch(host) is None:
        raise ValueError("must be a host name with at least two labels")
    return host


def _logo(text: str) -> str:
    url = safe_url(text)
    if url is None:
        raise ValueError("must be an https URL to a named host, without credentials or a port")
    if len(url.href) > _MAX_LOGO:
        raise ValueError(f"is longer than {_MAX_LOGO} characters as browsers write it")
    return url.href


def one_of(known: Collection[str], reason: str) -> AfterValidator:
    """Takes known values only."""

    def read(value: str) -> str:
        if value not in known:
            raise ValueError(reason)
        return value

    return AfterValidator(read)


def assigned_countries(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Assigned country codes, without repetitions."""
    if not COUNTRY_CODES.issuperset(codes):
        raise ValueError("must hold assigned ISO 3166-1 alpha-2 codes (or XK) in capitals")
    return tuple(dict.fromkeys(codes))


def country_list(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Assigned country codes without repetitions, or WORLDWIDE alone."""
    if WORLDWIDE not in codes:
        return assigned_countries(codes)
    if set(codes) != {WORLDWIDE}:
        raise ValueError("must be WORLDWIDE alone, or country codes")
    return (WORLDWIDE,)


def _each_slug_once(categories: tuple["CategoryRecord", ...]) -> tuple["CategoryRecord", ...]:
    first: dict[str, CategoryRecord] = {}
    for category in categories:
        first.setdefault(category.slug, category)
    return tuple(first.values())


def rfc3339(value: object) -> object:
    """The UTC time of an RFC 3339 text; None for None."""
    if value is None:
        return None
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    raise ValueError("must be a date and time as in RFC 3339")


RecordId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Name = Annotated[str, Field(max_length=300, json_schema_extra={"minLength": 1}), AfterValidator(not_blank)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,100}$")]
Host = Annotated[
    str,
    Field(max_length=2_048, description="A host name with at least two labels; a URL is reduced to its host."),
    AfterValidator(_host),
]
SourceText = Annotated[str, Field(max_length=2_048), AfterValidator(clean)]
Timestamp = Annotated[
    datetime | None, Field(description="A date and time as in RFC 3339, with its offset."), BeforeValidator(rfc3339)
]


def codes_field(description: str, **items: JsonValue) -> Any:  # noqa: ANN401 - what pydantic's Field returns
    """A list of codes, with what JSON Schema says of each."""
    return Field(strict=False, max_length=300, description=description, json_schema_extra={"items": items})


CountryCodes = Annotated[
    tuple[str, ...],
    codes_field(
        "Assigned ISO 3166-1 alpha-2 codes and XK, or WORLDWIDE alone; empty where nothing is stated.",
        type="string",
        pattern="^([A-Z]{2}|WORLDWIDE)$",
    ),
    AfterValidator(country_list),
]


class Order(NamedTuple):
    """The order of the records of a key: the greater is newer. `number` is a version, or microseconds since 1970."""

    kind: int
    number: int


# The kinds of order, the strongest last: a record with a version is newer than one without.
UNVERSIONED: Final = 0
UPDATED_AT: Final = 1
VERSION: Final = 2
NO_ORDER: Final = Order(UNVERSIONED, 0)
MAX_VERSION: Final = 2**63 - 1
# The field that states each kind.
ORDER_FIELDS: Final = (None, "updated_at", "version")


class StrictModel(BaseModel):
    """A frozen model without type coercion and unknown fields, whose errors hold no values."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    @property
    def fault(self) -> FieldFault | None:
        """What is wrong with the whole, if anything; a state of an earlier version may hold such records."""
        return None


AnyModel = TypeVar("AnyModel", bound=StrictModel)


class Record(StrictModel):
    """The base of all records. A record with a higher `version` or `updated_at` replaces an older one of its key."""

    key_fields: ClassVar[tuple[str, ...]] = ("id",)

    version: Annotated[int, Field(ge=0, le=MAX_VERSION)] | None = None
    updated_at: Timestamp = None

    @property
    def key(self) -> str:
        """What identifies the record among those of its type: its stated key fields, separated by slashes."""
        return "/".join(part for field in self.key_fields if (part := getattr(self, field)) is not None)

    @property
    def order(self) -> Order:
        """The order that the record states."""
        if self.version is not None:
            return Order(VERSION, self.version)
        return NO_ORDER if self.updated_at is None else Order(UPDATED_AT, microseconds(self.updated_at))


class CategoryRecord(StrictModel):
    """A category as a shop states it."""

    slug: Slug
    name: Name


# Lists are read as tuples; the domain and the checkout hosts are reduced (R1).
class ShopRecord(Record):
    """A shop. The one file that must exist."""

    id: RecordId
    name: Name
    domain: Host
    categories: Annotated[
        tuple[CategoryRecord, ...], Field(min_length=1, max_length=20, strict=False), AfterValidator(_each_slug_once)
    ]
    countries: CountryCodes = ()
    popularity: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    aliases: Annotated[tuple[Name, ...], Field(max_length=50, strict=False)] = ()
    checkout_hosts: Annotated[tuple[Host, ...], Field(max_length=50, strict=False)] = ()
    logo: (
        Annotated[
            str,
            Field(
                max_length=_MAX_LOGO,
                description="An https URL.",
                json_schema_extra={"pattern": "^[Hh][Tt]{2}[Pp][Ss]://"},
            ),
            AfterValidator(_logo),
        ]
        | None
    ) = None
    visibility: Literal["public", "under_review", "removed"]
    source: SourceText | None = None


def is_public(shop: ShopRecord) -> bool:
    """Whether the shop and its related records may be projected (V1).

    It is checked before anything else: a shop that is not public is given no domain, and nothing of it is projected.
    """
    return shop.visibility == "public"


def validated(model: type[AnyModel], value: object, *, lenient: bool) -> AnyModel:
    """The value as a model; a lenient reading ignores unknown fields. RefusedRecordError says what is wrong."""
    try:
        made = model.model_validate(value, extra="ignore" if lenient else None)
    except ValidationError as error:
        raise RefusedRecordError(*reasons(error)) from None
    if made.fault is not None:
        raise RefusedRecordError(made.fault)
    return made


def reasons(error: ValidationError) -> list[tuple[str, str]]:
    """The fields (as paths) and reasons of a failed validation, without any value."""
    details = error.errors(include_url=False, include_input=False)
    locations = {detail["loc"] for detail in details}
    found: dict[tuple[str, str], None] = {}
    for detail in details:
        # A list whose entries are all invalid is reported as too short as well, which would be misleading.
        if detail["type"] == "too_short" and any(loc[:-1] and detail["loc"] == loc[:1] for loc in locations):
            continue
        found[_path(detail["loc"]), _reason(detail["type"], detail.get("ctx", {}))] = None
    return list(found)


def _reason(kind: str, context: dict[str, Any]) -> str:
    if kind == "value_error":
        return str(context["error"])
    return _REASONS.get(kind, "has the wrong form").format_map(context)


def _path(location: tuple[int | str, ...]) -> str:
    # The name of an unknown field comes from the catalogue: it is repeated only if it looks like a name.
    parts = [
        str(part) if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", str(part)) else "(a name)"
        for part in location
        if part not in {ONE, SEVERAL, BY_LANGUAGE}
    ]
    return ".".join(parts) or "record"
