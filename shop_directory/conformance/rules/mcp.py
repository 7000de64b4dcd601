"""The MCP endpoint: both protocol eras, the same tools and results as over REST, and errors."""

from http import HTTPStatus
from typing import Final

import orjson

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Part, Request
from shop_directory.conformance.mcp import Era, Message
from shop_directory.conformance.rule import exactly, expect_shape, rule
from shop_directory.conformance.rules.calls import rest_tools
from shop_directory.conformance.service_under_test import Arguments, ServiceUnderTest

_PARSE_ERROR: Final = -32700
_ELSEWHERE: Final = "https://elsewhere.example"
_TOOL: Final = {"name": Part.text, "description": Part.text, "inputSchema": {"type": exactly("object")}}


@rule("I3", "POST /mcp speaks JSON-RPC over streamable HTTP: initialize, tools/list and tools/call, in either era.")
async def _speaks_mcp(service: ServiceUnderTest) -> None:
    handshake = (await mcp.initialize(service)).result()
    handshake["protocolVersion"].expect(str(Era.HANDSHAKE))
    handshake["serverInfo"]["name"].text()
    handshake["capabilities"]["tools"].names()
    for era in Era:
        for tool in (await _tools(service, era))["tools"].each():
            expect_shape(tool, _TOOL)
        message = await mcp.call(service, era, "list_categories")
        _text_of(message).text()
        if message.result().value.get("isError"):
            raise message.result()["isError"].broken("false")


@rule("I5", "REST and MCP offer the same tools and return the same results.")
async def _same_results(service: ServiceUnderTest) -> None:
    by_rest = set(rest_tools(await service.openapi()))
    for era in Era:
        listed = await _tools(service, era)
        names = {tool["name"].text() for tool in listed["tools"].each()}
        listed.must(names == by_rest, f"the tools of REST: {', '.join(sorted(by_rest))}")
    shop = service.subjects.shop().id
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
            message = await mcp.call(service, era, tool, arguments)
            documents = [_json_of(message).value]
            if response.status == HTTPStatus.OK:
                documents.append(message.result()["structuredContent"].value)
            expected = f"the response to {response.request.shown}: {response.shown}"
            message.response.must(all(one == response.document().value for one in documents), expected)
    # The counts are equal; a display policy may withhold a code over one transport only.
    expected_count = (await service.read("list_coupons", {"shop_domain": shop}))["total_count"].value
    for era in Era:
        message = await mcp.call(service, era, "list_coupons", {"shop_domain": shop})
        _json_of(message)["total_count"].expect(expected_count)


@rule("I67", "The MCP endpoint itself needs no credentials.")
async def _needs_no_credentials(service: ServiceUnderTest) -> None:
    (await mcp.initialize(service.anonymous)).result()
    for era in Era:
        (await mcp.request(service.anonymous, era, "tools/list")).result()
        (await mcp.call(service.anonymous, era, "list_categories")).result()


@rule("E2", "A tool's error over MCP is a result with isError and the problem object as text, not structuredContent.")
async def _fails_in_results(service: ServiceUnderTest) -> None:
    calls: tuple[tuple[str, Arguments, str], ...] = (
        ("get_shop", {"shop_domain": service.unknown_domain}, "shop_not_found"),
        ("find_shop", {}, "invalid_input"),
    )
    for era in Era:
        for tool, arguments, code in calls:
            message = await mcp.call(service, era, tool, arguments)
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
        (await mcp.call(service, era, "no_such_tool")).error()
        without_token, listed = await _tools(service.anonymous, era), await _tools(service, era)
        names, expected = ([tool["name"].value for tool in one["tools"].each()] for one in (without_token, listed))
        without_token.must(names == expected, "the tools that are listed with a token")
    (await mcp.post(service, b"{")).error(400)["code"].expect(_PARSE_ERROR)
    malformed: object
    for malformed in ([], 5, {"id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 1, "method": 5}):
        (await mcp.post(service, orjson.dumps(malformed))).error(400)


@rule("E1.transport", "The MCP transport refuses requests with JSON-RPC errors; only POST is allowed.")
async def _refuses_in_its_shape(service: ServiceUnderTest) -> None:
    ping = orjson.dumps({"jsonrpc": "2.0", "id": mcp.MESSAGE_ID, "method": "ping"})
    (await mcp.post(service, ping, ("content-type", "text/plain"))).error(400)
    (await mcp.post(service, ping, ("accept", "text/html"))).error(406)
    (await mcp.post(service, ping, ("origin", _ELSEWHERE))).error(403)
    (await mcp.post(service, b" " * 65_537)).error(413)
    response = await service.send(Request("GET", mcp.PATH, headers=(("accept", mcp.EVENTS),)))
    response.expect_status(405)
    allowed = response.header("allow")
    response.must(allowed == "POST", "the header allow: POST", f"allow: {allowed}")


async def _tools(service: ServiceUnderTest, era: Era) -> Part:
    return (await mcp.request(service, era, "tools/list")).result()


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
