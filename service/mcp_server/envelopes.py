"""What a caller says of itself in `_meta`, judged by the SDK's own models once and then known again.

A client says the same with each request. What the models refuse, or what is unlike anything seen, is not ours to judge.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from mcp.types import CallToolRequestParams
from mcp.types.methods import validate_client_request
from pydantic import ValidationError

from service.mcp_server.spans import CALL

# They differ with each request.
_OF_ONE_REQUEST: Final = frozenset({"progressToken", "traceparent", "tracestate"})
_MOST_KNOWN: Final = 256
_LONGEST: Final = 2_048


class Envelopes:
    """The envelopes that calls of tools came in, in bounded memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], None] = {}

    def plain(self, version: str, meta: Mapping[str, Any]) -> bool:
        """Whether the SDK takes a call in this envelope, without doubt.

        Args:
            version: of the protocol, as the request's header has it.
            meta: the `_meta` of the call's params.
        """
        lasting = meta
        if not _OF_ONE_REQUEST.isdisjoint(meta):
            if not all(_is_plain(meta.get(name, "")) for name in _OF_ONE_REQUEST):
                return False
            lasting = {name: value for name, value in meta.items() if name not in _OF_ONE_REQUEST}
        try:
            key = version, orjson.dumps(lasting)
        except orjson.JSONEncodeError:
            return False
        if key in self._known:
            return True
        if len(key[1]) > _LONGEST or not _taken(version, lasting):
            return False
        while len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[key] = None
        return True


def _is_plain(value: object) -> bool:
    """Whether it is of a type that the models take for a token, and ignore in a trace."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _taken(version: str, meta: Mapping[str, Any]) -> bool:
    params = {"name": "any", "_meta": dict(meta)}
    try:
        validate_client_request(CALL, version, params)
        CallToolRequestParams.model_validate(params, by_name=False)
    except ValidationError:
        return False
    return True
