"""The bytes of a JSON-RPC error, for refusals that need nothing of the SDK."""

import json
from dataclasses import replace
from typing import Any, Final

from service.errors import ServiceError
from service.http.messages import JSON, Answer, problem_answer

# In the range that JSON-RPC leaves to implementers.
REFUSED_CALL: Final = -32_001

MessageId = int | str | None


def error_body(code: int, message: str, message_id: MessageId = None, data: Any = None) -> bytes:  # noqa: ANN401 - any JSON value
    """The JSON-RPC error object; without data where it is None."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": error}, separators=(",", ":")).encode()


def refused_early(error: ServiceError, message_id: MessageId = None) -> Answer:
    """The answer to a refusal before the tool runs: the problem object in a JSON-RPC error (E2)."""
    body = error_body(REFUSED_CALL, error.detail, message_id, error.problem())
    return replace(problem_answer(error, body=body), media_type=JSON)
