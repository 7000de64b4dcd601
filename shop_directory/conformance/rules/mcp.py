"""The MCP endpoint in both eras, by raw messages, which a client would correct: the same as over REST, and errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

import orjson

from shop_directory.conformance.exchange import NotAskedError, Part, Request, Response
from shop_directory.conformance.rule import exactly, expect_shape, rule
from shop_directory.conformance.service_under_test import JSON, NO_ARGUMENTS, Arguments, ServiceUnderTest

_PATH: Final = "/mcp"
_MESSAGE_ID: Final = 1
_EVENTS: Final = "text/event-stream"
_CLIENT: Final = {"name": "shop-directory-check", "version": "1"}
_SESSION: Final = "mcp-session-id"
_TRIES: Final = 3
_PARSE_ERROR: Final = -32700
_ELSEWHERE: Final = "https://elsewhere.example"
_TOOL: Final = {"name": Part.text, "description": Part.text, "inputSchema": {"type": exactly("object")}}


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
        self.document["id"].expect(_MESSAGE_ID)
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


async def _initialize(service: ServiceUnderTest) -> Message:
    params = {"protocolVersion": str(Era.HANDSHAKE), "capabilities": {}, "clientInfo": _CLIENT}
    return await _post(service, _message("initialize", params))


async def request(service: ServiceUnderTest, era: Era, method: str, params: Arguments = NO_ARGUMENTS) -> Message:
    """Send any request that follows the handshake, where the era has one."""
    given = dict(params)
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
        headers += await _session(service)
    return await _post(service, _message(method, given), *headers)


async def call(service: ServiceUnderTest, era: Era, tool: str, arguments: Arguments = NO_ARGUMENTS) -> Message:
    """Call a tool."""
    return await request(service, era, "tools/call", {"name": tool, "arguments": dict(arguments)})


async def _post(service: ServiceUnderTest, body: bytes, *headers: tuple[str, str]) -> Message:
    """Send a message unchanged; these headers replace the default ones of the same names."""
    return _parse(await _post_raw(service, body, *headers))


async def _post_raw(service: ServiceUnderTest, body: bytes, *headers: tuple[str, str]) -> Response:
    """Send bytes to the endpoint; a call that is refused for the quota is sent again after a wait, some times."""
    defaults = {"content-type": JSON, "accept": f"{JSON}, {_EVENTS}", **dict(service.token_header)}
    sent = Request("POST", _PATH, body, tuple((defaults | dict(headers)).items()))
    response = await service.send(sent)
    for _ in range(_TRIES):
        if not _quota_used_up(response):
            return response
        # The refusal is a result, which has no Retry-After. A read over REST has one, and the client waits for it.
        await service.fresh.tool("list_categories", {})
        response = await service.fresh.send(sent)
    raise NotAskedError("the quota for this call is used up")


def _message(method: str, params: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": _MESSAGE_ID, "method": method, "params": params})


async def _session(service: ServiceUnderTest) -> list[tuple[str, str]]:
    """The session header, of a server that has sessions."""
    session = (await _initialize(service)).response.header(_SESSION)
    if session is None:
        return []
    header = (_SESSION, session)
    await _post_raw(service, orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), header)
    return [header]


def _parse(response: Response) -> Message:
    if response.media_type == _EVENTS:
        return Message(response, _from_events(response))
    actual = f"content-type {response.media_type or 'missing'}"
    response.must(response.media_type == JSON, f"a response as {JSON} or {_EVENTS}", actual)
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
    """The response among the events of a stream: the first message that is not a notification."""
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


@rule("I3", "POST /mcp speaks JSON-RPC over streamable HTTP: initialize, tools/list and tools/call, in either era.")
async def _speaks_mcp(service: ServiceUnderTest) -> None:
    handshake = (await _initialize(service)).result()
    handshake["protocolVersion"].expect(str(Era.HANDSHAKE))
    handshake["serverInfo"]["name"].text()
    handshake["capabilities"]["tools"].names()
    for era in Era:
        for tool in (await _tools(service, era))["tools"].each():
            expect_shape(tool, _TOOL)
        message = await call(service, era, "list_categories")
        _text_of(message).text()
        if message.result().value.get("isError"):
            raise message.result()["isError"].broken("false")


@rule("I5", "REST and MCP offer the same tools and return the same results.")
async def _same_results(service: ServiceUnderTest) -> None:
    by_rest = set(await service.described_tools())
    for era in Era:
        listed = await _tools(service, era)
        names = {tool["name"].text() for tool in listed["tools"].each()}
        listed.must(names == by_rest, f"the tools of REST: {', '.join(sorted(by_rest))}")
    shop = service.subjects.shop.id
    calls: list[tuple[str, Arguments]] = [
        ("find_shop", {"query": "", "limit": 3}),
        ("list_categories", {}),
        ("get_shop", {"shop_domain": shop}),
        ("get_shop", {"shop_domain": service.unknown_domain}),
        ("get_shipping_policy", {"shop_domain": shop, "country": "DE"}),
    ]
    for tool, arguments in calls + ([("get_trust", {"shop_domain": shop})] if service.token else []):
        # The body over REST is the text over MCP and, except for errors, the structured content.
        response = await service.tool(tool, arguments)
        for era in Era:
            message = await call(service, era, tool, arguments)
            documents = [_json_of(message).value]
            if response.status == HTTPStatus.OK:
                documents.append(message.result()["structuredContent"].value)
            expected = f"the response to {response.request.shown}: {response.shown}"
            message.response.must(all(one == response.document().value for one in documents), expected)
    # The counts are equal; a display policy may withhold a code over one transport only.
    expected_count = (await service.read("list_coupons", {"shop_domain": shop}))["total_count"].value
    for era in Era:
        message = await call(service, era, "list_coupons", {"shop_domain": shop})
        _json_of(message)["total_count"].expect(expected_count)


@rule("I67", "The MCP endpoint itself needs no credentials.")
async def _needs_no_credentials(service: ServiceUnderTest) -> None:
    (await _initialize(service.anonymous)).result()
    for era in Era:
        (await request(service.anonymous, era, "tools/list")).result()
        (await call(service.anonymous, era, "list_categories")).result()


@rule("E2", "A tool's error over MCP is a result with isError and the problem object as text, not structuredContent.")
async def _fails_in_results(service: ServiceUnderTest) -> None:
    calls: tuple[tuple[str, Arguments, str], ...] = (
        ("get_shop", {"shop_domain": service.unknown_domain}, "shop_not_found"),
        ("find_shop", {}, "invalid_input"),
    )
    for era in Era:
        for tool, arguments, code in calls:
            message = await call(service, era, tool, arguments)
            result = message.result()
            result["isError"].expect(True)
            result.must(result.value.get("structuredContent") is None, "no structuredContent alongside an error")
            texts = dict.fromkeys(("type", "title", "detail"), Part.text)
            expect_shape(_json_of(message), {"code": exactly(code), **texts, "status": Part.whole})


@rule(
    "E2.protocol", "An unknown tool and malformed JSON-RPC are JSON-RPC errors; every tool is listed for every caller."
)
async def _fails_by_the_protocol(service: ServiceUnderTest) -> None:
    for era in Era:
        (await call(service, era, "no_such_tool")).error()
        without_token, listed = await _tools(service.anonymous, era), await _tools(service, era)
        names, expected = ([tool["name"].value for tool in one["tools"].each()] for one in (without_token, listed))
        without_token.must(names == expected, "the tools that are listed with a token")
    (await _post(service, b"{")).error(400)["code"].expect(_PARSE_ERROR)
    malformed: object
    for malformed in ([], 5, {"id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 1, "method": 5}):
        (await _post(service, orjson.dumps(malformed))).error(400)


@rule("E1.transport", "The MCP transport refuses requests with JSON-RPC errors; only POST is allowed.")
async def _refuses_in_its_shape(service: ServiceUnderTest) -> None:
    ping = orjson.dumps({"jsonrpc": "2.0", "id": _MESSAGE_ID, "method": "ping"})
    (await _post(service, ping, ("content-type", "text/plain"))).error(400)
    (await _post(service, ping, ("accept", "text/html"))).error(406)
    (await _post(service, ping, ("origin", _ELSEWHERE))).error(403)
    (await _post(service, b" " * 65_537)).error(413)
    response = await service.send(Request("GET", _PATH, headers=(("accept", _EVENTS),)))
    response.expect_status(405)
    response.must_state(response.header("allow") == "POST", "allow", "the header allow: POST")


async def _tools(service: ServiceUnderTest, era: Era) -> Part:
    return (await request(service, era, "tools/list")).result()


def _text_of(message: Message) -> Part:
    """The text of a tool result, which has exactly one."""
    content = message.result()["content"]
    content.must(len(content.values()) == 1, "one text")
    content[0]["type"].expect("text")
    return content[0]["text"]


def _json_of(message: Message) -> Part:
    """The JSON object in the text of a tool result."""
    text = _text_of(message)
    try:
        return Part(message.response, "the JSON in content[0].text", orjson.loads(text.text()))
    except orjson.JSONDecodeError:
        raise text.broken("an object as JSON text") from None
