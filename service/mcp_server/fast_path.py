"""A plain call of a tool, read and answered without the SDK's session, streams and tasks.

Whatever is not plain in every header and every field is the SDK's to judge. The answer's bytes are those that the SDK
would have sent, which a test holds against it in both eras.
"""

import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple

import orjson
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.types import DEFAULT_NEGOTIATED_VERSION, INTERNAL_ERROR, PROTOCOL_VERSION_META_KEY, SERVER_INFO_META_KEY
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from service.calls.dispatch import Outcome
from service.http.responses import Headers
from service.mcp_server.envelopes import Envelopes
from service.mcp_server.messages import TEXTS
from service.mcp_server.spans import CALL
from service.runtime.wire import JSON

_VERSION: Final = MCP_PROTOCOL_VERSION_HEADER.encode()
_METHOD: Final = MCP_METHOD_HEADER.encode()
_NAME: Final = MCP_NAME_HEADER.encode()
# What the protocol's headers begin with: one that is not known here may mean something.
_OWN: Final = b"mcp-"
_HEADERS_OF_EACH_REQUEST: Final = 3
_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_LARGEST_ID: Final = 2**53
_NOT_PRINTED: Final = re.compile("[^\x00-\x7e]+")


class PlainCall(NamedTuple):
    """A call that needs nothing of the SDK.

    Attributes:
        message_id: of JSON-RPC.
        tool: its name; the dispatcher has it.
        arguments: as sent; none are an empty object.
        modern: whether it came in the era of requests that stand for themselves.
    """

    message_id: int | str
    tool: str
    arguments: dict[str, Any]
    modern: bool


class ShortWay:
    """Reads plain calls and writes their answers."""

    def __init__(self, knows: Callable[[str], bool], server_info: Mapping[str, Any]) -> None:
        """Make ready.

        Args:
            knows: whether there is a tool of that name.
            server_info: what the SDK says of the server in each result of the newer era.
        """
        self._knows = knows
        self._server = b',"%s":%s' % (SERVER_INFO_META_KEY.encode(), orjson.dumps(dict(server_info)))
        self._envelopes = Envelopes()

    def read(self, headers: list[tuple[bytes, bytes]], message: dict[str, Any]) -> PlainCall | None:
        """The call that a message is; None for whatever the SDK must look at.

        Args:
            headers: of the request, as received.
            message: that `check_message` let pass.
        """
        params = message.get("params")
        if message["method"] != CALL or message.keys() != _MEMBERS or not isinstance(params, dict):
            return None
        tool, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
        if not (params.keys() <= _PARAMS and isinstance(tool, str) and self._knows(tool)):
            return None
        if not isinstance(arguments, dict | None) or not _is_plain_id(message["id"]):
            return None
        version = _version(dict(headers), len(headers), tool)
        if version is None:
            return None
        modern = version in MODERN_PROTOCOL_VERSIONS
        if modern and (not isinstance(meta, dict) or meta.get(PROTOCOL_VERSION_META_KEY) != version):
            return None
        if meta is not None and not (isinstance(meta, dict) and self._envelopes.plain(version, meta)):
            return None
        return PlainCall(message["id"], tool, arguments or {}, modern)

    def result(self, call: PlainCall, outcome: Outcome) -> bytes:
        """The JSON-RPC answer to a call: the text is REST's body; an error has no structured content (E2)."""
        meta = meta_of(outcome)
        failed = b"true" if outcome.error is not None else b"false"
        kind, structured = b"", b""
        if call.modern:
            meta += self._server
            kind = b',"resultType":"complete"'
        if outcome.error is None:
            structured = b',"structuredContent":' + outcome.body
        answer = (
            b'{"jsonrpc":"2.0","id":%s,"result":{"_meta":{%s},"content":[{"text":%s,"type":"text"}],"isError":%s%s%s}}'
            % (orjson.dumps(call.message_id), meta, orjson.dumps(outcome.body.decode()), failed, kind, structured)
        )
        # As the SDK writes JSON: in the newer era by Python's library, in the older one by pydantic's.
        return _in_ascii(answer) if call.modern else answer

    def failure(self, call: PlainCall) -> bytes:
        """The answer to a call whose fault is ours and is known to the log alone (E5)."""
        error = orjson.dumps({"code": INTERNAL_ERROR, "message": TEXTS[INTERNAL_ERROR]})
        answer = b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (orjson.dumps(call.message_id), error)
        return _in_ascii(answer) if call.modern else answer

    def headers(self, call: PlainCall, body: bytes, more: Headers) -> list[tuple[bytes, bytes]]:
        """The headers of an answer in the SDK's order, and ours after them."""
        kind, length = (b"content-type", JSON), (b"content-length", b"%d" % len(body))
        return [length, kind, *more] if call.modern else [kind, length, *more]


def meta_of(outcome: Outcome) -> bytes:
    """The members of a result's `_meta`: the request's id and which data the answer comes from (C2)."""
    told = b'"x-request-id":%s' % orjson.dumps(outcome.request_id)
    stamp = outcome.stamp
    if stamp is None:
        return told
    generation, built_at = orjson.dumps(stamp.generation), orjson.dumps(stamp.built_at)
    return b'%s,"x-generation":%s,"x-data-as-of":%s' % (told, generation, built_at)


def _version(lines: dict[bytes, bytes], received: int, tool: str) -> str | None:
    """The protocol's version by the headers, if they are plain; where a line comes twice they are not."""
    if len(lines) != received:
        return None
    kind = lines.get(b"content-type", b"")
    if kind != JSON and not kind.startswith(JSON + b";"):
        return None
    own = [name for name in lines if name.startswith(_OWN)]
    if not own:
        return DEFAULT_NEGOTIATED_VERSION
    version = lines.get(_VERSION, b"").decode("latin-1")
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return version if len(own) == 1 else None
    if version not in MODERN_PROTOCOL_VERSIONS or len(own) != _HEADERS_OF_EACH_REQUEST:
        return None
    return version if lines.get(_METHOD) == CALL.encode() and lines.get(_NAME) == tool.encode() else None


def _is_plain_id(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, int) and -_LARGEST_ID <= value <= _LARGEST_ID


def _in_ascii(text: bytes) -> bytes:
    """JSON in which every character beyond the printed ones of ASCII is escaped; such stand in strings only."""
    if text.isascii() and b"\x7f" not in text:
        return text
    return _NOT_PRINTED.sub(_escaped, text.decode()).encode()


def _escaped(found: re.Match[str]) -> str:
    return encode_basestring_ascii(found[0])[1:-1]
