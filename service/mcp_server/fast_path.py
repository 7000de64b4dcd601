"""A plain call of a tool, read and answered without the SDK's session, streams and tasks.

A message that is not plain in every header and every field is left to the SDK. A test compares the answers with those
of the SDK in every protocol version.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.types import DEFAULT_NEGOTIATED_VERSION, INTERNAL_ERROR, PROTOCOL_VERSION_META_KEY, SERVER_INFO_META_KEY
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from service.calls.dispatch import Outcome
from service.http.messages import JSON
from service.mcp_server.handling import result_meta
from service.mcp_server.messages import TEXTS
from service.mcp_server.request_meta import accepts
from service.mcp_server.spans import TOOLS_CALL

_VERSION: Final = MCP_PROTOCOL_VERSION_HEADER.encode()
_METHOD: Final = MCP_METHOD_HEADER.encode()
_NAME: Final = MCP_NAME_HEADER.encode()
# The SDK judges any header of the protocol that is not one of the three above.
_PROTOCOL_PREFIX: Final = b"mcp-"
_MODERN_HEADERS: Final = 3
_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_LARGEST_ID: Final = 2**53


class PlainCall(NamedTuple):
    """A call that needs nothing of the SDK.

    Attributes:
        message_id: of JSON-RPC.
        tool: the name of an existing tool.
        arguments: as sent; an empty object if there are none.
        modern: whether the protocol version is one without a handshake (since 2026-07-28).
    """

    message_id: int | str
    tool: str
    arguments: dict[str, Any]
    modern: bool


class ToolCallFastPath:
    """Reads plain calls and writes their answers."""

    def __init__(self, has_tool: Callable[[str], bool], server_info: Mapping[str, Any]) -> None:
        """Set up the fast path; `server_info` is in each result of the modern versions."""
        self._has_tool = has_tool
        self._server_info = dict(server_info)

    def read(self, headers: list[tuple[bytes, bytes]], message: dict[str, Any]) -> PlainCall | None:
        """Read a message that `check_message` returned as a plain call; None if the SDK must handle it."""
        params = message.get("params")
        if message["method"] != TOOLS_CALL or message.keys() != _MEMBERS or not isinstance(params, dict):
            return None
        tool, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
        if not (params.keys() <= _PARAMS and isinstance(tool, str) and self._has_tool(tool)):
            return None
        if not isinstance(arguments, dict | None) or not _is_plain_id(message["id"]):
            return None
        version = _plain_version(dict(headers), len(headers), tool)
        if version is None:
            return None
        modern = version in MODERN_PROTOCOL_VERSIONS
        if modern and (not isinstance(meta, dict) or meta.get(PROTOCOL_VERSION_META_KEY) != version):
            return None
        if meta is not None and not (isinstance(meta, dict) and accepts(version, meta)):
            return None
        return PlainCall(message["id"], tool, arguments or {}, modern)

    def result(self, call: PlainCall, outcome: Outcome) -> bytes:
        """The JSON-RPC answer to a call: the text is REST's body; an error has no structured content (E2)."""
        failed = outcome.error is not None
        meta = result_meta(outcome.request_id, outcome.stamp)
        result: dict[str, Any] = {
            "_meta": meta | {SERVER_INFO_META_KEY: self._server_info} if call.modern else meta,
            "content": [{"text": outcome.body.decode(), "type": "text"}],
            "isError": failed,
        }
        if call.modern:
            result["resultType"] = "complete"
        if not failed:
            result["structuredContent"] = orjson.Fragment(outcome.body)
        return orjson.dumps({"jsonrpc": "2.0", "id": call.message_id, "result": result})

    def failure(self, call: PlainCall) -> bytes:
        """The answer to a call that failed unexpectedly; only the log has the cause (E5)."""
        error = {"code": INTERNAL_ERROR, "message": TEXTS[INTERNAL_ERROR]}
        return orjson.dumps({"jsonrpc": "2.0", "id": call.message_id, "error": error})


def _plain_version(lines: dict[bytes, bytes], received: int, tool: str) -> str | None:
    """The protocol's version by the headers; None if one of them is repeated or not plain."""
    if len(lines) != received:
        return None
    media_type = lines.get(b"content-type", b"")
    if media_type != JSON and not media_type.startswith(JSON + b";"):
        return None
    protocol = [name for name in lines if name.startswith(_PROTOCOL_PREFIX)]
    if not protocol:
        return DEFAULT_NEGOTIATED_VERSION
    version = lines.get(_VERSION, b"").decode("latin-1")
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return version if len(protocol) == 1 else None
    if version not in MODERN_PROTOCOL_VERSIONS or len(protocol) != _MODERN_HEADERS:
        return None
    return version if lines.get(_METHOD) == TOOLS_CALL.encode() and lines.get(_NAME) == tool.encode() else None


def _is_plain_id(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, int) and -_LARGEST_ID <= value <= _LARGEST_ID
