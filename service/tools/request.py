"""Requests of tools: the types of their fields, shop references, absent and unknown fields, texts of errors (R1-R4).

A message continues the sentence after the field's name, and never repeats the value (E5).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from index_mappings.forms import query_forms
from index_mappings.hosts import MAX_REFERENCE
from index_mappings.text import is_blank
from index_mappings.values import ALLOWED_CODE, REPORTED_CODE_PATTERN, normal_code
from service.errors import FieldError, InvalidInputError
from shop_directory.search.bounds import MAX_LIMIT, MAX_QUERY, MAX_QUERY_WORDS, WHITE_SPACE, reduce_reference, spaced

OWN_ERROR: Final = "ours"
MAX_SHOPS: Final = 100
MAX_SHOPS_WITH_FACTS: Final = 20
MAX_OFFERS_OFFSET: Final = 100_000

_ALPHA_2: Final = re.compile("[A-Za-z]{2}")


def fault(message: str) -> PydanticCustomError:
    """An error of one field with our text; `message` continues the sentence after the field's name."""
    return PydanticCustomError(OWN_ERROR, "{message}", {"message": message})


def text(value: object) -> str:
    """Any string."""
    if not isinstance(value, str):
        raise fault("must be a string")
    return value


def country_code(value: object) -> str:
    """An assigned ISO 3166-1 alpha-2 code or XK, any case, in capitals (R4)."""
    code = text(value)
    if _ALPHA_2.fullmatch(code) is None or code.upper() not in COUNTRY_CODES:
        raise fault("must be an assigned ISO 3166-1 alpha-2 code, such as DE or GB, or XK")
    return code.upper()


def query_text(value: object) -> str:
    """A search query within M8's bounds."""
    query = spaced(text(value))
    if len(query) > MAX_QUERY:
        raise fault(f"may have at most {MAX_QUERY} characters")
    if len(query_forms(query).words) > MAX_QUERY_WORDS:
        raise fault(f"may have at most {MAX_QUERY_WORDS} words")
    return query


def whole_number(value: object) -> int:
    """A whole number as JSON has it: 50 and 50.0, but neither "50" nor true (M8)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise fault("must be a whole number")
    return int(value)


def number_between(least: int, most: int) -> Callable[[object], int]:
    """A check for a whole number within two bounds, both included."""

    def check(value: object) -> int:
        number = whole_number(value)
        if not least <= number <= most:
            raise fault(f"must be from {least} to {most:,}")
        return number

    return check


page_limit: Final = number_between(1, MAX_LIMIT)
# The number of a shop's offers to skip (A14).
offers_offset: Final = number_between(0, MAX_OFFERS_OFFSET)


def page_offset(value: object) -> int:
    """The number of results to skip."""
    offset = whole_number(value)
    if offset < 0:
        raise fault("must not be negative")
    return offset


def reference_text(value: object) -> str:
    """A shop id or a domain in any form people paste (R1)."""
    return _identifier(value, "a shop id or a domain")


def listed(most: int, what: str, **entries: Any) -> tuple[BeforeValidator, WithJsonSchema]:  # noqa: ANN401 - keywords of a schema
    """The check of a list's length, and its schema; each entry is checked separately. `what` names the entries."""

    def check(value: object) -> list[Any]:
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise fault(f"must be a list of 1 to {most} {what}")
        return value

    return BeforeValidator(check), WithJsonSchema({"type": "array", "items": entries, "minItems": 1, "maxItems": most})


def offer_id(value: object) -> str:
    """An offer's id; an id that no offer has is not an error here."""
    return _identifier(value, "an offer's id")


def _identifier(value: object, what: str) -> str:
    if value is None:
        raise fault(f"is required: {what}")
    name = text(value)
    if is_blank(name):
        raise fault("must not be blank")
    if len(name) > MAX_REFERENCE:
        raise fault(f"may have at most {MAX_REFERENCE:,} characters")
    return name


def coupon_code(value: object) -> str:
    """A coupon's code in NFC, trimmed; only the characters of codes are allowed, so no free text is possible (A9)."""
    if value is None:
        raise fault("is required: the code as it was tried")
    code = normal_code(text(value).strip())
    if code is None:
        raise fault(f"must be {ALLOWED_CODE}")
    return code


