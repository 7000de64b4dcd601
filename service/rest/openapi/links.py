"""The links of the OpenAPI document: which answers hold what another tool asks for.

They are found in the schemas, so that a new tool is linked without a word about it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from service.tools.request import NoShopRequest
from service.tools.schema import Schema
from service.tools.tool import Tool

# By what an object is known, the request field that takes it, and the property to hand over.
_HANDLES: Final = (
    (frozenset({"id", "domain"}), "shop_domain", "id"),
    (frozenset({"slug", "count"}), "category", "slug"),
    (frozenset({"offer_id"}), "offer_id", "offer_id"),
)


def links(answer: Schema, tools: Sequence[Tool[Any]]) -> Schema:
    """The links of an answer.

    Args:
        answer: its schema.
        tools: those that may be called next.
    """
    found: dict[str, str] = {}
    for field, pointer in _handed_over(answer, ""):
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


def _handed_over(schema: Schema, pointer: str) -> Iterator[tuple[str, str]]:
    """Request fields with JSON pointers to their values, the outermost first."""
    properties: dict[str, Schema] = schema.get("properties", {})
    for known_by, field, handle in _HANDLES:
        if known_by <= properties.keys():
            yield field, f"{pointer}/{handle}"
    for name, part in properties.items():
        yield from _handed_over(part, f"{pointer}/{name}")
    if "items" in schema:
        yield from _handed_over(schema["items"], f"{pointer}/0")
