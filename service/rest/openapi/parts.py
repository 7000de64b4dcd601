"""The parts of the OpenAPI document that do not come from a tool: problems, headers, /suggest and the probes."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from service.errors import ServiceError, problem_type
from service.rest.openapi.inputs import TYPED_TEXT
from service.suggest.query import DEFAULT_SUGGESTIONS, MAX_Q, MAX_SUGGESTIONS

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


PROBLEM_SCHEMA: Final[Schema] = {
    "type": "object",
    "description": "A problem document (RFC 9457). It never repeats what was sent.",
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "A stable URI of the code."},
        "title": {"type": "string", "description": "The same text for every case of the code."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What is wrong in this case, and what to do."},
        "code": {
            "type": "string",
            "enum": sorted(error.code for error in ServiceError.__subclasses__()),
            "description": "What programs go by.",
        },
        "errors": {
            **_list_of(
                _object(
                    field={"type": "string", "description": "The field's name."},
                    message={"type": "string", "description": "What is wrong with it; goes on after the name."},
                )
            ),
            "description": "The fields of the input that are wrong.",
        },
    },
    "required": ["type", "title", "status", "detail", "code"],
    "additionalProperties": False,
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

ANSWER_HEADERS: Final[Schema] = {
    "x-request-id": {"schema": _TEXT, "description": "Name it to the operator when something goes wrong."}
}
DATA_HEADERS: Final[Schema] = {
    "x-generation": {"schema": _TEXT, "description": "The generation of the data that the answer comes from."},
    "x-data-as-of": {
        "schema": {"type": "string", "format": "date-time"},
        "description": "When that data was last changed.",
    },
}

SUGGEST_PARAMETERS: Final[list[Schema]] = [
    {
        "name": "q",
        "in": "query",
        "required": True,
        "description": "What has been typed so far; empty for the most popular.",
        "schema": {"type": "string", "maxLength": MAX_Q, "pattern": TYPED_TEXT},
        "allowEmptyValue": True,
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
    },
    {
        "name": "country",
        "in": "query",
        "description": "Keep shops that sell in this country (ISO 3166-1 alpha-2), or do not state their markets. "
        "Among names that only begin with q, shops that are known to sell there come first.",
        "schema": {"type": "string", "pattern": "^([A-Za-z]{2})?$"},
    },
]

SUGGEST_SCHEMA: Final[Schema] = _object(
    query={"type": "string", "description": "q as sent."},
    categories=_list_of(
        _object(
            category={"type": "string", "description": "Display name."},
            slug=_TEXT,
            count={"type": "integer", "description": "How many shops carry it."},
        )
    ),
    shops=_list_of(
        _object(
            id=_TEXT,
            name=_TEXT,
            domain=_TEXT,
            category={"type": "string", "description": "Slug of the primary category."},
            score={"type": "number", "description": "The tier of its evidence, and within it the popularity."},
        )
    ),
)

HEALTH_SCHEMA: Final[Schema] = _object(status={"const": "ok"})
READY_SCHEMA: Final[Schema] = _object(
    status={"enum": ["ready", "degraded"]},
    checks=_list_of(
        {
            "type": "object",
            "properties": {
                "name": _TEXT,
                "status": {"enum": ["ok", "degraded"]},
                "reason": {"type": "string", "description": "Why it is degraded, in plain language; absent when ok."},
            },
            "required": ["name", "status"],
            "additionalProperties": False,
        }
    ),
)
VERSION_SCHEMA: Final[Schema] = _object(
    service=_TEXT,
    commit={"type": "string", "pattern": "^[0-9a-f]{40}$"},
    builtAt={"type": "string", "format": "date-time"},
)

_RPC_ID: Final[Schema] = {"type": ["string", "integer"]}
RPC_REQUEST_SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {**_RPC_ID, "description": "Without it the message is a notification."},
        "method": _TEXT,
        "params": {"type": ["object", "null"]},
    },
    "required": ["jsonrpc", "method"],
}
RPC_RESPONSE_SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"], "description": "The request's; null where none could be read."},
        "result": {"type": "object"},
        "error": {
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": _TEXT, "data": {}},
            "required": ["code", "message"],
        },
    },
    "required": ["jsonrpc", "id"],
    "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
}

QUOTA_HEADERS: Final[Schema] = {
    "ratelimit-policy": {"schema": _TEXT, "description": 'The quota: "reads";q=120;w=60 is 120 in 60 seconds.'},
    "ratelimit": {"schema": _TEXT, "description": 'The remainder: "reads";r=119;t=12, more after 12 seconds.'},
}
SECURITY_SCHEMES: Final[Schema] = {
    "token": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-token",
        "description": "An API token, which the operator issues. Where it is optional it raises the quotas.",
    }
}
TOKEN_REQUIRED: Final[list[Schema]] = [{"token": []}]
TOKEN_OPTIONAL: Final[list[Schema]] = [{}, *TOKEN_REQUIRED]

_DESCRIPTIONS: Final = {
    400: "The input is not valid.",
    401: "The call has no valid token or operations key.",
    404: "There is no such thing in the directory.",
    405: "The path does not answer this method.",
    413: "The body is over 64 KiB.",
    415: "The body is not declared as JSON.",
    421: "The header Host names another machine.",
    429: "The caller's quota is used up; wait as long as Retry-After says.",
    500: "The service failed.",
    503: "The service can't answer now; wait as long as Retry-After says.",
}


def headers(*, data: bool = False, quota: bool = False) -> Schema:
    """The headers of an answer, optionally with those of its data and of the quota."""
    names = [*ANSWER_HEADERS, *(DATA_HEADERS if data else ()), *(QUOTA_HEADERS if quota else ())]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def problem(status: int, *codes: str) -> Schema:
    """An error response, with all codes that the operation can return with this status."""
    extra: Schema = {}
    match status:
        case 401:
            extra["www-authenticate"] = {"schema": _TEXT, "description": "How to send a token."}
        case 405:
            extra["allow"] = {"schema": _TEXT, "description": "The methods that there are."}
        case 429 | 503:
            extra["retry-after"] = {"schema": {"type": "integer"}, "description": "Seconds to wait."}
    schema: Schema = {
        "allOf": [{"$ref": "#/components/schemas/Problem"}],
        "properties": {"status": {"const": status}, "code": {"enum": list(codes)}},
    }
    code_list = ", ".join(f"`{code}`" for code in codes)
    return {
        "description": f"{_DESCRIPTIONS[status]} {'Code' if len(codes) == 1 else 'Codes'}: {code_list}.",
        "headers": {**headers(), **extra},
        "content": {"application/problem+json": {"schema": schema}},
    }


def problems(errors: Iterable[type[ServiceError]]) -> Schema:
    """The error responses of an operation by status, from all errors that it can return."""
    by_status = sorted(errors, key=lambda error: error.status)
    return {
        str(status): problem(status, *(error.code for error in of_status))
        for status, of_status in groupby(by_status, key=lambda error: error.status)
    }
