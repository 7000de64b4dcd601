"""The OpenAPI schema of a tool's input, which is stricter than the tool's MCP schema (R2, E6).

MCP hosts refuse unions at the root, and each character of a schema costs tokens, so tools/list omits these parts.
"""

from typing import Any, Final

from service.tools.request import REFERENCES, WHITE_SPACE, ShopRequest
from service.tools.schema import Schema, request_schema
from service.tools.tool import Tool

_NO_CONTROL: Final = r"^[^\u0000-\u001f\u007f-\u009f]*$"
# For texts in which a tab or a line break counts as a space (E6).
TYPED_TEXT: Final = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
_TYPED: Final = frozenset({"query"})
# White space at the ends of a reference is trimmed before it is checked (R1).
_ENDS: Final = "".join(f"\\u{ord(char):04x}" for char in WHITE_SPACE)
_REFERENCE: Final = rf"^[{_ENDS}]*[^\u0000-\u001f\u007f-\u009f]*[{_ENDS}]*$"
_SHOP_NAMES: Final = ("shop_domain", "shop_id_or_domain")


def input_schema(tool: Tool[Any]) -> Schema:
    """The schema of a tool's body."""
    schema = request_schema(tool.request)
    required = schema.get("required", ())
    properties = {
        name: _or_empty(_without_control(name, part), optional=name not in required)
        for name, part in schema["properties"].items()
    }
    either: Schema = {}
    if issubclass(tool.request, ShopRequest):
        # An empty name counts as absent (R3).
        given = {"type": "string", "minLength": 1}
        either = {"anyOf": [{"required": [name], "properties": {name: given}} for name in _SHOP_NAMES]}
    alternatives = list(tool.request.alternatives())
    dependent: Schema = {"allOf": [{"anyOf": alternatives}]} if alternatives else {}
    return {**schema, "properties": properties, **either, **dependent}


def _or_empty(part: Schema, *, optional: bool) -> Schema:
    """Let an optional field that is not a text be an empty text, too, which counts as absent (R3)."""
    if not optional or "string" in part.get("type", ()):
        return part
    annotations: Schema = {key: part[key] for key in ("description", "default", "examples") if key in part}
    rest = {key: value for key, value in part.items() if key not in annotations}
    return {**annotations, "anyOf": [rest, {"type": "string", "maxLength": 0}]}


def _without_control(name: str, part: Schema) -> Schema:
    """Forbid control characters in the texts of a part of a schema."""
    if "items" in part:
        return {**part, "items": _without_control(name, part["items"])}
    if "string" not in part.get("type", ()) or part.keys() & {"pattern", "enum", "const", "format"}:
        return part
    pattern = TYPED_TEXT if name in _TYPED else _REFERENCE if name in REFERENCES else _NO_CONTROL
    return {**part, "pattern": pattern}
