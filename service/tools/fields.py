"""The types of the fields of requests, each with its check and its JSON Schema.

A message continues the sentence after the field's name, and never repeats the value (E5).
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from index_mappings.forms import query_forms
from index_mappings.hosts import MAX_REFERENCE
from index_mappings.text import is_blank
from index_mappings.values import ALLOWED_CODE, REPORTED_CODE_PATTERN, normal_code

MAX_QUERY: Final = 200
MAX_QUERY_WORDS: Final = 12
MAX_LIMIT: Final = 100
OWN_ERROR: Final = "ours"
MAX_SHOPS: Final = 100
MAX_OFFERS_OFFSET: Final = 100_000

_LINE_WHITE_SPACE: Final = str.maketrans("\t\r\n", "   ")
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


def spaced(value: str) -> str:
    """Text in which tabs and line breaks are spaces (E6)."""
    return value.translate(_LINE_WHITE_SPACE)


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


def reference_list(value: object) -> object:
    """A list of the length that is allowed for references; each entry is checked separately (A14)."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SHOPS:
        raise fault(f"must be a list of 1 to {MAX_SHOPS} shop ids or domains")
    return value


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


def choice(names: Sequence[str]) -> Callable[[object], str]:
    """A check that a value is one of these names."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise fault(f"must be one of {', '.join(names)}")
        return value

    return check


def switch(value: object) -> bool:
    """True or false; no other value is converted."""
    if not isinstance(value, bool):
        raise fault("must be true or false")
    return value


def ignored_text(value: object) -> None:
    """Any string; its value is ignored (R2)."""
    text(value)


def _whole_number_schema(**bounds: int) -> dict[str, Any]:
    # All number fields are optional, and null means that the field is absent (R3).
    return {"type": ["integer", "null"], **bounds}


Text = Annotated[str, PlainValidator(text), WithJsonSchema({"type": "string"})]
CountryCode = Annotated[
    str, PlainValidator(country_code), WithJsonSchema({"type": "string", "pattern": "^([A-Za-z]{2})?$"})
]
QueryText = Annotated[str, PlainValidator(query_text), WithJsonSchema({"type": "string", "maxLength": MAX_QUERY})]
PageLimit = Annotated[
    int, PlainValidator(page_limit), WithJsonSchema(_whole_number_schema(minimum=1, maximum=MAX_LIMIT))
]
PageOffset = Annotated[int, PlainValidator(page_offset), WithJsonSchema(_whole_number_schema(minimum=0))]
# The type includes null, as a union would bypass reference_text, which reports a missing reference.
ReferenceText = Annotated[
    str | None,
    PlainValidator(reference_text),
    WithJsonSchema({"type": ["string", "null"], "maxLength": MAX_REFERENCE}),
]
RequiredReferenceText = Annotated[
    str, PlainValidator(reference_text), WithJsonSchema({"type": "string", "maxLength": MAX_REFERENCE})
]
ReferenceList = Annotated[
    tuple[RequiredReferenceText, ...],
    BeforeValidator(reference_list),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "maxLength": MAX_REFERENCE},
            "minItems": 1,
            "maxItems": MAX_SHOPS,
        }
    ),
]
OffersOffset = Annotated[
    int, PlainValidator(offers_offset), WithJsonSchema(_whole_number_schema(minimum=0, maximum=MAX_OFFERS_OFFSET))
]
OfferId = Annotated[
    str, PlainValidator(offer_id), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_REFERENCE})
]
Switch = Annotated[bool, PlainValidator(switch), WithJsonSchema({"type": ["boolean", "null"]})]
CodeText = Annotated[
    str,
    PlainValidator(coupon_code),
    WithJsonSchema({"type": "string", "pattern": REPORTED_CODE_PATTERN}),
]
IgnoredText = Annotated[None, PlainValidator(ignored_text), WithJsonSchema({"type": "string"})]
