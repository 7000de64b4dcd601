"""The MCP endpoint: both protocol eras, the same tools and results as over REST, and errors."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Part, Request, Response, as_json
from shop_directory.conformance.mcp import Era, Message
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import ServiceUnderTest, compare_with_retry

_PARSE_ERROR: Final = -32700
_NO_TOOL: Final = "no_such_tool"
_TOOL_PATHS: Final = "/tool/"
_ELSEWHERE: Final = "https://elsewhere.example"


@rule("I3", "POST /mcp speaks JSON-RPC over streamable HTTP: initialize, tools/list and tools/call, in either era.")
async def _speaks_mcp(service: ServiceUnderTest) -> None:
    handshake = (await mcp.initialize(service)).result()
    handshake["protocolVersion"].expect(str(Era.HANDSHAKE))
    handshake["serverInfo"]["name"].text()
    handshake["capabilities"]["tools"].keys()
    for era in Era:
        listed = await _tools(service, era)
        for tool in listed["tools"].each():
            tool["name"].text()
            tool["description"].text()
            tool["inputSchema"]["type"].expect("object")
        message = await mcp.call(service, era, "list_categories")
        _text_of(message).text()
        if message.result().value.get("isError"):
            raise message.result()["isError"].broken("false")


@rule("I5", "REST and MCP offer the same tools and return the same results.")
async def _same_results(service: ServiceUnderTest) -> None:
    paths = (await service.get("/openapi.json")).json()["paths"].keys()
    by_rest = {path.removeprefix(_TOOL_PATHS) for path in paths if path.startswith(_TOOL_PATHS)}
    for era in Era:
        listed = await _tools(service, era)
        names = {tool["name"].text() for tool in listed["tools"].each()}
        if names != by_rest:
            raise listed.broken(f"the tools of REST: {', '.join(sorted(by_rest))}")
    shop = service.subjects.shop().id
    calls: list[tuple[str, dict[str, Any]]] = [
        ("find_shop", {"query": "", "limit": 3}),
        ("list_categories", {}),
        ("get_shop", {"shop_domain": shop}),
        ("get_shop", {"shop_domain": service.unknown_domain}),
        ("get_shipping_policy", {"shop_domain": shop, "country": "DE"}),
    ]
    for tool, arguments in calls + ([("get_trust", {"shop_domain": shop})] if service.token else []):
        await _expect_same_result(service, tool, arguments)
    await _expect_equal_coupon_counts(service, shop)


@rule("I67", "The MCP endpoint itself needs no credentials.")
async def _needs_no_credentials(service: ServiceUnderTest) -> None:
    anonymous = service.with_token(None)
    (await mcp.initialize(anonymous)).result()
    for era in Era:
        (await mcp.request(anonymous, era, "tools/list")).result()
        (await mcp.call(anonymous, era, "list_categories")).result()


@rule("E2", "A tool's error over MCP is a result with isError and the problem object as text, not structuredContent.")
async def _fails_in_results(service: ServiceUnderTest) -> None:
    calls: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("get_shop", {"shop_domain": service.unknown_domain}, "shop_not_found"),
        ("find_shop", {}, "invalid_input"),
    )
    for era in Era:
        for tool, arguments, code in calls:
            message = await mcp.call(service, era, tool, arguments)
            result = message.result()
            result["isError"].expect(True)
            if result.value.get("structuredContent") is not None:
                raise result.broken("no structuredContent alongside an error")
            problem = _json_of(message)
            problem["code"].expect(code)
            for name in ("type", "title", "detail"):
                problem[name].text()
            problem["status"].whole()


@rule(
    "E2.protocol", "An unknown tool and malformed JSON-RPC are JSON-RPC errors; every tool is listed for every caller."
)
async def _fails_by_the_protocol(service: ServiceUnderTest) -> None:
    for era in Era:
        (await mcp.call(service, era, _NO_TOOL)).error()
        without_token = await _tools(service.with_token(None), era)
        listed = await _tools(service, era)
        if [tool["name"].value for tool in without_token["tools"].each()] != [
            tool["name"].value for tool in listed["tools"].each()
        ]:
            raise without_token.broken("the tools that are listed with a token")
    (await mcp.post(service, b"{")).error(400)["code"].expect(_PARSE_ERROR)
    malformed: object
    for malformed in ([], 5, {"id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 1, "method": 5}):
        (await mcp.post(service, orjson.dumps(malformed))).error(400)


@rule("E1.transport", "The MCP transport refuses requests with JSON-RPC errors; only POST is allowed.")
async def _refuses_in_its_shape(service: ServiceUnderTest) -> None:
    ping = as_json({"jsonrpc": "2.0", "id": mcp.MESSAGE_ID, "method": "ping"})
    (await mcp.post(service, ping, ("content-type", "text/plain"))).error(400)
    (await mcp.post(service, ping, ("accept", "text/html"))).error(406)
    (await mcp.post(service, ping, ("origin", _ELSEWHERE))).error(403)
    (await mcp.post(service, b" " * 65_537)).error(413)
    response = await service.send(Request("GET", mcp.PATH, headers=(("accept", mcp.EVENTS),)))
    response.expect_status(405)
    if response.header("allow") != "POST":
        raise response.broken("the header allow: POST", f"allow: {response.header('allow')}")


async def _tools(service: ServiceUnderTest, era: Era) -> Part:
    return (await mcp.request(service, era, "tools/list")).result()


async def _expect_same_result(service: ServiceUnderTest, tool: str, arguments: Mapping[str, Any]) -> None:
    """Raise unless the body over REST is the text over MCP and, except for errors, the structured content."""

    async def compare(service: ServiceUnderTest) -> None:
        response = await service.tool(tool, arguments)
        for era in Era:
            message = await mcp.call(service, era, tool, arguments)
            _expect_same(response, message, _json_of(message).value)
            if response.status == HTTPStatus.OK:
                _expect_same(response, message, message.result()["structuredContent"].value)

    await compare_with_retry(service, compare)


def _expect_same(response: Response, message: Message, document: object) -> None:
    if document != response.document().value:
        raise message.response.broken(f"the response to {response.request.shown}: {response.shown}")


async def _expect_equal_coupon_counts(service: ServiceUnderTest, shop: str) -> None:
    """Raise unless the counts are equal; a display policy may withhold a code over one transport only."""
    arguments = {"shop_domain": shop}

    async def compare(service: ServiceUnderTest) -> None:
        response = await service.tool("list_coupons", arguments)
        expected = response.json()["total_count"].value
        for era in Era:
            message = await mcp.call(service, era, "list_coupons", arguments)
            _json_of(message)["total_count"].expect(expected)

    await compare_with_retry(service, compare)


def _text_of(message: Message) -> Part:
    """The text of a tool result, which has exactly one."""
    content = message.result()["content"]
    if len(content.values()) != 1:
        raise content.broken("one text")
    content[0]["type"].expect("text")
    return content[0]["text"]


def _json_of(message: Message) -> Part:
    """The JSON object in the text of a tool result."""
    text = _text_of(message)
    try:
        return Part(message.response, "the JSON in content[0].text", orjson.loads(text.text()))
    except orjson.JSONDecodeError:
        raise text.broken("an object as JSON text") from None
