"""The rules of the MCP endpoint: both eras of the protocol, the same tools and answers as REST, and its errors."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Ask, Part, Reply, as_json
from shop_directory.conformance.mcp import Era, Message
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import Visit, steadily

_PARSE_ERROR: Final = -32700
_NO_TOOL: Final = "no_such_tool"
_TOOL_PATHS: Final = "/tool/"
_ELSEWHERE: Final = "https://elsewhere.example"


@rule("I3", "POST /mcp speaks JSON-RPC over streamable HTTP: initialize, tools/list and tools/call, in either era.")
async def _speaks_mcp(visit: Visit) -> None:
    begun = (await mcp.initialize(visit)).result()
    begun["protocolVersion"].expect(str(Era.HANDSHAKE))
    begun["serverInfo"]["name"].text()
    begun["capabilities"]["tools"].keys()
    for era in Era:
        listed = await _tools(visit, era)
        for tool in listed["tools"].each():
            tool["name"].text()
            tool["description"].text()
            tool["inputSchema"]["type"].expect("object")
        message = await mcp.call(visit, era, "list_categories")
        _text_of(message).text()
        if message.result().value.get("isError"):
            raise message.result()["isError"].broken("false")


@rule("I5", "REST and MCP offer the same tools and give the same answers.")
async def _answers_alike(visit: Visit) -> None:
    paths = (await visit.get("/openapi.json")).answer()["paths"].keys()
    by_rest = {path.removeprefix(_TOOL_PATHS) for path in paths if path.startswith(_TOOL_PATHS)}
    for era in Era:
        listed = await _tools(visit, era)
        names = {tool["name"].text() for tool in listed["tools"].each()}
        if names != by_rest:
            raise listed.broken(f"the tools of REST: {', '.join(sorted(by_rest))}")
    shop = visit.seen.shop().id
    calls: list[tuple[str, dict[str, Any]]] = [
        ("find_shop", {"query": "", "limit": 3}),
        ("list_categories", {}),
        ("get_shop", {"shop_domain": shop}),
        ("get_shop", {"shop_domain": visit.unknown_domain}),
        ("get_shipping_policy", {"shop_domain": shop, "country": "DE"}),
    ]
    for tool, arguments in calls + ([("get_trust", {"shop_domain": shop})] if visit.token else []):
        await _expect_alike(visit, tool, arguments)
    await _expect_as_many_coupons(visit, shop)


@rule("I67", "The MCP endpoint as such asks for no credentials.")
async def _asks_for_no_credentials(visit: Visit) -> None:
    nobody = visit.with_token(None)
    (await mcp.initialize(nobody)).result()
    for era in Era:
        (await mcp.request(nobody, era, "tools/list")).result()
        (await mcp.call(nobody, era, "list_categories")).result()


@rule("E2", "A tool's error over MCP is a result with isError and the problem object as text, not structuredContent.")
async def _fails_in_results(visit: Visit) -> None:
    calls: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("get_shop", {"shop_domain": visit.unknown_domain}, "shop_not_found"),
        ("find_shop", {}, "invalid_input"),
    )
    for era in Era:
        for tool, arguments, code in calls:
            message = await mcp.call(visit, era, tool, arguments)
            result = message.result()
            result["isError"].expect(True)
            if result.value.get("structuredContent") is not None:
                raise result.broken("no structuredContent beside an error")
            problem = _json_of(message)
            problem["code"].expect(code)
            for name in ("type", "title", "detail"):
                problem[name].text()
            problem["status"].whole()


@rule("E2.protocol", "An unknown tool and malformed JSON-RPC are JSON-RPC errors; every tool is listed to everybody.")
async def _fails_by_the_protocol(visit: Visit) -> None:
    for era in Era:
        (await mcp.call(visit, era, _NO_TOOL)).error()
        nobody = await _tools(visit.with_token(None), era)
        listed = await _tools(visit, era)
        if [tool["name"].value for tool in nobody["tools"].each()] != [
            tool["name"].value for tool in listed["tools"].each()
        ]:
            raise nobody.broken("the tools that are listed with a token")
    (await mcp.posted(visit, b"{")).error(400)["code"].expect(_PARSE_ERROR)
    malformed: object
    for malformed in ([], 5, {"id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 1, "method": 5}):
        (await mcp.posted(visit, orjson.dumps(malformed))).error(400)


@rule("E1.transport", "What the MCP transport refuses keeps the shape of JSON-RPC; only POST is answered.")
async def _refuses_in_its_shape(visit: Visit) -> None:
    ping = as_json({"jsonrpc": "2.0", "id": mcp.MESSAGE_ID, "method": "ping"})
    (await mcp.posted(visit, ping, ("content-type", "text/plain"))).error(400)
    (await mcp.posted(visit, ping, ("accept", "text/html"))).error(406)
    (await mcp.posted(visit, ping, ("origin", _ELSEWHERE))).error(403)
    (await mcp.posted(visit, b" " * 65_537)).error(413)
    reply = await visit.ask(Ask("GET", mcp.PATH, headers=(("accept", mcp.EVENTS),)))
    reply.expect_status(405)
    if reply.header("allow") != "POST":
        raise reply.broken("the header allow: POST", f"allow: {reply.header('allow')}")


async def _tools(visit: Visit, era: Era) -> Part:
    return (await mcp.request(visit, era, "tools/list")).result()


async def _expect_alike(visit: Visit, tool: str, arguments: Mapping[str, Any]) -> None:
    """The body of REST is the text of MCP, and, but for errors, its structured content."""

    async def compare(*, fresh: bool) -> None:
        reply = await visit.tool(tool, arguments, fresh=fresh)
        for era in Era:
            message = await mcp.call(visit, era, tool, arguments, fresh=fresh)
            _expect_same(reply, message, _json_of(message).value)
            if reply.status == HTTPStatus.OK:
                _expect_same(reply, message, message.result()["structuredContent"].value)

    await steadily(compare)


def _expect_same(reply: Reply, message: Message, document: object) -> None:
    if document != reply.document().value:
        raise message.reply.broken(f"the answer of {reply.ask.shown}: {reply.shown}")


async def _expect_as_many_coupons(visit: Visit, shop: str) -> None:
    """A display policy may hold a code back at one door, but it counts at both."""
    arguments = {"shop_domain": shop}

    async def compare(*, fresh: bool) -> None:
        reply = await visit.tool("list_coupons", arguments, fresh=fresh)
        expected = reply.answer()["total_count"].value
        for era in Era:
            message = await mcp.call(visit, era, "list_coupons", arguments, fresh=fresh)
            _json_of(message)["total_count"].expect(expected)

    await steadily(compare)


def _text_of(message: Message) -> Part:
    """The one text of a tool's result."""
    content = message.result()["content"]
    if len(content.values()) != 1:
        raise content.broken("one text")
    content[0]["type"].expect("text")
    return content[0]["text"]


def _json_of(message: Message) -> Part:
    """The JSON object that the text of a result holds."""
    text = _text_of(message)
    try:
        return Part(message.reply, "the JSON in content[0].text", orjson.loads(text.text()))
    except orjson.JSONDecodeError:
        raise text.broken("an object as JSON text") from None
