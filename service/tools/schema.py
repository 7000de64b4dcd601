"""JSON Schema (draft 2020-12) of requests and responses, flat: no references, no unions, nullable types as a list.

Hosts refuse tools whose schema has anyOf, oneOf or allOf at its root (R2).
"""

from typing import Any, Literal

from pydantic import BaseModel

from service.tools.request import ToolRequest

Schema = dict[str, Any]


def request_schema(model: type[ToolRequest]) -> Schema:
    """The schema of what a tool takes."""
    schema = _flat(model, "validation")
    return {**schema, "properties": {name: schema["properties"][name] for name in model.field_names()}}


def response_schema(model: type[BaseModel]) -> Schema:
    """The schema of what a tool answers."""
    return _flat(model, "serialization")


def _flat(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Schema:
    schema = model.model_json_schema(mode=mode)
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)
    flat = _without(schema, definitions)
    flat.pop("title", None)
    return {key: flat[key] for key in ("type", "properties", "required", "additionalProperties") if key in flat}


def _without(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """The schema without references, titles, defaults of null, and unions with null."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _without({**target, **beside}, definitions)
    if "anyOf" in schema:
        beside = {key: value for key, value in schema.items() if key != "anyOf"}
        options = [_without(option, definitions) for option in schema["anyOf"]]
        # Each option is of a type of its own, so what they demand can stand side by side.
        merged = {key: value for option in options for key, value in option.items()}
        if "enum" in merged and {"type": "null"} in options:
            merged["enum"] = [*merged["enum"], None]
        return _without({**merged, "type": [option["type"] for option in options], **beside}, definitions)
    return {
        key: _part(key, value, definitions)
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value is None)
    }


def _part(key: str, value: Any, definitions: dict[str, Schema]) -> Any:  # noqa: ANN401 - any part of a schema
    if key == "properties":
        return {name: _without(part, definitions) for name, part in value.items()}
    if key == "items" and isinstance(value, dict):
        return _without(value, definitions)
    return value
