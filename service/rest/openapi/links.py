"""The links of the OpenAPI document, from values in an answer to request fields of other tools.

They are derived from the schemas, so a new tool needs no declaration.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from service.tools.request import NoShopRequest
from service.tools.schema import Schema
from service.tools.tool import Tool

# The properties that identify a kind of object, the request field that takes it, and the property with its value.
_LINKED: Final = (
    (frozenset({"id", "domain"}), "shop_domain", "id"),
    (frozenset({"slug", "count"}), "category", "slug"),
    (frozenset({"offer_id"}), "offer_id", "offer_id"),
)


def links(answer: Schema, tools: Sequence[Tool[Any]]) -> Schema:
    """The links of an answer to these tools."""
    found: dict[str, str] = {}
    for field, pointer in _linked_values(answer, ""):
        found.setdefault(field, pointer)
    return {
        f"{tool.name}_by_{field}": {
            "operationId": tool.name,
            "requestBody": {**tool.examples[0].arguments, field: f"$response.body#{pointer}"},
        }
        for field, pointer in found.items()
        for tool in tools
        if _takes(tool, field)
    }


def _takes(tool: Tool[Any], field: str) -> bool:
    ignored = issubclass(tool.request, NoShopRequest) and field in NoShopRequest.model_fields
    return field in tool.request.model_fields and not ignored


def _linked_values(schema: Schema, pointer: str) -> Iterator[tuple[str, str]]:
    """Request fields with JSON pointers to their values, outermost first."""
    properties: dict[str, Schema] = schema.get("properties", {})
    for identifying, field, value in _LINKED:
        if identifying <= properties.keys():
            yield field, f"{pointer}/{value}"
    for name, part in properties.items():
        yield from _linked_values(part, f"{pointer}/{name}")
    if "items" in schema:
        yield from _linked_values(schema["items"], f"{pointer}/0")
