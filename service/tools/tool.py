"""The definition of a tool, from which transports, pages and tests are made: its record, its schemas and its errors.

Schemas are JSON Schema (draft 2020-12), flat: no references, no unions, nullable types as a list. Hosts refuse tools
whose schema has anyOf, oneOf or allOf at its root (R2).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, Generic, Literal

from pydantic import BaseModel, ConfigDict

from service.errors import (
    BackendUnavailableError,
    BodyTooLargeError,
    InternalError,
    InvalidInputError,
    MethodNotAllowedError,
    NotReadyError,
    OverloadedError,
    QuotaExceededError,
    ServiceError,
    TokenInvalidError,
    TokenRequiredError,
    UnsupportedMediaTypeError,
)
from service.reports.protocol import ReportStore
from service.tools.request import RequestT, ToolRequest
from shop_directory.search.protocol import Snapshot

Schema = dict[str, Any]

COMMON: Final[tuple[type[ServiceError], ...]] = (
    InvalidInputError,
    MethodNotAllowedError,
    BodyTooLargeError,
    UnsupportedMediaTypeError,
    QuotaExceededError,
    InternalError,
    BackendUnavailableError,
    NotReadyError,
    OverloadedError,
)
CREDENTIALS: Final[tuple[type[ServiceError], ...]] = (TokenRequiredError, TokenInvalidError)
_KEYWORDS: Final = ("type", "properties", "required", "additionalProperties")


class TokenRule(StrEnum):
    """Whether a call needs an API token."""

    OPTIONAL = "optional"
    REQUIRED = "required"


BEYOND_THE_INTERFACE: Final = "This tool is beyond the interface: another service with the same interface may lack it."
BEYOND_SEVERAL: Final = (
    "shop_domains is beyond the interface: another service may lack it. A call with it counts as one read for each ten "
    "entries or a part of them."
)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All that a call of a tool may use; `now` is read once, and the whole answer comes from `search` (C2).

    The channel is the transport as display policies name it (A5), the country the caller's as a trusted proxy states
    it. `most_coupons` bounds the coupons of all shops for this transport; None is unlimited (A6). `source` is the id of
    the caller's token, under which reports are stored; None for an anonymous call (Q5).
    """

    search: Snapshot
    now: datetime
    channel: str
    country: str | None
    most_coupons: int | None
    reports: ReportStore
    source: str | None


class ToolResponse(BaseModel):
    """The base of all responses; field names or their aliases are those of the interface."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# The answer of a tool: the model that describes it, or the object that every transport sends.
ToolAnswer = ToolResponse | dict[str, Any]


def is_none(value: object) -> bool:
    """Whether a value is None; as `exclude_if` it leaves a field out of the answer."""
    return value is None


@dataclass(frozen=True, slots=True)
class Example:
    """A call for people to try."""

    summary: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool(Generic[RequestT]):
    """A tool, its route and its MCP name; the title is for people, the description also for models.

    `several` is the model of its answer to `shop_domains` if that differs. `run` raises `errors`, by their codes, and
    those of COMMON. The simplest one of `examples` is first. A tool that is not `read_only` has no more effect if an
    equal call is repeated. `extra_cost` gives the quota units of a valid call beyond the one that admission counts.
    `note` is shown to people only, in OpenAPI and on the page of the tools.
    """

    name: str
    title: str
    description: str
    request: type[RequestT]
    response: type[ToolResponse]
    token: TokenRule
    run: Callable[[RequestT, ToolContext], Awaitable[ToolAnswer]]
    examples: tuple[Example, ...]
    errors: tuple[type[ServiceError], ...] = ()
    read_only: bool = True
    extra_cost: Callable[[RequestT], int] | None = None
    note: str = ""
    several: type[ToolResponse] | None = None

    @property
    def responses(self) -> tuple[type[ToolResponse], ...]:
        """The models of its answers."""
        return (self.response,) if self.several is None else (self.response, self.several)


def request_schema(model: type[ToolRequest]) -> Schema:
    """The schema of a tool's arguments."""
    schema = _flat(model, "validation")
    return {**schema, "properties": {name: schema["properties"][name] for name in model.field_names()}}


def response_schema(model: type[BaseModel]) -> Schema:
    """The schema of a tool's answer."""
    return _flat(model, "serialization")


def _flat(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Schema:
    schema = _generated(model, mode)
    flat = _flattened({key: schema[key] for key in _KEYWORDS if key in schema}, schema.get("$defs", {}))
    return {key: flat[key] for key in _KEYWORDS if key in flat}


# OpenAPI and MCP describe the same models, which takes a tenth of a second each time.
@cache
def _generated(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Schema:
    return model.model_json_schema(mode=mode)


def _flattened(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """The schema without references, titles, defaults of null, and unions with null."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        return _flattened({**target, **siblings}, definitions)
    if "anyOf" in schema:
        siblings = {key: value for key, value in schema.items() if key != "anyOf"}
        options = [_flattened(option, definitions) for option in schema["anyOf"]]
        # The options have different types, so their keywords can be merged.
        merged = {key: value for option in options for key, value in option.items()}
        if "enum" in merged and {"type": "null"} in options:
            merged["enum"] = [*merged["enum"], None]
        return _flattened({**merged, "type": [option["type"] for option in options], **siblings}, definitions)
    return {
        key: _part(key, value, definitions)
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value is None)
    }


def _part(key: str, value: Any, definitions: dict[str, Schema]) -> Any:  # noqa: ANN401 - any part of a schema
    if key == "properties":
        return {name: _flattened(part, definitions) for name, part in value.items()}
    if key in {"items", "additionalProperties"} and isinstance(value, dict):
        return _flattened(value, definitions)
    return value
