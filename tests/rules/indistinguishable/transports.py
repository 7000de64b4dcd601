"""Whole answers of the running service: status, all headers in their order, and the body's bytes.

Left out is only what differs between any two equal requests: the date, the request id, how much of the quota is left.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import quote, urlsplit

_DIFFERENT_EACH_TIME: Final = {"date", "x-request-id"}
_REQUEST_ID: Final = re.compile(rb'("x-request-id":")[0-9a-f]{32}"')
_LEFT: Final = re.compile(r";[rt]=\d+")
_MODERN: Final = "2026-07-28"
_OLDER: Final = "2025-11-25"


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer; header names as sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """The one header of a lower-case name."""
        (value,) = (value for key, value in self.headers if key.lower() == name)
        return value

    def settled(self, blank: Callable[[bytes], bytes]) -> "Whole":
        """Without what differs each time, and with the question's words blanked; every header's name stays."""
        headers = tuple(
            (name, "-" if name.lower() in _DIFFERENT_EACH_TIME else _LEFT.sub(";-", value))
            for name, value in self.headers
        )
        return Whole(self.status, headers, settled_text(self.body, blank))

    def without(self, name: str) -> "Whole":
        """The answer with the value of a header left out."""
        headers = tuple((key, "-" if key.lower() == name else value) for key, value in self.headers)
        return Whole(self.status, headers, self.body)


def settled_text(text: bytes, blank: Callable[[bytes], bytes]) -> bytes:
    """A body without its request id, and with the question's words blanked."""
    return blank(_REQUEST_ID.sub(rb'\1-"', text))


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs, and a token for it."""

    base: str
    token: str

    def rest(self, tool: str, arguments: Mapping[str, Any]) -> Whole:
        return self._ask("POST", f"/tool/{tool}", arguments, {})

    def mcp_modern(self, tool: str, arguments: Mapping[str, Any]) -> Whole:
        about = {
            "io.modelcontextprotocol/protocolVersion": _MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers = {"mcp-protocol-version": _MODERN, "mcp-method": "tools/call", "mcp-name": tool}
        return self._ask("POST", "/mcp", message(tool, {**arguments}, 7, _meta=about), headers)

    def mcp_older(self, tool: str, arguments: Mapping[str, Any]) -> Whole:
        return self._ask("POST", "/mcp", message(tool, {**arguments}, 7), {"mcp-protocol-version": _OLDER})

    def suggest(self, text: str) -> Whole:
        return self._ask("GET", f"/suggest?q={quote(text)}", None, {})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Whole:
        given = {"content-type": "application/json", "accept": "application/json", "x-api-token": self.token, **headers}
        connection = HTTPConnection(urlsplit(self.base).netloc, timeout=20)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), given)
            response = connection.getresponse()
            return Whole(response.status, tuple(response.getheaders()), response.read())
        finally:
            connection.close()


def message(tool: str, arguments: dict[str, Any], message_id: int, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """tools/call as JSON-RPC."""
    called = {"name": tool, "arguments": arguments, **params}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": called}
