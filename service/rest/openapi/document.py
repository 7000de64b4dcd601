"""The OpenAPI 3.1 document, generated from the registry of tools and the models of all other answers (O1).

Its examples of requests are those of the registry. The answers to the first one of each operation and to those of
several shops, and one of each error that is specific to a tool, are recorded from a service on the sample catalogue:
`make examples`.
"""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

import orjson
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.requests import Request

from service.errors import (
    BackendUnavailableError,
    FieldError,
    InternalError,
    InvalidInputError,
    MethodNotAllowedError,
    MisdirectedRequestError,
    NotReadyError,
    OpsKeyRequiredError,
    OverloadedError,
    QuotaExceededError,
    RouteNotFoundError,
    ServiceError,
    VersionUnknownError,
)
from service.http.compression import accepts_gzip, compressed
from service.http.messages import READING, Answer, Endpoint, json_answer
from service.identity import VERSION
from service.operations import SCHEMA_ID, ops_state_components
from service.rest.probes import Health, Ready, Version
from service.tools.list_categories import CategoryView
from service.tools.request import REFERENCES, ShopRequest, invalid
from service.tools.tool import (
    COMMON,
    CREDENTIALS,
    Schema,
    TokenRule,
    Tool,
    ToolResponse,
    is_none,
    request_schema,
    response_schema,
)
from shop_directory.search.bounds import DEFAULT_SUGGESTIONS, MAX_Q, MAX_SUGGESTIONS, WHITE_SPACE

EXAMPLES_FILE: Final = "examples.json"

_ABOUT: Final = (
    "A directory of online shops. Every tool is a POST with a JSON object; the same tools are served over MCP at "
    "POST /mcp. Errors are problem documents (RFC 9457). What is not known is null, empty or an error, and no verdict."
)
_SUGGEST_PROBLEMS: Final = (
    InvalidInputError, MethodNotAllowedError, QuotaExceededError, InternalError, BackendUnavailableError,
    NotReadyError, OverloadedError,
)  # fmt: skip
# Refusals of the MCP transport and of admission; each is a JSON-RPC error.
_MCP_REFUSALS: Final = (400, 401, 403, 404, 406, 413, 421, 429, 503)
_MCP_CALL: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "get_shipping_policy", "arguments": {"shop_domain": "kiefernhaus.internal", "country": "AT"}},
}
_OPERATORS_PROBLEMS: Final = (
    OpsKeyRequiredError, MethodNotAllowedError, MisdirectedRequestError, QuotaExceededError, InternalError,
)  # fmt: skip
_OPERATORS_ACCESS: Final = (
    "Where an operations key is configured it is required; elsewhere the call counts as a read, and its header Host "
    "must name the service's own machine unless the operator has opened the endpoint to others."
)

