"""Resources, prompts and completion are the same on every transport; over stdio they count and are logged as calls."""

import logging
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference, ResourceTemplateReference, TextContent, TextResourceContents

from service.limits.policy import QuotaClass
from service.mcp_server.prompts import PROMPTS, fill
from service.mcp_server.server import build_server
from service.mcp_server.stdio import call_over_stdio
from service.parts import open_parts
from service.settings.service import Settings
from tests.rules.mcp.test_resources import NO_RESOURCE
from tests.support.served import post
from tests.support.transports import MODES, STAMP_KEYS, mcp_transports

SHOP = ResourceTemplateReference(uri="shop://{domain}")
COMPARE = PromptReference(name="compare_shops")


@pytest.mark.rule("I4", "I5", "V2", "E2")
async def test_every_transport_and_era_offers_the_same(base: str, index_directory: Path) -> None:
    rest = post(base, "/tool/get_shop", {"shop_domain": "shop_books"})
    given = {"query": "harbour books", "category": "books", "country": "DE"}
    prompt = next(one for one in PROMPTS if one.name == COMPARE.name)
    async with mcp_transports(base, index_directory) as transports:
        assert len(transports) == 2 * len(MODES)
        for transport, client in transports.items():
            result = await client.read_resource("shop://harbour-lane-books.example")
            (contents,) = result.contents
            assert isinstance(contents, TextResourceContents)
            assert (transport, contents.text) == (transport, rest.body.decode())
            assert [dict(result.meta or {})[key] for key in STAMP_KEYS] == [rest.headers[key] for key in STAMP_KEYS]
            (message,) = (await client.get_prompt(prompt.name, given)).messages
            assert isinstance(message.content, TextContent)
            assert (message.role, message.content.text) == ("user", fill(prompt, given))
            completion = (await client.complete(SHOP, {"name": "domain", "value": "harb"})).completion
            assert completion.values == ["harbour-lane-books.example"]
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(prompt.name, {"query": "a", "country": "XX"})
            assert (refused.value.code, refused.value.data["code"]) == (-32602, "invalid_input")
            for uri in ("shop://shop_hidden", "shop://shop_nobody"):
                with pytest.raises(MCPError) as missing:
                    await client.read_resource(uri)
                code = -32002 if "legacy" in transport else -32602
                error = missing.value
                assert (error.code, error.message, error.data) == (code, NO_RESOURCE, None)


@pytest.mark.rule("Q3", "Q2", "E2", "E5")
@pytest.mark.parametrize("mode", MODES)
async def test_the_local_caller_has_quotas_and_a_line_for_each_call(
    index_directory: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    quota = QuotaClass(reads=3, suggest=2, reports=0)
    parts = open_parts(Settings(data_dir=index_directory, quota_anonymous=quota, request_timeout=10.0))
    refused = []
    try:
        server = build_server(parts.dispatcher, parts.responder, "1", call_over_stdio(None))
        async with Client(server, mode=mode) as client:
            await client.read_resource("shop://shop_books")
            for uri in ("shop://shop_hidden", "none://none", "shop://shop_books"):
                with pytest.raises(MCPError) as raised:
                    await client.read_resource(uri)
                refused.append((raised.value.code, sorted(raised.value.data or ())))
            await client.complete(SHOP, {"name": "domain", "value": "canary"})
            await client.complete(COMPARE, {"name": "country", "value": "d"})
            with pytest.raises(MCPError) as raised:
                await client.complete(COMPARE, {"name": "category", "value": "b"})
            refused.append((raised.value.code, sorted(raised.value.data)))
    finally:
        await parts.close()
    missing: tuple[int, list[str]] = (-32602 if mode == "2026-07-28" else -32002, [])
    too_many = (-32001, ["code", "detail", "status", "title", "type"])
    assert refused == [missing, missing, too_many, too_many]
    lines = [record for record in caplog.records if record.name == "service.runtime.telemetry"]
    assert {line.__dict__["channel"] for line in lines} == {"stdio"}
    assert [(line.__dict__["route"], line.__dict__["outcome"]) for line in lines] == [
        ("get_shop", "ok"),
        ("get_shop", "shop_not_found"),
        ("none", "refused"),
        ("none", "quota_exceeded"),
        ("none", "ok"),
        ("none", "ok"),
        ("none", "quota_exceeded"),
    ]
    assert "canary" not in "".join(str(record.__dict__) for record in lines)
