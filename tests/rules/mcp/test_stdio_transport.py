"""Over stdio, resources, prompts and completion count and are logged as calls are: one local caller, one line each."""

import logging
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from service.limits.policy import QuotaClass
from service.mcp_server.server import build_server
from service.mcp_server.stdio import call_over_stdio
from service.parts import open_parts
from service.settings.service import Settings
from tests.support.transports import MODES


@pytest.mark.rule("Q3", "Q2", "E2", "E5")
@pytest.mark.parametrize("mode", MODES)
async def test_the_local_caller_has_quotas_and_a_line_for_each_call(
    index_directory: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    quota = QuotaClass(reads=3, suggest=2, reports=0)
    parts = open_parts(Settings(data_dir=index_directory, quota_anonymous=quota, request_timeout=10.0))
    shop, prompt = ResourceTemplateReference(uri="shop://{domain}"), PromptReference(name="compare_shops")
    refused = []
    try:
        server = build_server(parts.dispatcher, parts.responder, "1", call_over_stdio(None))
        async with Client(server, mode=mode) as client:
            await client.read_resource("shop://shop_books")
            for uri in ("shop://shop_hidden", "none://none", "shop://shop_books"):
                with pytest.raises(MCPError) as raised:
                    await client.read_resource(uri)
                refused.append((raised.value.code, sorted(raised.value.data or ())))
            await client.complete(shop, {"name": "domain", "value": "canary"})
            await client.complete(prompt, {"name": "country", "value": "d"})
            with pytest.raises(MCPError) as raised:
                await client.complete(prompt, {"name": "category", "value": "b"})
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