_TEXT: Final[Schema] = {"schema": {"type": "string"}}
_ANSWER_HEADERS: Final[Schema] = {
    "x-request-id": {**_TEXT, "description": "Name it to the operator when something goes wrong."}
}
_DATA_HEADERS: Final[Schema] = {
    "x-generation": {**_TEXT, "description": "The generation of the data that the answer comes from."},
    "x-data-as-of": {
        "schema": {"type": "string", "format": "date-time"},
        "description": "When that data was last changed.",
    },
}
_QUOTA_HEADERS: Final[Schema] = {
    "ratelimit-policy": {**_TEXT, "description": 'The quota: "reads";q=120;w=60 is 120 in 60 seconds.'},
    "ratelimit": {**_TEXT, "description": 'The remainder: "reads";r=119;t=12, more after 12 seconds.'},
}
_TOKEN_SCHEME: Final[Schema] = {
    "type": "apiKey",
    "in": "header",
    "name": "x-api-token",
    "description": "An API token, which the operator issues. Where it is optional it raises the quotas.",
}
_OPS_KEY_SCHEME: Final[Schema] = {
    "type": "apiKey",
    "in": "header",
    "name": "x-ops-key",
    "description": "The operations key, which the operator has configured.",
}
_TOKEN_REQUIRED: Final[list[Schema]] = [{"token": []}]
_TOKEN_OPTIONAL: Final[list[Schema]] = [{}, *_TOKEN_REQUIRED]
_STATUSES: Final = {
    400: "The input is not valid.",
    401: "The call has no valid token or operations key.",
    404: "There is no such thing in the directory.",
    405: "The path does not answer this method.",
    413: "The body is over 64 KiB.",
    415: "The body is not declared as JSON, or has a content-encoding.",
    421: "The header Host names another machine.",
    429: "The caller's quota is used up; wait as long as Retry-After says.",
    500: "The service failed.",
    503: "The service can't answer now; wait as long as Retry-After says.",
}
_RETRY_AFTER: Final[Schema] = {"retry-after": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
_STATUS_HEADERS: Final[dict[int, Schema]] = {
    401: {"www-authenticate": {**_TEXT, "description": "How to send a token."}},
    405: {"allow": {**_TEXT, "description": "The methods that there are."}},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}

_NO_CONTROL: Final = r"^[^\u0000-\u001f\u007f-\u009f]*$"
# For texts in which a tab or a line break counts as a space (E6).
_TYPED_TEXT: Final = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
_TYPED: Final = frozenset({"query"})
# White space at the ends of a reference is trimmed before it is checked (R1).
_ENDS: Final = "".join(f"\\u{ord(char):04x}" for char in WHITE_SPACE)
_GIVEN: Final[Schema] = {"type": "string", "minLength": 1}
_REFERENCE: Final = rf"^[{_ENDS}]*[^\u0000-\u001f\u007f-\u009f]*[{_ENDS}]*$"


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


_PROBLEM: Final[Schema] = {
    **response_schema(_Problem),
    "description": "A problem document (RFC 9457). It never repeats what was sent.",
    "examples": [invalid((FieldError("limit", "must be from 1 to 100"),)).problem()],
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


_SUGGESTIONS: Final = response_schema(_Suggestions)
_SUGGEST_PARAMETERS: Final[list[Schema]] = [
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

_RPC_REQUEST: Final[Schema] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"], "description": "Without it the message is a notification."},
        "method": {"type": "string"},
        "params": {"type": ["object", "null"]},
    },
    "required": ["jsonrpc", "method"],
}
_RPC_RESPONSE: Final[Schema] = {
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


def openapi_document(tools: Sequence[Tool[Any]], *, needs_ops_key: bool = False) -> dict[str, Any]:
    """The whole document of these tools, and of operations endpoints that may need a key."""
    schemes = {"token": _TOKEN_SCHEME} | ({"opsKey": _OPS_KEY_SCHEME} if needs_ops_key else {})
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Shop Directory", "version": VERSION, "description": _ABOUT},
        "paths": {
            **{f"/tool/{tool.name}": {"post": _tool_operation(tool)} for tool in tools},
            "/suggest": {"get": _suggest_operation()},
            "/mcp": {"post": _mcp_operation()},
            "/health": {"get": _probe("health", "Is it alive?", Health)},
            "/ready": {
                "get": _probe("ready", "Can it answer from data?", Ready, InternalError, NotReadyError, data=True)
            },
            "/version": {"get": _probe("version", "Which build runs?", Version, VersionUnknownError)},
            **_operators_paths(needs_key=needs_ops_key),
        },
        "components": {
            "schemas": {
                "Problem": _PROBLEM,
                "RpcRequest": _RPC_REQUEST,
                "RpcResponse": _RPC_RESPONSE,
                **ops_state_components(),
            },
            "headers": {**_ANSWER_HEADERS, **_DATA_HEADERS, **_QUOTA_HEADERS},
            "securitySchemes": schemes,
        },
        "tags": [
            {"name": "tools", "description": "The tools, the same as over MCP."},
            {"name": "typeahead", "description": "Suggestions while somebody types."},
            {"name": "mcp", "description": "The Model Context Protocol."},
            {"name": "operations", "description": "What those who run the service ask."},
        ],
    }
    return _with_recorded_answers(document)


def openapi_endpoint(document: dict[str, Any]) -> Endpoint:
    """GET /openapi.json: a constant answer."""
    plain = json_answer(document)
    packed = compressed(plain) or plain

    async def answer(request: Request) -> Answer:
        return packed if accepts_gzip(request.headers.raw) else plain

    return Endpoint(READING, answer)


def _with_recorded_answers(document: Schema) -> Schema:
    # Parts that several operations share become separate ones.
    document = orjson.loads(orjson.dumps(document))
    operations = {on["operationId"]: on for methods in document["paths"].values() for on in methods.values()}
    for example in orjson.loads(files(__package__).joinpath(EXAMPLES_FILE).read_bytes()):
        # An answer that is not described any more does not keep the service from starting, to record new ones.
        response = operations.get(example["operation"], {}).get("responses", {}).get(str(example["status"]), {})
        if content := response.get("content", {}).get(example["media_type"]):
            examples = content.setdefault("examples", {})
            examples[example["name"]] = {"summary": example["summary"], "value": example["answer"]}
    return document


def _tool_operation(tool: Tool[Any]) -> Schema:
    needs_token = tool.token is TokenRule.REQUIRED
    answers = [response_schema(model) for model in tool.responses]
    # The 404 of a path that is not exactly the tool's (I42).
    other = () if any(error.status == HTTPStatus.NOT_FOUND for error in tool.errors) else (RouteNotFoundError,)
    examples = {
        f"example_{number}": {"summary": example.summary, "value": example.arguments}
        for number, example in enumerate(tool.examples, start=1)
    }
    return {
        "operationId": tool.name,
        "tags": ["tools"],
        "security": _TOKEN_REQUIRED if needs_token else _TOKEN_OPTIONAL,
        "summary": tool.title,
        "description": f"{tool.description} {tool.note}".rstrip(),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": input_schema(tool), "examples": examples}},
        },
        "responses": {
            "200": _success(
                "The answer.", answers[0] if len(answers) == 1 else {"oneOf": answers}, data=True, quota=True
            ),
            **_problems((*COMMON, *other, *tool.errors)),
            **(_problems(CREDENTIALS) if needs_token else {}),
        },
    }


