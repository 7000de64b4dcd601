"""MCP over HTTP as a client of either era speaks it: raw messages, and answers as JSON or as an SSE stream.

The SDK's client would mend, retry or refuse what a rule wants to look at, so the messages are made here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from shop_directory.conformance.exchange import Ask, Part, Reply, as_json
from shop_directory.conformance.findings import NotAskedError
from shop_directory.conformance.service_under_test import JSON, Visit

PATH: Final = "/mcp"
MESSAGE_ID: Final = 1
EVENTS: Final = "text/event-stream"
_CLIENT: Final = {"name": "shop-directory-check", "version": "1"}
_SESSION: Final = "mcp-session-id"
_TRIES: Final = 3


class Era(StrEnum):
    """A protocol version of each era."""

    HANDSHAKE = "2025-11-25"
    PER_REQUEST = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON-RPC answer.

    Attributes:
        reply: the HTTP answer that it came in.
        document: the JSON-RPC object.
    """

    reply: Reply
    document: Part

    def result(self) -> Part:
        """The result of a request that went well.

        Raises:
            RuleBrokenError: it is an error, or no JSON-RPC answer to this request.
        """
        self.reply.expect_status(200)
        self._is_answer()
        result = self.document["result"]
        result.keys()
        return result

    def error(self, status: int | None = None) -> Part:
        """The error of a request that was refused, with this HTTP status if one is given.

        Raises:
            RuleBrokenError: it is a result, no JSON-RPC error, or of another status.
        """
        if status is not None:
            self.reply.expect_status(status)
        error = self.document["error"]
        self.document["jsonrpc"].expect("2.0")
        if "result" in self.document.value:
            raise self.document.broken("a JSON-RPC error without a result")
        if not isinstance(error["code"].value, int):
            raise error["code"].broken("a whole number")
        error["message"].text()
        return error

    def _is_answer(self) -> None:
        self.document["jsonrpc"].expect("2.0")
        self.document["id"].expect(MESSAGE_ID)
        if "error" in self.document.value:
            raise self.document.broken("a JSON-RPC result without an error")


async def initialize(visit: Visit) -> Message:
    """Begin as a client of the era of handshakes."""
    params = {"protocolVersion": str(Era.HANDSHAKE), "capabilities": {}, "clientInfo": _CLIENT}
    return await posted(visit, _message("initialize", params))


async def request(
    visit: Visit, era: Era, method: str, params: Mapping[str, Any] | None = None, *, fresh: bool = False
) -> Message:
    """Any request after the handshake, where the era has one."""
    given = dict(params or {})
    headers = [("mcp-protocol-version", str(era))]
    if era is Era.PER_REQUEST:
        given["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": str(era),
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers.append(("mcp-method", method))
        if isinstance(name := given.get("name"), str):
            headers.append(("mcp-name", name))
    else:
        headers += await _session(visit)
    return await posted(visit, _message(method, given), *headers, fresh=fresh)


async def call(
    visit: Visit, era: Era, tool: str, arguments: Mapping[str, Any] | None = None, *, fresh: bool = False
) -> Message:
    """Call a tool."""
    return await request(visit, era, "tools/call", {"name": tool, "arguments": dict(arguments or {})}, fresh=fresh)


async def posted(visit: Visit, body: bytes, *headers: tuple[str, str], fresh: bool = False) -> Message:
    """Send a message as it is; headers named here come before the usual ones."""
    return _read(await raw(visit, body, *headers, fresh=fresh))


async def raw(visit: Visit, body: bytes, *headers: tuple[str, str], fresh: bool = False) -> Reply:
    """Send bytes to the endpoint; the answer may be anything but a call that was refused for the quota.

    Raises:
        NotAskedError: the quota is used up, and waiting did not help.
    """
    usual = {"content-type": JSON, "accept": f"{JSON}, {EVENTS}", **dict(visit.token_header)}
    ask = Ask("POST", PATH, body, tuple((usual | dict(headers)).items()))
    reply = await visit.ask(ask, fresh=fresh)
    for _ in range(_TRIES):
        if not _out_of_quota(reply):
            return reply
        # The refusal is a result, and so without Retry-After. A read over REST waits for as long as it is told to.
        await visit.tool("list_categories", {}, fresh=True)
        reply = await visit.ask(ask, fresh=True)
    raise NotAskedError("the service's quota for it is used up")


def _message(method: str, params: Mapping[str, Any]) -> bytes:
    return as_json({"jsonrpc": "2.0", "id": MESSAGE_ID, "method": method, "params": params})


async def _session(visit: Visit) -> list[tuple[str, str]]:
    """The header of the session, of a server that keeps one."""
    session = (await initialize(visit)).reply.header(_SESSION)
    if session is None:
        return []
    header = (_SESSION, session)
    await raw(visit, as_json({"jsonrpc": "2.0", "method": "notifications/initialized"}), header)
    return [header]


def _read(reply: Reply) -> Message:
    """The JSON-RPC object of an answer."""
    media_type = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    if media_type == EVENTS:
        return Message(reply, _of_events(reply))
    if media_type != JSON:
        raise reply.broken(f"an answer as {JSON} or {EVENTS}", f"content-type {media_type or 'missing'}")
    document = reply.document()
    document.keys()
    return Message(reply, document)


def _out_of_quota(reply: Reply) -> bool:
    """Whether a call's result is that there were too many."""
    if b"quota_exceeded" not in reply.body:
        return False
    match _read(reply).document.value:
        case {"result": {"isError": True, "content": [{"text": str(text)}]}}:
            return "quota_exceeded" in text
    return False


def _of_events(reply: Reply) -> Part:
    """The answer among the events of a stream: the one message that is no notification."""
    text = reply.body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for event in text.split("\n\n"):
        lines = [line.removeprefix("data:").removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        try:
            message = orjson.loads("\n".join(lines))
        except orjson.JSONDecodeError:
            continue
        if isinstance(message, dict) and "method" not in message:
            return Part(reply, "", message)
    raise reply.broken("a stream of events that holds a JSON-RPC answer")
