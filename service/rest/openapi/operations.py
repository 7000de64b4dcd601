"""The operations endpoints in the OpenAPI document."""

from typing import Any, Final

from service.errors import (
    BackendUnavailableError,
    InternalError,
    MethodNotAllowedError,
    MisdirectedRequestError,
    OpsKeyRequiredError,
    QuotaExceededError,
    ServiceError,
)
from service.operations import SCHEMA_ID
from service.rest.openapi.parts import headers, problems

Schema = dict[str, Any]

_KEY_REQUIRED: Final[list[Schema]] = [{"opsKey": []}]
_ACCESS: Final = (
    "Where an operations key is configured it is required; elsewhere the call counts as a read, and its header Host "
    "must name the service's own machine unless the operator has opened the endpoint to others."
)
_REFUSALS: Final = (
    OpsKeyRequiredError,
    MethodNotAllowedError,
    MisdirectedRequestError,
    QuotaExceededError,
    InternalError,
)

OPS_SECURITY_SCHEMES: Final[Schema] = {
    "opsKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-ops-key",
        "description": "The operations key, which the operator has configured.",
    }
}


def operations_paths(*, needs_key: bool) -> Schema:
    """The paths of the operations endpoints, which need a key where one is configured."""
    state = (
        "Shop counts and freshness, catalogue sizes, flags, consumers and resource accounts. A part that is "
        "unavailable is reported with its reason, and the status is still 200. The body's JSON Schema "
        f"({SCHEMA_ID}) is also the file docs/ops-state.schema.json of the project."
    )
    resources = (
        "The operator's accounts with outside providers, in the Prometheus text format, or OpenMetrics where the "
        "header accept names it. 503 when they can't be read."
    )
    paths = {
        "/api/ops/state": _operation(
            "ops_state",
            "How does the service do?",
            state,
            {"application/json": {"schema": {"$ref": "#/components/schemas/OpsState"}}},
        ),
        "/metrics/resources": _operation(
            "metrics_resources", "The accounts, for Prometheus", resources, _exposition(), BackendUnavailableError
        ),
        "/metrics": _operation(
            "metrics",
            "The service's metrics, for Prometheus",
            "What this service has counted, and how its parts do just now. docs/metrics.md of the project names each.",
            _exposition(),
        ),
    }
    if needs_key:
        for path in paths.values():
            path["get"]["security"] = _KEY_REQUIRED
    return paths


def _operation(name: str, summary: str, description: str, content: Schema, *errors: type[ServiceError]) -> Schema:
    return {
        "get": {
            "operationId": name,
            "tags": ["operations"],
            "summary": summary,
            "description": f"{description} {_ACCESS}",
            "responses": {
                "200": {"description": "The answer.", "headers": headers(quota=True), "content": content},
                **problems((*_REFUSALS, *errors)),
            },
        }
    }


def _exposition() -> Schema:
    text = {"schema": {"type": "string"}}
    return {"text/plain": text, "application/openmetrics-text": text}