def _suggest_operation() -> Schema:
    caching = {
        "etag": {**_TEXT, "description": "Strong: the same tag, the same bytes."},
        "cache-control": {**_TEXT, "description": "public, max-age=3"},
    }
    response = _success("The suggestions.", _SUGGESTIONS, data=True, quota=True)
    headers = response["headers"] | caching
    return {
        "operationId": "suggest",
        "tags": ["typeahead"],
        "security": _TOKEN_OPTIONAL,
        "summary": "Suggest shops and categories",
        "description": (
            "Shops and categories for what has been typed so far: beginnings first, typing errors forgiven, the "
            "popular before others. Parameters whose names begin with _ or utm_ are ignored; other unknown ones are "
            "errors. Any origin may call it."
        ),
        "parameters": _SUGGEST_PARAMETERS,
        "responses": {
            "200": response | {"headers": headers},
            "304": {"description": "The caller's copy is still current.", "headers": headers},
            **_problems(_SUGGEST_PROBLEMS),
        },
    }


def _mcp_operation() -> Schema:
    request = {"$ref": "#/components/schemas/RpcRequest"}
    examples = {"example_1": {"summary": "A call of a tool", "value": _MCP_CALL}}
    response = {"$ref": "#/components/schemas/RpcResponse"}
    # A problem document if the fault precedes the reading of the message.
    failed = _problem(500, InternalError.code)
    failed["content"] = {"application/json": {"schema": response}, **failed["content"]}
    return {
        "operationId": "mcp",
        "tags": ["mcp"],
        "summary": "MCP over streamable HTTP",
        "description": (
            "One JSON-RPC message a request, answered as JSON. Protocol versions 2024-11-05 to 2026-07-28. The header "
            "x-api-token is that of the tools; a call of a tool that needs one and has none is a 401."
        ),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": request, "examples": examples}},
        },
        "responses": {
            "200": _success("A JSON-RPC response.", response),
            "202": {"description": "A notification was taken.", "headers": _headers()},
            **{str(status): _success("Refused: a JSON-RPC error.", response) for status in _MCP_REFUSALS},
            **_problems((MethodNotAllowedError,)),
            "500": failed,
        },
    }


