"""Validation of `_meta` by the SDK's models, once for each distinct value: a client sends the same one every time."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from mcp.types import CallToolRequestParams
from mcp.types.methods import validate_client_request
from pydantic import ValidationError

from service.mcp_server.spans import TOOLS_CALL

# They differ with each request.
_PER_REQUEST: Final = frozenset({"progressToken", "traceparent", "tracestate"})
_MAX_CACHED: Final = 256
_MAX_BYTES: Final = 2_048


def accepts(version: str, meta: Mapping[str, Any]) -> bool:
    """Whether the SDK certainly accepts a call with this `_meta`; False also for values that are too long to cache."""
    constant = meta
    if not _PER_REQUEST.isdisjoint(meta):
        if not all(_is_plain(meta.get(name, "")) for name in _PER_REQUEST):
            return False
        constant = {name: value for name, value in meta.items() if name not in _PER_REQUEST}
    try:
        key = orjson.dumps(constant)
    except orjson.JSONEncodeError:
        return False
    return len(key) <= _MAX_BYTES and is_valid(version, key)


def _is_plain(value: object) -> bool:
    """Whether the models accept the value as a progress token, and ignore it in a trace."""
    return isinstance(value, str | int) and not isinstance(value, bool)


@lru_cache(_MAX_CACHED)
def is_valid(version: str, meta: bytes) -> bool:
    """Whether the SDK's models accept the JSON of a `_meta`, cached in bounded memory."""
    params = {"name": "any", "_meta": orjson.loads(meta)}
    try:
        validate_client_request(TOOLS_CALL, version, params)
        CallToolRequestParams.model_validate(params, by_name=False)
    except ValidationError:
        return False
    return True
