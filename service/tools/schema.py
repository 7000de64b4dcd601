"""JSON Schema (draft 2020-12) of requests and responses, flat: no references, no unions, nullable types as a list.

Hosts refuse tools whose schema has anyOf, oneOf or allOf at its root (R2).
"""

from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel

from service.tools.request import ToolRequest

Schema = dict[str, Any]

_KEYWORDS: Final = ("type", "properties", "required", "additionalProperties")


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
    if key == "items" and isinstance(value, dict):
        return _flattened(value, definitions)
    return value