def _probe(
    name: str, summary: str, answer: type[ToolResponse], *errors: type[ServiceError], data: bool = False
) -> Schema:
    yes = "Yes." if summary.startswith(("Is", "Can")) else "The build."
    return {
        "operationId": name,
        "tags": ["operations"],
        "summary": summary,
        "responses": {
            "200": _success(yes, response_schema(answer), data=data),
            **_problems((MethodNotAllowedError, *errors)),
        },
    }


def _operators_paths(*, needs_key: bool) -> Schema:
    state = (
        "Shop counts and freshness, catalogue sizes, flags, consumers and resource accounts. A part that is "
        "unavailable is reported with its reason, and the status is still 200. The body's JSON Schema "
        f"({SCHEMA_ID}) is also the file docs/ops-state.schema.json of the project."
    )
    resources = (
        "The operator's accounts with outside providers, in the Prometheus text format, or OpenMetrics where the "
        "header accept names it. 503 when they can't be read."
    )
    metrics = "What this service has counted, and how its parts do just now. docs/metrics.md of the project names each."
    exposition = {"text/plain": _TEXT, "application/openmetrics-text": _TEXT}
    state_schema = {"application/json": {"schema": {"$ref": "#/components/schemas/OpsState"}}}
    unavailable = BackendUnavailableError
    paths = {
        "/api/ops/state": _operators("ops_state", "How does the service do?", state, state_schema),
        "/metrics/resources": _operators(
            "metrics_resources", "The accounts, for Prometheus", resources, exposition, unavailable
        ),
        "/metrics": _operators("metrics", "The service's metrics, for Prometheus", metrics, exposition),
    }
    if needs_key:
        for path in paths.values():
            path["get"]["security"] = [{"opsKey": []}]
    return paths


def _operators(name: str, summary: str, description: str, content: Schema, *errors: type[ServiceError]) -> Schema:
    return {
        "get": {
            "operationId": name,
            "tags": ["operations"],
            "summary": summary,
            "description": f"{description} {_OPERATORS_ACCESS}",
            "responses": {
                "200": {"description": "The answer.", "headers": _headers(quota=True), "content": content},
                **_problems((*_OPERATORS_PROBLEMS, *errors)),
            },
        }
    }


def _headers(*, data: bool = False, quota: bool = False) -> Schema:
    """The headers of an answer, optionally with those of its data and of the quota."""
    names = [*_ANSWER_HEADERS, *(_DATA_HEADERS if data else ()), *(_QUOTA_HEADERS if quota else ())]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _success(description: str, schema: Schema, *, data: bool = False, quota: bool = False) -> Schema:
    return {
        "description": description,
        "headers": _headers(data=data, quota=quota),
        "content": {"application/json": {"schema": schema}},
    }


def _problem(status: int, *codes: str) -> Schema:
    """An error response, with all codes that the operation can return with this status."""
    schema: Schema = {
        "allOf": [{"$ref": "#/components/schemas/Problem"}],
        "properties": {"status": {"const": status}, "code": {"enum": list(codes)}},
    }
    code_list = ", ".join(f"`{code}`" for code in codes)
    return {
        "description": f"{_STATUSES[status]} {'Code' if len(codes) == 1 else 'Codes'}: {code_list}.",
        "headers": {**_headers(), **_STATUS_HEADERS.get(status, {})},
        "content": {"application/problem+json": {"schema": schema}},
    }


def _problems(errors: Iterable[type[ServiceError]]) -> Schema:
    """The error responses of an operation by status, from all errors that it can return."""
    by_status = sorted(errors, key=lambda error: error.status)
    return {
        str(status): _problem(status, *(error.code for error in of_status))
        for status, of_status in groupby(by_status, key=lambda error: error.status)
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
        given = {"shop_domains": {"type": "array"}}
        names = [name for name in tool.request.model_fields if name in REFERENCES]
        either = {"anyOf": [{"required": [name], "properties": {name: given.get(name, _GIVEN)}} for name in names]}
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