def one_of(names: Sequence[str]) -> tuple[PlainValidator, WithJsonSchema]:
    """The check that a value is one of these names, and its schema."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise fault(f"must be one of {', '.join(names)}")
        return value

    return PlainValidator(check), WithJsonSchema({"type": "string", "enum": list(names)})


def switch(value: object) -> bool:
    """True or false; no other value is converted."""
    if not isinstance(value, bool):
        raise fault("must be true or false")
    return value


def _checked(check: Callable[[object], object], **schema: Any) -> tuple[PlainValidator, WithJsonSchema]:  # noqa: ANN401 - keywords of a schema
    return PlainValidator(check), WithJsonSchema(schema)


# All number fields are optional, and null means that the field is absent (R3).
_NUMBER: Final = ["integer", "null"]

Text = Annotated[str, *_checked(text, type="string")]
CountryCode = Annotated[str, *_checked(country_code, type="string", pattern="^([A-Za-z]{2})?$")]
QueryText = Annotated[str, *_checked(query_text, type="string", maxLength=MAX_QUERY)]
PageLimit = Annotated[int, *_checked(page_limit, type=_NUMBER, minimum=1, maximum=MAX_LIMIT)]
PageOffset = Annotated[int, *_checked(page_offset, type=_NUMBER, minimum=0)]
# The type includes null, as a union would bypass reference_text, which reports a missing reference.
ReferenceText = Annotated[str | None, *_checked(reference_text, type=["string", "null"], maxLength=MAX_REFERENCE)]
RequiredReferenceText = Annotated[str, *_checked(reference_text, type="string", maxLength=MAX_REFERENCE)]
ReferenceList = Annotated[
    tuple[RequiredReferenceText, ...],
    *listed(MAX_SHOPS, "shop ids or domains", type="string", maxLength=MAX_REFERENCE),
]
ShortReferenceList = Annotated[
    tuple[RequiredReferenceText, ...],
    *listed(MAX_SHOPS_WITH_FACTS, "shop ids or domains", type="string", maxLength=MAX_REFERENCE),
]
OffersOffset = Annotated[int, *_checked(offers_offset, type=_NUMBER, minimum=0, maximum=MAX_OFFERS_OFFSET)]
OfferId = Annotated[str, *_checked(offer_id, type="string", minLength=1, maxLength=MAX_REFERENCE)]
Switch = Annotated[bool, *_checked(switch, type=["boolean", "null"])]
CodeText = Annotated[str, *_checked(coupon_code, type="string", pattern=REPORTED_CODE_PATTERN)]


_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_LINES: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# In these fields a tab or a line break is a space (E6).
_TYPED_TEXT: Final = frozenset({"query"})
# In these fields white space at the ends is trimmed, line breaks too (R1).
_REFERENCE_LIST: Final = "shop_domains"
REFERENCES: Final = frozenset({"shop_domain", "shop_id_or_domain", "from_shop_id", "to_shop_id", _REFERENCE_LIST})
_SHOWN_NAME: Final = 64
_SHOWN_ERRORS: Final = 20


class ToolRequest(BaseModel):
    """The base of all requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_absent(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        # null and "" in an optional field mean that it is absent (R3).
        fields = cls.model_fields
        return cls._complete(
            {
                name: value
                for name, value in arguments.items()
                if (value is not None and value != "") or name not in fields or fields[name].is_required()
            }
        )

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The fields in the order in which schemas and messages list them."""
        return tuple(cls.model_fields)

    @classmethod
    def alternatives(cls) -> tuple[dict[str, Any], ...]:
        """Alternative schemas for fields that depend on each other; MCP schemas leave them out (R2)."""
        return ()

    @classmethod
    def _complete(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with those that a subclass adds."""
        return arguments


class NoShopRequest(ToolRequest):
    """A request of a tool that takes no shop: the shop fields are accepted and ignored (R2)."""

    shop_domain: Text | None = Field(None, description="Ignored; accepted for older clients.")
    shop_id_or_domain: Text | None = Field(None, description="Ignored; accepted for older clients.")

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The fields, the ignored ones last."""
        return tuple(sorted(cls.model_fields, key=lambda name: name in NoShopRequest.model_fields))


class EitherShopRequest(ToolRequest):
    """A request in which a shop is named by either of two fields (R2)."""

    shop_domain: ReferenceText = Field(
        None,
        description="Required: domain, URL or id.",
        examples=["harbour-lane-books.example", "https://www.harbour-lane-books.example/new", "shop_0042"],
    )
    shop_id_or_domain: ReferenceText = Field(None, description="Former name of shop_domain.")

    @model_validator(mode="after")
    def _one_shop(self) -> Self:
        one, other = self.shop_domain, self.shop_id_or_domain
        if one is not None and other is not None and reduce_reference(one) != reduce_reference(other):
            raise fault("and shop_id_or_domain are two references, even if both name one shop; give one of them")
        return self

    @property
    def reference(self) -> str | None:
        """The reference to the shop as sent; None without one."""
        return self.shop_domain or self.shop_id_or_domain


class ShopRequest(EitherShopRequest):
    """A request about one shop."""

    @classmethod
    def _complete(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        # No field is required by itself; so a missing shop is reported together with all other errors.
        if "shop_domain" in arguments or "shop_id_or_domain" in arguments:
            return arguments
        if _REFERENCE_LIST in arguments and _REFERENCE_LIST in cls.model_fields:
            return arguments
        return {**arguments, "shop_domain": None}


class SeveralShopsRequest(EitherShopRequest):
    """A request in which a list may name several shops in place of one (F17)."""

    shop_domains: ShortReferenceList | None = Field(
        None,
        description="Several shops instead.",
        examples=[["harbour-lane-books.example", "shop_0042"]],
    )

    @classmethod
    def _complete(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        if "shop_domains" in arguments and arguments.keys() & EitherShopRequest.model_fields.keys():
            raise fault("and shop_domains are alternatives; give one of them")
        return super()._complete(arguments)

    @classmethod
    def alternatives(cls) -> tuple[dict[str, Any], ...]:
        """One shop or several."""
        absent = {"type": ["string", "null"], "maxLength": 0}
        one: dict[str, Any] = dict.fromkeys(EitherShopRequest.model_fields, absent)
        return {"properties": one}, {"properties": {"shop_domains": absent}}


RequestT = TypeVar("RequestT", bound=ToolRequest)


def validated(model: type[RequestT], arguments: object) -> RequestT:
    """Check the arguments of a call; raises InvalidInputError, which names every field that is wrong."""
    if not isinstance(arguments, dict):
        raise InvalidInputError("The arguments must be a JSON object.")
    errors = {error.field: error for error in _control_characters(arguments)}
    try:
        request = model.model_validate(arguments)
    except ValidationError as error:
        for found in _field_errors(error, model):
            errors.setdefault(found.field, found)
    if errors:
        raise invalid(tuple(errors.values()))
    return request


def invalid(errors: tuple[FieldError, ...]) -> InvalidInputError:
    """The error that names these fields, or the first twenty of them."""
    shown = errors[:_SHOWN_ERRORS]
    sentences = [f"{error.field} {error.message}".strip() + "." for error in shown]
    return InvalidInputError(" ".join(sentences), shown)


def shown_name(name: str) -> str:
    """A field name if it is short and printable, so that an error may repeat it; else a placeholder."""
    return name if 0 < len(name) <= _SHOWN_NAME and name.isprintable() else "(a field)"


def _field_errors(error: ValidationError, model: type[ToolRequest]) -> Iterator[FieldError]:
    allowed = ", ".join(model.field_names())
    for found in error.errors(include_url=False, include_input=False):
        # The only check of a whole request is that of its two shop fields.
        field = _field(found["loc"]) if found["loc"] else "shop_domain"
        match found["type"]:
            case "missing":
                yield FieldError(field, "is required")
            case "extra_forbidden":
                yield FieldError(field, f"is not a field of this tool; it takes {allowed}")
            case kind if kind == OWN_ERROR:
                yield FieldError(field, found["msg"])
            case _:
                yield FieldError(field, "is not valid")


def _field(path: tuple[int | str, ...]) -> str:
    """The name of a field, with the index of a list's entry: `shop_domains.3`."""
    name = shown_name(str(path[0]))
    return f"{name}.{path[1]}" if len(path) > 1 and isinstance(path[1], int) else name


def _parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """A field's value, or each entry of the list of references; references are trimmed."""
    if name not in REFERENCES:
        yield shown_name(name), value
    elif name == _REFERENCE_LIST and isinstance(value, list):
        for index, entry in enumerate(value):
            yield _field((name, index)), _trimmed(entry)
    else:
        yield name, _trimmed(value)


def _trimmed(value: object) -> object:
    return value.strip(WHITE_SPACE) if isinstance(value, str) else value


def _control_characters(arguments: dict[str, Any]) -> Iterator[FieldError]:
    for name, value in arguments.items():
        if isinstance(value, str) and value.isprintable() and name.isprintable():
            continue
        pattern = _CONTROL_IN_LINES if name in _TYPED_TEXT and isinstance(value, str) else _CONTROL
        for field, part in _parts(name, value):
            if _CONTROL.search(name) or any(pattern.search(text) for text in _strings(part)):
                yield FieldError(field, "holds a control character")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
