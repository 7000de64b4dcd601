"""MCP over HTTP by hand: raw messages in either era of the protocol, so that malformed ones can be sent too."""

from enum import StrEnum
from typing import Final

from tests.support.served import Reply, post

_META: Final = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{},'
    b'"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}'
)


class Era(StrEnum):
    """A protocol version of each era."""

    STATELESS = "2026-07-28"
    HANDSHAKE = "2025-11-25"


def call(base: str, era: Era, tool: str, arguments: bytes, **headers: str) -> Reply:
    """tools/call with the arguments' bytes as they are; header names with _ for -."""
    params = b'"name":"%s","arguments":%s' % (tool.encode(), arguments)
    return request(base, era, "tools/call", params, name=tool, **headers)


def request(base: str, era: Era, method: str, params: bytes = b"", *, name: str | None = None, **headers: str) -> Reply:
    """Any request; `params` are the members of the object, as bytes."""
    headers |= {"mcp_protocol_version": str(era)}
    if era is Era.STATELESS:
        params = b",".join(filter(None, (params, _META)))
        headers |= {"mcp_method": method} | ({"mcp_name": name} if name else {})
    body = b'{"jsonrpc":"2.0","id":7,"method":"%s","params":{%s}}' % (method.encode(), params)
    return post(base, "/mcp", body, **headers)
