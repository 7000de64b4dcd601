"""The OpenAPI 3.1 document, generated from the registry of tools (O1)."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request

from service.errors import (
    BackendUnavailableError,
    InternalError,
    InvalidInputError,
    MethodNotAllowedError,
    NotReadyError,
    OverloadedError,
    QuotaExceededError,
    RouteNotFoundError,
    ServiceError,
    VersionUnknownError,
)
from service.http.compression import accepts_gzip, compressed
from service.http.messages import Answer, Endpoint, json_answer
from service.operations import ops_state_components
from service.rest.openapi.examples import recorded, with_examples
from service.rest.openapi.inputs import input_schema
from service.rest.openapi.links import links
from service.rest.openapi.operations import OPS_SECURITY_SCHEMES, operations_paths
from service.rest.openapi.parts import (
    ANSWER_HEADERS,
    DATA_HEADERS,
    HEALTH_SCHEMA,
    PROBLEM_SCHEMA,
    QUOTA_HEADERS,
    READY_SCHEMA,
    RPC_REQUEST_SCHEMA,
    RPC_RESPONSE_SCHEMA,
    SECURITY_SCHEMES,
    SUGGEST_PARAMETERS,
    SUGGEST_SCHEMA,
    TOKEN_OPTIONAL,
    TOKEN_REQUIRED,
    VERSION_SCHEMA,
    headers,
    problem,
    problems,
)
from service.tools.own_errors import COMMON, CREDENTIALS, own_errors
from service.tools.schema import response_schema
from service.tools.tool import TokenRule, Tool

VERSION: Final = "0.1.1"

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


def openapi_document(tools: Sequence[Tool[Any]], *, needs_ops_key: bool = False) -> dict[str, Any]:
    """The whole document of these tools, and of operations endpoints that may need a key."""
    return with_examples(_without_examples(tools, needs_ops_key=needs_ops_key), recorded())


def _without_examples(tools: Sequence[Tool[Any]], *, needs_ops_key: bool) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shop Directory", "version": VERSION, "description": _ABOUT},
        "paths": {
            **{f"/tool/{tool.name}": {"post": _tool_operation(tool, tools)} for tool in tools},
            "/suggest": {"get": _suggest_operation(tools)},
            "/mcp": {"post": _mcp_operation()},
            "/health": {"get": _probe("health", "Is it alive?", HEALTH_SCHEMA)},
            "/ready": {
                "get": _probe(
                    "ready", "Can it answer from data?", READY_SCHEMA, InternalError, NotReadyError, data=True
                )
            },
            "/version": {"get": _probe("version", "Which build runs?", VERSION_SCHEMA, VersionUnknownError)},
            **operations_paths(needs_key=needs_ops_key),
        },
        "components": {
            "schemas": {
                "Problem": PROBLEM_SCHEMA,
                "RpcRequest": RPC_REQUEST_SCHEMA,
                "RpcResponse": RPC_RESPONSE_SCHEMA,
                **ops_state_components(),
            },
            "headers": {**ANSWER_HEADERS, **DATA_HEADERS, **QUOTA_HEADERS},
            "securitySchemes": SECURITY_SCHEMES | (OPS_SECURITY_SCHEMES if needs_ops_key else {}),
        },
        "tags": [
            {"name": "tools", "description": "The tools, the same as over MCP."},
            {"name": "typeahead", "description": "Suggestions while somebody types."},
            {"name": "mcp", "description": "The Model Context Protocol."},
            {"name": "operations", "description": "What those who run the service ask."},
        ],
    }


def openapi_endpoint(document: dict[str, Any]) -> Endpoint:
    """GET /openapi.json: a constant answer."""
    plain = json_answer(document)
    packed = compressed(plain) or plain

    async def answer(request: Request) -> Answer:
        return packed if accepts_gzip(request.headers.raw) else plain

    return Endpoint(("GET", "HEAD"), answer)


def _tool_operation(tool: Tool[Any], tools: Sequence[Tool[Any]]) -> dict[str, Any]:
    body = input_schema(tool)
    answer = response_schema(tool.response)
    needs_token = tool.token is TokenRule.REQUIRED
    return {
        "operationId": tool.name,
        "tags": ["tools"],
        "security": TOKEN_REQUIRED if needs_token else TOKEN_OPTIONAL,
        "summary": tool.title,
        "description": f"{tool.description} {tool.note}".rstrip(),
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": headers(data=True, quota=True),
                "content": {"application/json": {"schema": answer}},
                "links": links(answer, tools),
            },
            **problems((*COMMON, *_not_found(tool), *own_errors(tool))),
            **(problems(CREDENTIALS) if needs_token else {}),
        },
    }


def _suggest_operation(tools: Sequence[Tool[Any]]) -> dict[str, Any]:
    caching = {
        "etag": {"schema": {"type": "string"}, "description": "Strong: the same tag, the same bytes."},
        "cache-control": {"schema": {"type": "string"}, "description": "public, max-age=3"},
    }
    return {
        "operationId": "suggest",
        "tags": ["typeahead"],
        "security": TOKEN_OPTIONAL,
        "summary": "Suggest shops and categories",
        "description": (
            "Shops and categories for what has been typed so far: beginnings first, typing errors forgiven, the "
            "popular before others. Parameters whose names begin with _ or utm_ are ignored; other unknown ones are "
            "errors. Any origin may call it."
        ),
        "parameters": SUGGEST_PARAMETERS,
        "responses": {
            "200": {
                "description": "The suggestions.",
                "headers": headers(data=True, quota=True) | caching,
                "content": {"application/json": {"schema": SUGGEST_SCHEMA}},
                "links": links(SUGGEST_SCHEMA, tools),
            },
            "304": {
                "description": "The caller's copy is still current.",
                "headers": headers(data=True, quota=True) | caching,
            },
            **problems(_SUGGEST_PROBLEMS),
        },
    }


def _mcp_operation() -> dict[str, Any]:
    response = {"application/json": {"schema": {"$ref": "#/components/schemas/RpcResponse"}}}
    refused = {"description": "Refused: a JSON-RPC error.", "content": response}
    # A problem document if the fault precedes the reading of the message.
    failed = problem(500, InternalError.code)
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
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/RpcRequest"},
                }
            },
        },
        "responses": {
            "200": {
                "description": "A JSON-RPC response.",
                "headers": headers(),
                "content": response,
            },
            "202": {"description": "A notification was taken.", "headers": headers()},
            **{str(status): refused | {"headers": headers()} for status in _MCP_REFUSALS},
            **problems((MethodNotAllowedError,)),
            "500": failed | {"content": response | failed["content"]},
        },
    }


def _not_found(tool: Tool[Any]) -> tuple[type[ServiceError], ...]:
    """The 404 of a path that is not exactly the tool's, for tools without a 404 of their own (I42)."""
    has_one = any(error.status == HTTPStatus.NOT_FOUND for error in own_errors(tool))
    return () if has_one else (RouteNotFoundError,)


def _probe(
    name: str, summary: str, schema: dict[str, Any], *errors: type[ServiceError], data: bool = False
) -> dict[str, Any]:
    return {
        "operationId": name,
        "tags": ["operations"],
        "summary": summary,
        "responses": {
            "200": {
                "description": "Yes." if summary.startswith(("Is", "Can")) else "The build.",
                "headers": headers(data=data),
                "content": {"application/json": {"schema": schema}},
            },
            **problems((MethodNotAllowedError, *errors)),
        },
    }
