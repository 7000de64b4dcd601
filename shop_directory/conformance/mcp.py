"""MCP over HTTP in both protocol eras: raw messages, and responses as JSON or as an SSE stream.

The client of the SDK would correct, retry or refuse what a rule has to judge, so the messages are built here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from shop_directory.conformance.exchange import NotAskedError, Part, Request, Response
from shop_directory.conformance.service_under_test import JSON, ServiceUnderTest

PATH: Final = "/mcp"
MESSAGE_ID: Final = 1
EVENTS: Final = "text/event-stream"
_CLIENT: Final = {"name": "shop-directory-check", "version": "1"}
_SESSION: Final = "mcp-session-id"
_TRIES: Final = 3


class Era(StrEnum):
    """One protocol version of each era."""

    HANDSHAKE = "2025-11-25"
    PER_REQUEST = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON-RPC response, and the HTTP response that carried it."""

    response: Response
    document: Part

    def result(self) -> Part:
        """The result of a successful request; raises RuleBrokenError for an error, or a response to another request."""
        self.response.expect_status(200)
        self.document["jsonrpc"].expect("2.0")
        self.document["id"].expect(MESSAGE_ID)
        self.document.must("error" not in self.document.value, "a JSON-RPC result without an error")
        result = self.document["result"]
        result.names()
        return result

    def error(self, status: int | None = None) -> Part:
        """The error of a refused request, with this HTTP status if one is given; RuleBrokenError for anything else."""
        if status is not None:
            self.response.expect_status(status)
        error = self.document["error"]
        self.document["jsonrpc"].expect("2.0")
        self.document.must("result" not in self.document.value, "a JSON-RPC error without a result")
        error["code"].must(isinstance(error["code"].value, int), "a whole number")
        error["message"].text()
        return error


async def initialize(service: ServiceUnderTest) -> Message:
    """Send initialize, as a client of the handshake era does."""
    params = {"protocolVersion": str(Era.HANDSHAKE), "capabilities": {}, "clientInfo": _CLIENT}
    return await post(service, _message("initialize", params))


async def request(service: ServiceUnderTest, era: Era, method: str, params: Mapping[str, Any] | None = None) -> Message:
    """Send any request that follows the handshake, where the era has one."""
    params = dict(params or {})
    headers = [("mcp-protocol-version", str(era))]
    if era is Era.PER_REQUEST:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": str(era),
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers.append(("mcp-method", method))
        if isinstance(name := params.get("name"), str):
            headers.append(("mcp-name", name))
    else:
        headers += await _session(service)
    return await post(service, _message(method, params), *headers)


async def call(service: ServiceUnderTest, era: Era, tool: str, arguments: Mapping[str, Any] | None = None) -> Message:
    """Call a tool."""
    return await request(service, era, "tools/call", {"name": tool, "arguments": dict(arguments or {})})


async def post(service: ServiceUnderTest, body: bytes, *headers: tuple[str, str]) -> Message:
    """Send a message unchanged; these headers replace the default ones of the same names."""
    return _parse(await _post_raw(service, body, *headers))


async def _post_raw(service: ServiceUnderTest, body: bytes, *headers: tuple[str, str]) -> Response:
    """Send bytes to the endpoint; a call that is refused for the quota is sent again after a wait, some times."""
    defaults = {"content-type": JSON, "accept": f"{JSON}, {EVENTS}", **dict(service.token_header)}
    request = Request("POST", PATH, body, tuple((defaults | dict(headers)).items()))
    response = await service.send(request)
    for _ in range(_TRIES):
        if not _quota_used_up(response):
            return response
        # The refusal is a result, which has no Retry-After. A read over REST has one, and the client waits for it.
        await service.fresh.tool("list_categories", {})
        response = await service.fresh.send(request)
    raise NotAskedError("the quota for this call is used up")


def _message(method: str, params: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": MESSAGE_ID, "method": method, "params": params})


async def _session(service: ServiceUnderTest) -> list[tuple[str, str]]:
    """The session header, of a server that has sessions."""
    session = (await initialize(service)).response.header(_SESSION)
    if session is None:
        return []
    header = (_SESSION, session)
    await _post_raw(service, orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), header)
    return [header]


def _parse(response: Response) -> Message:
    if response.media_type == EVENTS:
        return Message(response, _from_events(response))
    actual = f"content-type {response.media_type or 'missing'}"
    response.must(response.media_type == JSON, f"a response as {JSON} or {EVENTS}", actual)
    document = response.document()
    document.names()
    return Message(response, document)


def _quota_used_up(response: Response) -> bool:
    """Whether the result of a call is the refusal for its quota."""
    if b"quota_exceeded" not in response.body:
        return False
    match _parse(response).document.value:
        case {"result": {"isError": True, "content": [{"text": str(text)}]}}:
            return "quota_exceeded" in text
    return False


def _from_events(response: Response) -> Part:
    """The response among the events of a stream: the first message that is no notification."""
    text = response.body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for event in text.split("\n\n"):
        lines = [line.removeprefix("data:").removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        try:
            message = orjson.loads("\n".join(lines))
        except orjson.JSONDecodeError:
            continue
        if isinstance(message, dict) and "method" not in message:
            return Part(response, "", message)
    raise response.broken("an event stream that holds a JSON-RPC response")
