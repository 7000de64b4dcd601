"""The schemas of the OpenAPI document: what tools take, what /suggest and MCP exchange, and problem documents."""

from typing import Any, Final

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from service.errors import ServiceError, problem_type
from service.suggest.wire import DEFAULT_SUGGESTIONS, MAX_Q, MAX_SUGGESTIONS
from service.tools.list_categories import CategoryView
from service.tools.request import REFERENCES, WHITE_SPACE, ShopRequest
from service.tools.tool import Schema, Tool, ToolResponse, is_none, request_schema, response_schema

_NO_CONTROL: Final = r"^[^\u0000-\u001f\u007f-\u009f]*$"
# For texts in which a tab or a line break counts as a space (E6).
_TYPED_TEXT: Final = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
_TYPED: Final = frozenset({"query"})
# White space at the ends of a reference is trimmed before it is checked (R1).
_ENDS: Final = "".join(f"\\u{ord(char):04x}" for char in WHITE_SPACE)
_REFERENCE: Final = rf"^[{_ENDS}]*[^\u0000-\u001f\u007f-\u009f]*[{_ENDS}]*$"
_SHOP_NAMES: Final = ("shop_domain", "shop_id_or_domain")


class _FieldProblem(ToolResponse):
    field: str = Field(description="The field's name.")
    message: str = Field(description="What is wrong with it; goes on after the name.")


class _Problem(ToolResponse):
    type: str = Field(description="A stable URI of the code.", json_schema_extra={"format": "uri"})
    title: str = Field(description="The same text for every case of the code.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong in this case, and what to do.")
    code: str = Field(
        description="What programs go by.",
        json_schema_extra={"enum": [*sorted(error.code for error in ServiceError.__subclasses__())]},
    )
    errors: tuple[_FieldProblem, ...] | SkipJsonSchema[None] = Field(
        None, description="The fields of the input that are wrong.", exclude_if=is_none
    )


PROBLEM: Final[Schema] = {
    **response_schema(_Problem),
    "description": "A problem document (RFC 9457). It never repeats what was sent.",
    "examples": [
        {
            "type": problem_type("invalid_input"),
            "title": "Invalid input",
            "status": 400,
            "detail": "limit must be from 1 to 100.",
            "code": "invalid_input",
            "errors": [{"field": "limit", "message": "must be from 1 to 100"}],
        }
    ],
}


class _SuggestedShop(ToolResponse):
    id: str = Field(description="The directory's id of the shop.")
    name: str = Field(description="Display name.")
    domain: str = Field(description="The shop's domain.")
    category: str = Field(description="Slug of the primary category.")
    score: float = Field(description="The tier of its evidence, and within it the popularity.")


class _Suggestions(ToolResponse):
    query: str = Field(description="q as sent.")
    categories: tuple[CategoryView, ...] = Field(description="The categories whose name begins so.")
    shops: tuple[_SuggestedShop, ...] = Field(description="The shops, best first.")


SUGGESTIONS: Final = response_schema(_Suggestions)
SUGGEST_PARAMETERS: Final[list[Schema]] = [
    {
        "name": "q",
        "in": "query",
        "required": True,
        "description": "What has been typed so far; empty for the most popular.",
        "schema": {"type": "string", "maxLength": MAX_Q, "pattern": _TYPED_TEXT},
        "allowEmptyValue": True,
        "example": "lumn",
    },
    {
        "name": "limit",
        "in": "query",
        "description": "How many shops, and how many categories, to return at most.",
        # An empty value counts as absent (R3).
        "schema": {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_SUGGESTIONS},
                {"type": "string", "maxLength": 0},
            ],
            "default": DEFAULT_SUGGESTIONS,
        },
        "example": 3,
    },
    {
        "name": "country",
        "in": "query",
        "description": "Keep shops that sell in this country (ISO 3166-1 alpha-2), or do not state their markets. "
        "Among names that only begin with q, shops that are known to sell there come first.",
        "schema": {"type": "string", "pattern": "^([A-Za-z]{2})?$"},
        "example": "DE",
    },
]

RPC_REQUEST: Final[Schema] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"], "description": "Without it the message is a notification."},
        "method": {"type": "string"},
        "params": {"type": ["object", "null"]},
    },
    "required": ["jsonrpc", "method"],
}
RPC_RESPONSE: Final[Schema] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"], "description": "The request's; null where none could be read."},
        "result": {"type": "object"},
        "error": {
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
            "required": ["code", "message"],
        },
    },
    "required": ["jsonrpc", "id"],
    "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
}


def input_schema(tool: Tool[Any]) -> Schema:
    """The schema of a tool's body, which is stricter than the tool's MCP schema (R2, E6).

    MCP hosts refuse unions at the root, and each character of a schema costs tokens, so tools/list omits these parts.
    """
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
    pattern = _TYPED_TEXT if name in _TYPED else _REFERENCE if name in REFERENCES else _NO_CONTROL
    return {**part, "pattern": pattern}
