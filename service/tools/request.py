"""The base of all requests: unknown fields, absent values, shop references, and errors with our texts (R1-R3)."""

import re
from collections.abc import Iterator
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from index_mappings.hosts import has_dot, reduce_host
from service.errors import FieldError, InvalidInputError
from service.tools.fields import OWN_ERROR, IgnoredText, ReferenceText, fault

_SHOP_ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_LINES: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# In these fields a tab or a line break is a space (E6).
_TYPED_TEXT: Final = frozenset({"query"})
# In these fields white space at the ends is trimmed, line breaks too (R1).
_REFERENCE_LIST: Final = "shop_domains"
REFERENCES: Final = frozenset({"shop_domain", "shop_id_or_domain", "from_shop_id", "to_shop_id", _REFERENCE_LIST})
# Unicode's White_Space: the characters of `str.isspace` without four separators that are control characters.
WHITE_SPACE: Final = "".join(
    char for char in map(chr, range(0x3001)) if char.isspace() and not "\x1c" <= char <= "\x1f"
)
_SHOWN_NAME: Final = 64
_SHOWN_ERRORS: Final = 20


def reduce_reference(text: str) -> str | None:
    """Reduce a pasted reference to a shop (R1): text without a dot is an id and stays unchanged; other text is a host.

    None is for a text that can be neither an id nor a domain, and so names no shop.
    """
    trimmed = text.strip(WHITE_SPACE)
    if not has_dot(trimmed):
        return trimmed if _SHOP_ID.fullmatch(trimmed) else None
    host = reduce_host(trimmed)
    # A host of one label is no domain, and must not be read as an id: "shop_1." names no shop.
    return host if host is not None and "." in host else None


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

    shop_domain: IgnoredText | None = Field(
        None, description="Ignored: this tool takes no shop. Accepted for older clients."
    )
    shop_id_or_domain: IgnoredText | None = Field(
        None, description="Ignored: this tool takes no shop. Accepted for older clients."
    )

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The fields, the ignored ones last."""
        return tuple(sorted(cls.model_fields, key=lambda name: name in NoShopRequest.model_fields))


class EitherShopRequest(ToolRequest):
    """A request in which a shop is named by either of two fields (R2)."""

    shop_domain: ReferenceText = Field(
        None,
        description="Domain in any form, also a URL, or id. Required unless shop_id_or_domain is given.",
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
        # Neither field is required by itself; so a missing shop is reported together with all other errors.
        if "shop_domain" in arguments or "shop_id_or_domain" in arguments:
            return arguments
        return {**arguments, "shop_domain": None}

    @property
    def lookup(self) -> str | None:
        """The requested shop, as `reduce_reference` returns it."""
        return reduce_reference(self.reference or "")


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
