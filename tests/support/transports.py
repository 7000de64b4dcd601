"""A call over each transport, with answers of one shape, so that tests can compare the transports."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.support import forked
from tests.support.served import post

REPOSITORY: Final = Path(__file__).parents[2]
STAMP_KEYS: Final = ("x-generation", "x-data-as-of")
MODES: Final = ("2026-07-28", "legacy")


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    text: str
    structured: Any
    failed: bool
    stamp: tuple[str | None, ...]
    request_id: str


@asynccontextmanager
async def http_transport(base: str, mode: str, token: str | None = None) -> AsyncIterator[Client]:
    headers = {} if token is None else {"x-api-token": token}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30.0) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def stdio_transport(
    index_directory: Path, mode: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """A client of the service as a process of its own; `settings` are more of its variables."""
    environment = {
        **os.environ,
        "SHOP_DIRECTORY_DATA_DIR": str(index_directory),
        "SHOP_DIRECTORY_REQUEST_TIMEOUT": "10",
        "PYTHONPATH": str(REPOSITORY),
        **(settings or {}),
    }
    server = StdioServerParameters(command=str(forked.program()), args=["mcp"], env=environment)
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


@asynccontextmanager
async def mcp_transports(
    base: str, index_directory: Path, token: str | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Client]]:
    """Both eras of MCP over HTTP and over stdio; `settings` are those of the processes on stdio."""
    own = {**(settings or {}), "SHOP_DIRECTORY_API_TOKEN": token or ""}
    async with AsyncExitStack() as opened:
        transports = {}
        for mode in MODES:
            transports[f"http {mode}"] = await opened.enter_async_context(http_transport(base, mode, token))
            transports[f"stdio {mode}"] = await opened.enter_async_context(stdio_transport(index_directory, mode, own))
        yield transports


def over_rest(base: str, tool: str, arguments: Mapping[str, Any], **headers: str) -> ToolAnswer:
    """By POST /tool/<name>; header names with _ for -."""
    reply = post(base, f"/tool/{tool}", arguments, **headers)
    return ToolAnswer(
        text=reply.body.decode(),
        structured=None,
        failed=reply.status != 200,
        stamp=tuple(reply.headers.get(key) for key in STAMP_KEYS),
        request_id=reply.headers["x-request-id"],
    )


async def over_mcp(client: Client, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
    result = await client.call_tool(tool, arguments)
    meta = dict(result.meta or {})
    (block,) = result.content
    assert block.type == "text"
    return ToolAnswer(
        text=block.text,
        structured=result.structured_content,
        failed=bool(result.is_error),
        stamp=tuple(meta.get(key) for key in STAMP_KEYS),
        request_id=meta["x-request-id"],
    )
