"""The schemas of `tools/list`: every rule of the input and the structure of the output, in few tokens.

A model reads the whole list before its first call. Repetitions, and details that the tool's description has, are only
in the OpenAPI document and in docs/tools.md.
"""

from typing import Any, Final

from service.tools.request import NoShopRequest
from service.tools.schema import Schema, request_schema, response_schema
from service.tools.shop_view import ShopView
from service.tools.tool import Tool

_SHOP: Final = frozenset(ShopView.model_fields)
# The tools whose schemas describe a shop in full; the others refer to them.
_FULL_SHOP_TOOLS: Final = frozenset({"find_shop", "get_shop"})
_STRUCTURE: Final = ("type", "enum", "const")


def input_schema(tool: Tool[Any]) -> Schema:
    """The schema of a tool's arguments.

    A tool that takes no shop still accepts the shop fields. They are not listed, so its schema is open (R2).
    """
    schema = request_schema(tool.request)
    ignored = NoShopRequest.model_fields if issubclass(tool.request, NoShopRequest) else {}
    properties = {
        name: {key: value for key, value in part.items() if key != "examples"}
        for name, part in schema["properties"].items()
        if name not in ignored
    }
    outline: Schema = {"type": "object", "properties": properties}
    if "required" in schema:
        outline["required"] = schema["required"]
    return outline if ignored else {**outline, "additionalProperties": False}


def output_schema(tool: Tool[Any]) -> Schema:
    """The structure of a tool's answer: names, types and fixed values.

    No field is required or forbidden, so that a new field breaks no client that validates by a cached list.
    """
    return _outline(response_schema(tool.response), full_shops=tool.name in _FULL_SHOP_TOOLS)


def _outline(schema: Schema, *, full_shops: bool) -> Schema:
    properties = schema.get("properties", {})
    outline: Schema = {key: schema[key] for key in _STRUCTURE if key in schema}
    if not full_shops and set(properties) == _SHOP:
        return {**outline, "description": "A shop as in find_shop."}
    if properties:
        outline["properties"] = {name: _outline(part, full_shops=full_shops) for name, part in properties.items()}
    if "items" in schema:
        outline["items"] = _outline(schema["items"], full_shops=full_shops)
    return outline
